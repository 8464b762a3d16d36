// Several evaluations of one program as a single callable: item i runs on stream i, forked from the
// caller's and joined to it again, so that a graph of small kernels fills the device.
//
//   CIPHERD_ASSIGN_OR_RETURN(execution::ProgramFunction function,
//                            MakeBatchFunction(binding.make_function, /*batch_size=*/4, device));
//
// Arguments: the inputs of item 0, those of item 1, …, then a table of key addresses, uint64
// [batch_size, keys], row i for item i: so tenants share a batch. Returns a tuple of the tuples
// that the items return. Every item does exactly what a single evaluation does, so that the results
// are equal bit for bit. The callable owns its streams and is used by one thread at a time; results
// may be used on the caller's stream.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "core/execution/program_function.h"
#include "core/runtime/device.h"
#include "server/engine/program.h"

namespace cipherd::engine {

// `make_function` makes a callable for each item, with that item's of `output_events` where there
// are any. `device` outlives the callable. `batch_size` is at least 1.
absl::StatusOr<execution::ProgramFunction> MakeBatchFunction(
    const FunctionFactory& make_function, int batch_size, runtime::Device& device,
    std::span<const execution::OutputEvents> output_events = {});

}  // namespace cipherd::engine

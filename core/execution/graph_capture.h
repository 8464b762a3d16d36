// Warm-up, capture and first replay of a callable: how a program comes into being.
//
// Everything runs on one stream made for the purpose. Each warm-up run has a fresh input buffer, so
// that the one which the graph keeps holds the example's payload until its first replay. What the
// callable returns must be on the capture device; a tensor which it returns in storage of the
// inputs is cloned inside the graph, so that only a replay overwrites an output.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "core/execution/capture_stats.h"
#include "core/execution/program_function.h"
#include "core/execution/program_options.h"
#include "core/execution/reusable_value_buffer.h"
#include "core/execution/value_tree_signature.h"
#include "core/runtime/device.h"
#include "core/runtime/graph.h"
#include "core/value/value_tree.h"

namespace cipherd::execution {

// A graph that has been replayed once. Destroyed from the last member to the first.
struct CapturedGraph {
  runtime::Device* device = nullptr;
  ProgramFunction function;
  int64_t input_nbytes = 0;
  // Over the tuple of inputs; the graph reads its storage.
  std::unique_ptr<ReusableValueBuffer> input_buffer;
  std::unique_ptr<runtime::Graph> graph;
  // In the graph's pool. Nothing for a function without output.
  value::ValueTree output;
  std::optional<ValueTreeSignature> output_signature;
  CaptureStats stats;
};

// `example` is the tuple of positional inputs. Blocks. Errors as CudaGraphProgram::Capture has
// them; after one, the device holds no memory of this call.
absl::StatusOr<CapturedGraph> CaptureGraph(ProgramFunction function,
                                           const value::ValueTree& example,
                                           const CaptureOptions& options);

}  // namespace cipherd::execution

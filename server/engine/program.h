// A program as the engine sees it: what goes in and out, which keys it reads, and how to get a
// callable for a device. interpreted_program.h makes one of a checked program directory; tests make
// theirs of a few lines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/evaluation_keys.h"
#include "core/execution/program_function.h"
#include "core/execution/value_tree_signature.h"
#include "core/runtime/device.h"
#include "core/runtime/stream.h"
#include "core/value/tensor.h"
#include "core/value/value_tree.h"
#include "server/engine/serving_settings.h"

namespace cipherd::engine {

struct ProgramInfo {
  std::string name;
  int64_t version = 1;
  std::string description;
  // 64 hexadecimal digits; key sets must be of this context.
  std::string context_id;
  // Exactly the keys that the program reads, in the order of its key table.
  ckks::KeyLayout keys;
  // Of those keys; 0 where they are of no ring.
  int64_t key_bytes = 0;
  // Tuples, one child an input or output.
  execution::ValueTreeSignature input_signature;
  execution::ValueTreeSignature output_signature;
  int64_t input_bytes = 0;
  int64_t output_bytes = 0;

  size_t output_count() const { return output_signature.children().size(); }
};

// Storage for one evaluation: tuples, one child an input or output.
struct EvaluationTrees {
  value::ValueTree inputs;
  value::ValueTree outputs;
};

using TensorFactory =
    std::function<absl::StatusOr<value::Tensor>(value::DType dtype, std::vector<int64_t> shape)>;

// `output_events` are empty, or one an output (execution::OutputEvents).
using FunctionFactory = std::function<absl::StatusOr<execution::ProgramFunction>(
    execution::OutputEvents output_events)>;

// A program on one device. Every instance on that device shares it.
struct ProgramBinding {
  // Makes callables that take each input, then a uint64 tensor [max(1, keys.size())] with the
  // device address of each key in the order of ProgramInfo::keys, and return a tuple of the
  // outputs. One owns what it binds, and serves one thread at a time.
  FunctionFactory make_function;
  // Lawful arguments on the device with payload that makes a difference: for warm-up, capture and
  // the first verified replay. The key table among them points into `example_keys`.
  std::vector<value::ValueTree> example_inputs;
  // Keeps what the example's key table points to.
  std::shared_ptr<const void> example_keys;
};

// Immutable and thread-safe.
class Program {
 public:
  virtual ~Program() = default;

  virtual const ProgramInfo& info() const = 0;

  // New trees with the signatures of info(), uninitialised, over tensors from `allocate`.
  virtual absl::StatusOr<EvaluationTrees> MakeTrees(const TensorFactory& allocate) const = 0;

  // Blocks until constants and example are where evaluations read them, using `stream` of `device`.
  virtual absl::StatusOr<ProgramBinding> Bind(runtime::Device& device, runtime::Stream& stream,
                                              const ServingSettings& settings) const = 0;
};

// Fills signatures and byte counts of `info` from the trees of `program` over pageable memory.
absl::Status DescribeTrees(const Program& program, ProgramInfo& info);

}  // namespace cipherd::engine

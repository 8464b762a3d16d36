// Runs a checked program: an ordinary callable over exact values, which CudaGraphProgram::Capture
// takes like any other.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto placeholder, PlaceholderKey::Make(device_context, stream));
//   CIPHERD_ASSIGN_OR_RETURN(auto interpreter, Interpreter::Make(program, device_context, stream));
//   CIPHERD_ASSIGN_OR_RETURN(auto examples, interpreter->ExampleInputs(*placeholder, stream));
//   CIPHERD_ASSIGN_OR_RETURN(auto function, interpreter->MakeFunction());
//   CIPHERD_ASSIGN_OR_RETURN(auto captured, CudaGraphProgram::Capture(std::move(function),
//                                                                     std::move(examples)));
//
// Inputs of an evaluation are one Ciphertext value an input of the spec, in its order, then the key
// table: a uint64 tensor [max(1, key count)] of device addresses of evaluation keys in the order of
// program().keys. So another tenant's keys are bound by staging another table, and the captured
// graph stays. Whoever binds a table keeps its keys alive until the evaluation is done.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/device_context.h"
#include "core/execution/program_function.h"
#include "core/programs/placeholder_key.h"
#include "core/programs/program_checker.h"
#include "core/runtime/stream.h"
#include "core/value/value_tree.h"

namespace cipherd::programs {

struct InterpreterOptions {
  // Bytes of device memory that encoded constants may take. Where they are more, they stay in
  // pinned host memory, shared by all evaluations, and each evaluation copies them through two
  // buffers of at most half of this (tiled_constants.h).
  int64_t constant_budget_bytes = INT64_MAX;
};

// A program bound to a device: constants encoded and placed, schedule fixed. Immutable and
// thread-safe; every instance of the program on that device shares one.
class Interpreter : public std::enable_shared_from_this<Interpreter> {
 public:
  // Encodes the constants at their depths and scales and uploads them over `stream`; blocks until
  // they are there. `device_context` must outlive this. InvalidArgument where it is of another
  // context than the program or `stream` of another device; ResourceExhausted where memory runs
  // out, or, naming the operation, where the constants of one are more than half of the budget.
  static absl::StatusOr<std::shared_ptr<const Interpreter>> Make(
      std::shared_ptr<const CheckedProgram> program, const ckks::DeviceContext& device_context,
      runtime::Stream& stream, const InterpreterOptions& options = {});
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  const CheckedProgram& program() const;

  // Bytes of encoded constants that are resident on the device; 0 where they come in tiles.
  int64_t constant_bytes() const;
  // Tiles that each evaluation copies, 0 where constants are resident, and bytes of the largest:
  // an evaluation holds twice that.
  int64_t tile_count() const;
  int64_t tile_bytes() const;

  // A callable that enqueues one evaluation and returns a tuple with one Ciphertext an output; it
  // does not synchronise. Intermediate results are freed after their last reader. It shares this,
  // has what copies tiles of its own, and serves one thread at a time: make one an instance.
  // `output_events` are empty, or as many as outputs; else InvalidArgument. Errors of the device
  // where what copies tiles cannot be made. The callable's: InvalidArgument, naming the input,
  // where one is not in the state that the program takes.
  absl::StatusOr<execution::ProgramFunction> MakeFunction(
      execution::OutputEvents output_events = {}) const;

  // Inputs on the device that can be evaluated and captured: ciphertexts of zeros in the states
  // that the program takes, and a key table whose every slot is the placeholder, which must be of
  // this device and context and outlive every evaluation of them. Blocks until they are resident.
  absl::StatusOr<std::vector<value::ValueTree>> ExampleInputs(const PlaceholderKey& placeholder,
                                                              runtime::Stream& stream) const;

 private:
  struct State;
  explicit Interpreter(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace cipherd::programs

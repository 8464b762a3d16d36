// A callable captured as a graph over fixed input storage, and replayed with changing payload.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto program, CudaGraphProgram::Capture(schedule, {prototype}));
//   CIPHERD_ASSIGN_OR_RETURN(ValueTree borrowed, program->Replay({next}, compute));
//
// With transfer, compute and result on streams of their own, and no call that blocks:
//
//   CIPHERD_ASSIGN_OR_RETURN(CopyHandle copied, program->CopyInputsFrom(
//       {pinned}, {.stream = &transfer}));
//   CIPHERD_ASSIGN_OR_RETURN(ValueTree borrowed, program->ReplayPrepared(
//       compute, {.copy_handle = copied, .wait_for = {previous_result_copied}}));
//   CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<const Event> done, program->completion_event());
//   CIPHERD_RETURN_IF_ERROR(output_stream.Wait(*done));
//   // copy `borrowed` on `output_stream`, then record previous_result_copied there
//
// The name is that of the system it follows; on the CPU device the graph is the runtime's own.
//
// Ownership: a program owns its graph with its memory pool, its input buffer, its callable (and
// what that binds). Outputs are borrowed: each replay writes the same storage, so the next one
// overwrites it. Ask for `copy_output` to own a result, or name in `wait_for` who still reads the
// borrowed one.
//
// Threading: one thread at a time; a second one gets FailedPrecondition and changes nothing.
// Programs are independent of each other: build one per concurrent worker.
//
// Errors: InvalidArgument for structure, residency and arguments; FailedPrecondition when closed,
// in use, or given a handle that is foreign or not the latest; Internal, naming stage and function
// and keeping the cause, where warm-up, capture or first replay failed; the device's own error
// later on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/execution/capture_stats.h"
#include "core/execution/copy_handle.h"
#include "core/execution/event_list.h"
#include "core/execution/graph_capture.h"
#include "core/execution/program_function.h"
#include "core/execution/program_options.h"
#include "core/execution/reusable_value_buffer.h"
#include "core/execution/value_tree_signature.h"
#include "core/runtime/device.h"
#include "core/runtime/graph.h"
#include "core/value/value_tree.h"

namespace cipherd::execution {

class CudaGraphProgram {
 public:
  // Warms `function` up, captures it and replays it once. `example_inputs` are the positional
  // arguments: they define structure, exact state and the device. Blocks. After an error the device
  // holds no memory of this call.
  static absl::StatusOr<std::unique_ptr<CudaGraphProgram>> Capture(
      ProgramFunction function, std::vector<value::ValueTree> example_inputs,
      const CaptureOptions& options = {});

  // The shorthand without a function: returns a callable that captures the function it is given.
  using Capturer =
      std::function<absl::StatusOr<std::unique_ptr<CudaGraphProgram>>(ProgramFunction function)>;
  static Capturer Capture(std::vector<value::ValueTree> example_inputs,
                          const CaptureOptions& options = {});

  // Closes; a failure is logged.
  ~CudaGraphProgram();
  CudaGraphProgram(const CudaGraphProgram&) = delete;
  CudaGraphProgram& operator=(const CudaGraphProgram&) = delete;

  // These answer also when closed.
  runtime::Device& device() const { return *device_; }
  const CaptureStats& stats() const { return stats_; }

  // Signature of the tuple of positional inputs, and its payload bytes.
  absl::StatusOr<ValueTreeSignature> input_signature() const;
  absl::StatusOr<int64_t> input_nbytes() const;
  // Signature of the output; nothing for a function without output.
  absl::StatusOr<std::optional<ValueTreeSignature>> output_signature() const;

  // The borrowed output. Overwritten by the next replay; not to be used after Close.
  absl::StatusOr<value::ValueTree> output() const;

  // Completes with the latest replay, its `copy_output` included; an event of its own per replay.
  absl::StatusOr<std::shared_ptr<const runtime::Event>> completion_event() const;

  // The graph, for inspection; its native_handle() is the cudaGraphExec_t. Launching it directly
  // bypasses the validation, the copies, the waits on transfers and the protection against
  // overwriting.
  absl::StatusOr<runtime::Graph*> cuda_graph() const;

  // Copies `inputs` into the program's storage without replaying: prefetch. Ordered after the
  // previous replay and `options.wait_for`. Does not block (see ReusableValueBuffer::CopyFrom). A
  // validation error changes nothing, and an earlier copy that waits for its replay stays prepared.
  absl::StatusOr<CopyHandle> CopyInputsFrom(std::span<const value::ValueTree> inputs,
                                            const CopyOptions& options);

  // Enqueues a replay of the payload that is in the storage, ordered after the copy, the previous
  // replay and `options.wait_for`. Does not block unless asked to.
  absl::StatusOr<value::ValueTree> ReplayPrepared(runtime::Stream& stream,
                                                  const PreparedReplayOptions& options = {});

  // Copies `inputs` on `stream` and replays there. Supersedes a prepared copy; a validation error
  // changes nothing.
  absl::StatusOr<value::ValueTree> Replay(std::span<const value::ValueTree> inputs,
                                          runtime::Stream& stream,
                                          const ReplayOptions& options = {});

  // For lists of inputs in braces.
  absl::StatusOr<CopyHandle> CopyInputsFrom(std::initializer_list<value::ValueTree> inputs,
                                            const CopyOptions& options) {
    return CopyInputsFrom(std::span(inputs.begin(), inputs.size()), options);
  }
  absl::StatusOr<value::ValueTree> Replay(std::initializer_list<value::ValueTree> inputs,
                                          runtime::Stream& stream,
                                          const ReplayOptions& options = {}) {
    return Replay(std::span(inputs.begin(), inputs.size()), stream, options);
  }

  // Waits for outstanding copies and replays, then releases graph, pool, storage and callable.
  // Idempotent. Afterwards all but device and stats is FailedPrecondition. Readers of the borrowed
  // output are the caller's to wait for.
  absl::Status Close();

 private:
  class Entry;

  CudaGraphProgram(CapturedGraph captured, bool check_liveness);

  absl::StatusOr<CopyHandle> CopyInputs(std::span<const value::ValueTree> inputs,
                                        CopyOptions options);
  // Everything that can refuse a replay before any effect, but for the handle.
  absl::Status CheckReplay(runtime::Stream& stream, const EventList& wait_for) const;
  absl::Status CheckHandle(const std::optional<CopyHandle>& handle) const;
  absl::StatusOr<value::ValueTree> Launch(runtime::Stream& stream,
                                          const PreparedReplayOptions& options);

  runtime::Device* const device_;
  const CaptureStats stats_;
  const bool check_liveness_;
  const ValueTreeSignature input_signature_;
  const std::optional<ValueTreeSignature> output_signature_;
  const int64_t input_nbytes_;

  std::atomic<bool> closed_ = false;
  // True while a thread is inside; what follows is that thread's.
  mutable std::atomic<bool> in_use_ = false;
  // Destroyed from the last one to the first: the graph reads the buffer and what the callable
  // binds.
  ProgramFunction function_;
  std::unique_ptr<ReusableValueBuffer> input_buffer_;
  std::unique_ptr<runtime::Graph> graph_;
  value::ValueTree output_;
  // The copy that waits for its replay.
  std::optional<CopyHandle> prepared_;
  // Null where no replay is outstanding.
  std::shared_ptr<const runtime::Event> completion_event_;
};

}  // namespace cipherd::execution

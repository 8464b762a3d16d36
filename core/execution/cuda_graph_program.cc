#include "core/execution/cuda_graph_program.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/value/tensor_copy.h"
#include "spdlog/spdlog.h"

namespace cipherd::execution {
namespace {

using runtime::Stream;
using value::Tensor;
using value::ValueTree;

absl::Status ClosedError() { return absl::FailedPreconditionError("program is closed"); }

ValueTree TupleOf(std::span<const ValueTree> inputs) {
  return ValueTree::Tuple(std::vector<ValueTree>(inputs.begin(), inputs.end()));
}

// Storage of the caller's own with the payload of `output`, in the order of `stream`.
absl::StatusOr<ValueTree> Clone(const ValueTree& output, Stream& stream) {
  return value::MapTensors(
      output, "output",
      [&stream](const std::string&, const Tensor& tensor) -> absl::StatusOr<Tensor> {
        CIPHERD_ASSIGN_OR_RETURN(Tensor clone, value::DeviceTensorLike(tensor, stream));
        CIPHERD_RETURN_IF_ERROR(value::CopyTensorAsync(tensor, clone, stream));
        return clone;
      });
}

}  // namespace

// The presence of the one thread that a program admits. Never waits for another.
class CudaGraphProgram::Entry {
 public:
  explicit Entry(const CudaGraphProgram& program)
      : in_use_(program.in_use_), admitted_(!in_use_.exchange(true, std::memory_order_acquire)) {}
  ~Entry() {
    if (admitted_) in_use_.store(false, std::memory_order_release);
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  absl::Status status() const {
    if (admitted_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "another thread is using this program: one instance serves one thread at a time");
  }

 private:
  std::atomic<bool>& in_use_;
  const bool admitted_;
};

absl::StatusOr<std::unique_ptr<CudaGraphProgram>> CudaGraphProgram::Capture(
    ProgramFunction function, std::vector<ValueTree> example_inputs,
    const CaptureOptions& options) {
  CIPHERD_ASSIGN_OR_RETURN(
      CapturedGraph captured,
      CaptureGraph(std::move(function), ValueTree::Tuple(std::move(example_inputs)), options));
  // The constructor is private, so that make_unique cannot call it.
  return std::unique_ptr<CudaGraphProgram>(
      new CudaGraphProgram(std::move(captured), options.check_input_liveness));
}

CudaGraphProgram::Capturer CudaGraphProgram::Capture(std::vector<ValueTree> example_inputs,
                                                     const CaptureOptions& options) {
  return [example_inputs = std::move(example_inputs), options](ProgramFunction function) {
    return Capture(std::move(function), example_inputs, options);
  };
}

CudaGraphProgram::CudaGraphProgram(CapturedGraph captured, bool check_liveness)
    : device_(captured.device),
      stats_(captured.stats),
      check_liveness_(check_liveness),
      input_signature_(captured.input_buffer->signature()),
      output_signature_(std::move(captured.output_signature)),
      input_nbytes_(captured.input_nbytes),
      function_(std::move(captured.function)),
      input_buffer_(std::move(captured.input_buffer)),
      graph_(std::move(captured.graph)),
      output_(std::move(captured.output)) {}

CudaGraphProgram::~CudaGraphProgram() {
  if (absl::Status closed = Close(); !closed.ok()) {
    spdlog::error("closing a program on {}: {}", device_->id().ToString(), closed.ToString());
  }
}

absl::StatusOr<ValueTreeSignature> CudaGraphProgram::input_signature() const {
  if (closed_) return ClosedError();
  return input_signature_;
}

absl::StatusOr<int64_t> CudaGraphProgram::input_nbytes() const {
  if (closed_) return ClosedError();
  return input_nbytes_;
}

absl::StatusOr<std::optional<ValueTreeSignature>> CudaGraphProgram::output_signature() const {
  if (closed_) return ClosedError();
  return output_signature_;
}

absl::StatusOr<ValueTree> CudaGraphProgram::output() const {
  Entry entry(*this);
  CIPHERD_RETURN_IF_ERROR(entry.status());
  if (closed_) return ClosedError();
  return output_;
}

absl::StatusOr<std::shared_ptr<const runtime::Event>> CudaGraphProgram::completion_event() const {
  Entry entry(*this);
  CIPHERD_RETURN_IF_ERROR(entry.status());
  if (closed_) return ClosedError();
  return completion_event_;
}

absl::StatusOr<runtime::Graph*> CudaGraphProgram::cuda_graph() const {
  Entry entry(*this);
  CIPHERD_RETURN_IF_ERROR(entry.status());
  if (closed_) return ClosedError();
  return graph_.get();
}

absl::StatusOr<CopyHandle> CudaGraphProgram::CopyInputsFrom(std::span<const ValueTree> inputs,
                                                            const CopyOptions& options) {
  Entry entry(*this);
  CIPHERD_RETURN_IF_ERROR(entry.status());
  if (closed_) return ClosedError();
  return CopyInputs(inputs, options);
}

absl::StatusOr<ValueTree> CudaGraphProgram::ReplayPrepared(Stream& stream,
                                                           const PreparedReplayOptions& options) {
  Entry entry(*this);
  CIPHERD_RETURN_IF_ERROR(entry.status());
  if (closed_) return ClosedError();
  CIPHERD_RETURN_IF_ERROR(CheckReplay(stream, options.wait_for));
  CIPHERD_RETURN_IF_ERROR(CheckHandle(options.copy_handle));
  return Launch(stream, options);
}

absl::StatusOr<ValueTree> CudaGraphProgram::Replay(std::span<const ValueTree> inputs,
                                                   Stream& stream, const ReplayOptions& options) {
  Entry entry(*this);
  CIPHERD_RETURN_IF_ERROR(entry.status());
  if (closed_) return ClosedError();
  CIPHERD_RETURN_IF_ERROR(CheckReplay(stream, options.wait_for));
  CIPHERD_ASSIGN_OR_RETURN(CopyHandle copied, CopyInputs(inputs, {.stream = &stream}));
  return Launch(stream, {.copy_handle = copied,
                         .copy_output = options.copy_output,
                         .synchronize = options.synchronize,
                         .wait_for = options.wait_for});
}

absl::StatusOr<CopyHandle> CudaGraphProgram::CopyInputs(std::span<const ValueTree> inputs,
                                                        CopyOptions options) {
  options.root_label = "inputs";
  // The graph may still be reading what this copy overwrites.
  if (completion_event_ != nullptr) options.wait_for.push_back(completion_event_);
  CIPHERD_ASSIGN_OR_RETURN(prepared_, input_buffer_->CopyFrom(TupleOf(inputs), options));
  return *prepared_;
}

absl::Status CudaGraphProgram::CheckReplay(Stream& stream, const EventList& wait_for) const {
  CIPHERD_RETURN_IF_ERROR(CheckStreamOf(&stream, *device_));
  CIPHERD_RETURN_IF_ERROR(CheckEvents(wait_for, *device_));
  return check_liveness_ ? graph_->CheckLiveness() : absl::OkStatus();
}

absl::Status CudaGraphProgram::CheckHandle(const std::optional<CopyHandle>& handle) const {
  CIPHERD_RETURN_IF_ERROR(input_buffer_->payload_status());
  if (handle.has_value() && !input_buffer_->Owns(*handle)) {
    return absl::FailedPreconditionError("copy_handle belongs to another program or buffer");
  }
  if (handle == prepared_) return absl::OkStatus();
  if (!handle.has_value()) {
    return absl::FailedPreconditionError(
        "copy_handle: a prepared copy waits for its replay, and needs its handle");
  }
  return absl::FailedPreconditionError(
      prepared_.has_value() ? "copy_handle: expected that of the latest copy, got an older one"
                            : "copy_handle: the copy has been replayed already");
}

absl::StatusOr<ValueTree> CudaGraphProgram::Launch(Stream& stream,
                                                   const PreparedReplayOptions& options) {
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Event> completion, device_->CreateEvent());
  if (prepared_.has_value()) CIPHERD_RETURN_IF_ERROR(prepared_->WaitOn(stream).status());
  // One replay at a time, on whatever streams. What a payload that is replayed again was copied by
  // came before the replay that this waits for.
  if (completion_event_ != nullptr) CIPHERD_RETURN_IF_ERROR(stream.Wait(*completion_event_));
  CIPHERD_RETURN_IF_ERROR(WaitForEvents(options.wait_for, stream));
  CIPHERD_RETURN_IF_ERROR(graph_->Launch(stream));
  prepared_.reset();

  absl::StatusOr<ValueTree> result = options.copy_output ? Clone(output_, stream) : output_;
  // Also where the clone failed: the replay itself is under way.
  if (absl::Status recorded = stream.Record(*completion); !recorded.ok()) {
    stream.Synchronize().IgnoreError();
    completion_event_ = nullptr;
    return recorded;
  }
  completion_event_ = completion;
  CIPHERD_RETURN_IF_ERROR(result.status());
  if (options.synchronize) CIPHERD_RETURN_IF_ERROR(completion->Synchronize());
  return result;
}

absl::Status CudaGraphProgram::Close() {
  Entry entry(*this);
  CIPHERD_RETURN_IF_ERROR(entry.status());
  if (closed_.exchange(true)) return absl::OkStatus();
  absl::Status closed;
  if (completion_event_ != nullptr) closed.Update(completion_event_->Synchronize());
  // The graph before what it reads, the buffer and what the callable binds: also where the wait
  // above failed, the end of the graph comes after its launches.
  output_ = ValueTree::None();
  graph_.reset();
  closed.Update(input_buffer_->Close());
  input_buffer_.reset();
  function_ = nullptr;
  prepared_.reset();
  completion_event_.reset();
  return closed;
}

}  // namespace cipherd::execution

#include "core/runtime/cuda/cuda_stream.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/runtime/transfer_checks.h"

namespace cipherd::runtime::cuda {

absl::StatusOr<std::unique_ptr<Stream>> CudaStream::Create(CudaContext& context,
                                                           std::string_view name) {
  CIPHERD_RETURN_IF_ERROR(context.health().status());
  const ScopedDevice device(context.ordinal());
  const ScopedRelaxedCapture relaxed;
  cudaStream_t stream = nullptr;
  CIPHERD_RETURN_IF_ERROR(context.Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                        "cudaStreamCreateWithFlags", name));
  return std::unique_ptr<Stream>(new CudaStream(context, name, stream));
}

CudaStream::CudaStream(CudaContext& context, std::string_view name, cudaStream_t stream)
    : context_(context),
      name_(name),
      stream_(stream),
      progress_(std::make_shared<CudaProgress>(context.ordinal(), stream)) {}

CudaStream::~CudaStream() {
  const ScopedDevice device(context_.ordinal());
  // The thread that lets go of a stream may be capturing another one.
  const ScopedRelaxedCapture relaxed;
  if (capture_ != nullptr) {
    const std::shared_ptr<CudaCapture> capture = capture_;
    capture->Invalidate(absl::StrCat("stream '", name_, "' was destroyed"));
    if (member_ == Capture::kOrigin) {
      cudaGraph_t graph = nullptr;
      EndNativeCapture(&graph);
      if (graph != nullptr) CheckCleanup(cudaGraphDestroy(graph), "cudaGraphDestroy");
      CapturedMemory memory;
      capture->End(memory).IgnoreError();
    } else {
      // Join it to its origin, so that CUDA can end the capture without this stream.
      cudaEvent_t left = nullptr;
      CheckCleanup(cudaEventCreateWithFlags(&left, cudaEventDisableTiming), "cudaEventCreate");
      CheckCleanup(cudaEventRecord(left, stream_), "cudaEventRecord");
      CheckCleanup(cudaStreamWaitEvent(capture->streams[Capture::kOrigin]->stream_, left, 0),
                   "cudaStreamWaitEvent");
      CheckCleanup(cudaEventDestroy(left), "cudaEventDestroy");
      capture->RemoveMember(member_);
      capture->streams[member_] = nullptr;
      progress_->EndCapture();
    }
  }
  if (cudaError_t error = cudaStreamSynchronize(stream_); error != cudaSuccess) {
    // What a capturing stream has left to do is not work; anything else is a fault of the device.
    cudaGetLastError();
    if (error != cudaErrorStreamCaptureUnsupported) {
      context_.Check(error, "cudaStreamSynchronize", name_).IgnoreError();
      CheckCleanup(error, "cudaStreamSynchronize");
    }
  }
  progress_->Close();
  CheckCleanup(cudaStreamDestroy(stream_), "cudaStreamDestroy");
}

absl::Status CudaStream::CheckCall(cudaError_t result, std::string_view call) {
  if (result == cudaSuccess || capture_ == nullptr) return context_.Check(result, call, name_);
  cudaGetLastError();
  const std::string cause = Describe(result, call);
  capture_->Invalidate(cause);
  return absl::InternalError(cause);
}

absl::Status CudaStream::CopyAsync(void* destination, const void* source, size_t bytes) {
  CIPHERD_RETURN_IF_ERROR(status());
  if (bytes == 0) return absl::OkStatus();
  CIPHERD_RETURN_IF_ERROR(CheckCopyArguments(destination, source, bytes));
  if (capture_ != nullptr) {
    CIPHERD_RETURN_IF_ERROR(capture_->CheckTransferSide("Stream::CopyAsync", source, bytes));
    CIPHERD_RETURN_IF_ERROR(capture_->CheckTransferSide("Stream::CopyAsync", destination, bytes));
  }
  if (IsPinned(destination) && IsPinned(source)) {
    // cudaMemcpyAsync between two sides of host memory makes the caller wait for the stream.
    return LaunchHost([destination, source, bytes] { std::memcpy(destination, source, bytes); });
  }
  AddCapturedWork();
  const ScopedDevice device(context_.ordinal());
  return CheckCall(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream_),
                   "cudaMemcpyAsync");
}

absl::Status CudaStream::FillAsync(void* destination, uint8_t value, size_t bytes) {
  CIPHERD_RETURN_IF_ERROR(status());
  if (bytes == 0) return absl::OkStatus();
  CIPHERD_RETURN_IF_ERROR(CheckFillArguments(context_.pools(), destination, bytes));
  if (capture_ != nullptr) {
    CIPHERD_RETURN_IF_ERROR(capture_->CheckTransferSide("Stream::FillAsync", destination, bytes));
  }
  if (IsPinned(destination)) {
    // cudaMemsetAsync is for device memory.
    return LaunchHost([destination, value, bytes] { std::memset(destination, value, bytes); });
  }
  AddCapturedWork();
  const ScopedDevice device(context_.ordinal());
  return CheckCall(cudaMemsetAsync(destination, value, bytes, stream_), "cudaMemsetAsync");
}

absl::Status CudaStream::LaunchHost(std::function<void()> function) {
  CIPHERD_RETURN_IF_ERROR(status());
  const ScopedDevice device(context_.ordinal());
  AddCapturedWork();
  if (capture_ != nullptr) {
    HostFunction& kept =
        *capture_->host_functions.emplace_back(std::make_unique<HostFunction>(std::move(function)));
    const auto run = [](void* kept) { (*static_cast<HostFunction*>(kept))(); };
    return CheckCall(cudaLaunchHostFunc(stream_, run, &kept), "cudaLaunchHostFunc");
  }
  host_calls_.remove_if([](const HostCall& call) { return call.is_done.load(); });
  HostCall& call = host_calls_.emplace_back();
  call.function = std::move(function);
  const auto run = [](void* call) {
    static_cast<HostCall*>(call)->function();
    static_cast<HostCall*>(call)->is_done = true;
  };
  return CheckCall(cudaLaunchHostFunc(stream_, run, &call), "cudaLaunchHostFunc");
}

absl::Status CudaStream::Record(Event& event) {
  CIPHERD_RETURN_IF_ERROR(status());
  auto* const cuda_event = dynamic_cast<CudaEvent*>(&event);
  if (cuda_event == nullptr || &event.device() != &device()) {
    return absl::InvalidArgumentError("Stream::Record: the event is of another device");
  }
  CudaEvent::Latest latest = CudaEvent::EagerRecord{};
  if (capture_ != nullptr) {
    latest = CudaEvent::CapturedRecord{capture_, capture_->ClockOf(member_)};
  }
  const ScopedDevice device(context_.ordinal());
  return CheckCall(cuda_event->RecordOn(stream_, std::move(latest)), "cudaEventRecord");
}

absl::Status CudaStream::RecordInLaunches(std::shared_ptr<Event> event) {
  if (event == nullptr) return absl::InvalidArgumentError("Stream::RecordInLaunches: no event");
  if (capture_ == nullptr) return Record(*event);
  CIPHERD_RETURN_IF_ERROR(status());
  auto cuda_event = std::dynamic_pointer_cast<CudaEvent>(event);
  if (cuda_event == nullptr || &event->device() != &device()) {
    return absl::InvalidArgumentError("Stream::RecordInLaunches: the event is of another device");
  }
  AddCapturedWork();
  const ScopedDevice device(context_.ordinal());
  CIPHERD_RETURN_IF_ERROR(
      CheckCall(cuda_event->RecordInLaunches(stream_), "cudaEventRecordWithFlags"));
  capture_->launch_events.push_back(std::move(cuda_event));
  return absl::OkStatus();
}

absl::Status CudaStream::Wait(const Event& event) {
  CIPHERD_RETURN_IF_ERROR(status());
  const auto* const cuda_event = dynamic_cast<const CudaEvent*>(&event);
  if (cuda_event == nullptr || &event.device() != &device()) {
    return absl::InvalidArgumentError("Stream::Wait: the event is of another device");
  }
  const CudaEvent::Latest latest = cuda_event->latest();
  if (std::holds_alternative<CudaEvent::NeverRecorded>(latest)) return absl::OkStatus();
  const ScopedDevice device(context_.ordinal());
  if (const auto* captured = std::get_if<CudaEvent::CapturedRecord>(&latest)) {
    return WaitOnCaptured(*cuda_event, *captured);
  }
  if (capture_ != nullptr) {
    return capture_->Refuse("Stream::Wait", "the event was recorded outside the capture");
  }
  return CheckCall(cuda_event->WaitOn(stream_), "cudaStreamWaitEvent");
}

absl::Status CudaStream::WaitOnCaptured(const CudaEvent& event,
                                        const CudaEvent::CapturedRecord& record) {
  const std::shared_ptr<CudaCapture> recorded_in = record.capture.lock();
  CIPHERD_RETURN_IF_ERROR(CheckWaitOnCaptured(recorded_in.get(), capture_.get()));
  if (capture_ == nullptr) {
    progress_->BeginCapture();
    capture_ = recorded_in;
    member_ = capture_->AddMember(name_, record.clock);
    capture_->streams.push_back(this);
  } else {
    capture_->Advance(member_, record.clock);
  }
  return CheckCall(event.WaitOn(stream_), "cudaStreamWaitEvent");
}

absl::StatusOr<bool> CudaStream::Query() {
  CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing("Stream::Query", capture_.get()));
  CIPHERD_RETURN_IF_ERROR(status());
  const ScopedDevice device(context_.ordinal());
  const cudaError_t result = cudaStreamQuery(stream_);
  if (result == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  CIPHERD_RETURN_IF_ERROR(context_.Check(result, "cudaStreamQuery", name_));
  return true;
}

absl::Status CudaStream::Synchronize() {
  CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing("Stream::Synchronize", capture_.get()));
  const ScopedDevice device(context_.ordinal());
  CIPHERD_RETURN_IF_ERROR(
      context_.Check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", name_));
  host_calls_.remove_if([](const HostCall& call) { return call.is_done.load(); });
  return status();
}

absl::Status CudaStream::BeginCapture(bool check_liveness) {
  CIPHERD_RETURN_IF_ERROR(status());
  if (capture_ != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("Stream::BeginCapture: stream '", name_, "' captures already"));
  }
  auto capture = std::make_shared<CudaCapture>(name_, check_liveness, context_.pools());
  CIPHERD_RETURN_IF_ERROR(Capture::BindToThisThread(capture));
  const ScopedDevice device(context_.ordinal());
  progress_->BeginCapture();
  const cudaError_t result = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
  if (result != cudaSuccess) {
    progress_->EndCapture();
    Capture::UnbindFromThisThread();
    return context_.Check(result, "cudaStreamBeginCapture", name_);
  }
  capture->streams.push_back(this);
  capture_ = std::move(capture);
  member_ = Capture::kOrigin;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Graph>> CudaStream::EndCapture() {
  CIPHERD_RETURN_IF_ERROR(CheckEndCapture(capture_.get(), member_));
  const std::shared_ptr<CudaCapture> capture = capture_;
  const ScopedDevice device(context_.ordinal());
  cudaGraph_t graph = nullptr;
  const cudaError_t result = EndNativeCapture(&graph);
  Capture::UnbindFromThisThread();
  if (result != cudaSuccess) {
    // Work that CUDA itself found fault with, such as a kernel launch that failed.
    cudaGetLastError();
    capture->Invalidate(Describe(result, "cudaStreamEndCapture"));
  }
  CapturedMemory memory;
  const absl::Status ended = capture->End(memory);
  absl::StatusOr<std::unique_ptr<Graph>> executable = absl::UnknownError("not instantiated");
  if (ended.ok()) {
    executable = CudaGraph::Instantiate(context_, graph, std::move(memory),
                                        std::move(capture->host_functions),
                                        std::move(capture->launch_events));
  }
  if (graph != nullptr) CheckCleanup(cudaGraphDestroy(graph), "cudaGraphDestroy");
  if (!ended.ok()) return ended;
  return executable;
}

cudaError_t CudaStream::EndNativeCapture(cudaGraph_t* graph) {
  const std::shared_ptr<CudaCapture> capture = capture_;
  cudaEvent_t join = nullptr;
  cudaError_t result = cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  for (CudaStream* stream : capture->streams) {
    if (stream == nullptr || stream == this || result != cudaSuccess) continue;
    result = cudaEventRecord(join, stream->stream_);
    if (result == cudaSuccess) result = cudaStreamWaitEvent(stream_, join, 0);
  }
  const cudaError_t end = cudaStreamEndCapture(stream_, graph);
  if (result == cudaSuccess) result = end;
  if (join != nullptr) CheckCleanup(cudaEventDestroy(join), "cudaEventDestroy");
  for (CudaStream* stream : capture->streams) {
    if (stream == nullptr) continue;
    stream->progress_->EndCapture();
    stream->capture_.reset();
  }
  return result;
}

absl::Status CudaStream::DeclareAccess(std::span<const MemoryAccess> accesses) {
  if (capture_ == nullptr) return absl::OkStatus();
  return capture_->CheckAccesses(accesses);
}

bool CudaStream::IsPinned(const void* address) const {
  return context_.pools().pinned->Locate(address, 1).kind != SlabPool::Location::Kind::kOutside;
}

void CudaStream::AddCapturedWork() {
  if (capture_ != nullptr) capture_->AddWork(member_);
}

absl::Status CudaStream::RefuseLaunchInCapture() {
  if (capture_ == nullptr) return absl::OkStatus();
  return capture_->Refuse("Graph::Launch", "forbidden on a stream that captures");
}

}  // namespace cipherd::runtime::cuda

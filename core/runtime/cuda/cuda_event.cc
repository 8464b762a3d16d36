#include "core/runtime/cuda/cuda_event.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::runtime::cuda {

absl::StatusOr<std::shared_ptr<Event>> CudaEvent::Create(CudaContext& context) {
  CIPHERD_RETURN_IF_ERROR(context.health().status());
  const ScopedDevice device(context.ordinal());
  const ScopedRelaxedCapture relaxed;
  cudaEvent_t event = context.spare_events().Take();
  if (event == nullptr) {
    CIPHERD_RETURN_IF_ERROR(
        context.Check(cudaEventCreate(&event), "cudaEventCreate", "Device::CreateEvent"));
  }
  return std::shared_ptr<Event>(new CudaEvent(context, event));
}

CudaEvent::~CudaEvent() {
  // What was recorded in a capture might still be part of it.
  const bool is_reusable = !std::holds_alternative<CapturedRecord>(latest());
  if (is_reusable && context_.spare_events().Give(event_)) return;
  const ScopedDevice device(context_.ordinal());
  CheckCleanup(cudaEventDestroy(event_), "cudaEventDestroy");
}

absl::StatusOr<bool> CudaEvent::WasRecorded(std::string_view call) const {
  CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing(call));
  std::lock_guard lock(mu_);
  if (std::holds_alternative<CapturedRecord>(latest_)) {
    return absl::FailedPreconditionError(absl::StrCat(
        std::string(call), ": the event was last recorded in a capture, which does not run"));
  }
  return std::holds_alternative<EagerRecord>(latest_);
}

absl::StatusOr<bool> CudaEvent::Query() const {
  CIPHERD_ASSIGN_OR_RETURN(const bool was_recorded, WasRecorded("Event::Query"));
  CIPHERD_RETURN_IF_ERROR(context_.health().status());
  if (!was_recorded) return true;
  const ScopedDevice device(context_.ordinal());
  const cudaError_t result = cudaEventQuery(event_);
  if (result == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  CIPHERD_RETURN_IF_ERROR(context_.Check(result, "cudaEventQuery", "Event::Query"));
  return true;
}

absl::Status CudaEvent::Synchronize() const {
  CIPHERD_ASSIGN_OR_RETURN(const bool was_recorded, WasRecorded("Event::Synchronize"));
  if (was_recorded) {
    const ScopedDevice device(context_.ordinal());
    CIPHERD_RETURN_IF_ERROR(
        context_.Check(cudaEventSynchronize(event_), "cudaEventSynchronize", "Event::Synchronize"));
  }
  return context_.health().status();
}

absl::StatusOr<double> CudaEvent::SecondsSince(const Event& start) const {
  const auto* const cuda_start = dynamic_cast<const CudaEvent*>(&start);
  if (cuda_start == nullptr || &cuda_start->context_ != &context_) {
    return absl::InvalidArgumentError("Event::SecondsSince: start is an event of another device");
  }
  const auto not_complete = [] {
    return absl::FailedPreconditionError(
        "Event::SecondsSince: both events must have been recorded and be complete");
  };
  for (const CudaEvent* event : {cuda_start, this}) {
    CIPHERD_ASSIGN_OR_RETURN(const bool was_recorded, event->WasRecorded("Event::SecondsSince"));
    if (!was_recorded) return not_complete();
  }
  CIPHERD_RETURN_IF_ERROR(context_.health().status());
  const ScopedDevice device(context_.ordinal());
  float milliseconds = 0;
  const cudaError_t result = cudaEventElapsedTime(&milliseconds, cuda_start->event_, event_);
  if (result == cudaErrorNotReady) {
    cudaGetLastError();
    return not_complete();
  }
  CIPHERD_RETURN_IF_ERROR(context_.Check(result, "cudaEventElapsedTime", "Event::SecondsSince"));
  return 1e-3 * static_cast<double>(milliseconds);
}

cudaError_t CudaEvent::RecordOn(cudaStream_t stream, Latest latest) {
  std::lock_guard lock(mu_);
  const cudaError_t result = cudaEventRecord(event_, stream);
  if (result == cudaSuccess) latest_ = std::move(latest);
  return result;
}

cudaError_t CudaEvent::RecordInLaunches(cudaStream_t stream) {
  std::lock_guard lock(mu_);
  return cudaEventRecordWithFlags(event_, stream, cudaEventRecordExternal);
}

void CudaEvent::set_launched() {
  std::lock_guard lock(mu_);
  latest_ = EagerRecord{};
}

cudaError_t CudaEvent::WaitOn(cudaStream_t stream) const {
  std::lock_guard lock(mu_);
  return cudaStreamWaitEvent(stream, event_, 0);
}

CudaEvent::Latest CudaEvent::latest() const {
  std::lock_guard lock(mu_);
  return latest_;
}

}  // namespace cipherd::runtime::cuda

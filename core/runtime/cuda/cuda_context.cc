#include "core/runtime/cuda/cuda_context.h"

#include "absl/strings/str_cat.h"

namespace cipherd::runtime::cuda {

namespace {

// Scopes that are open on this thread.
thread_local int scope_count = 0;

// A device that has failed says so again where it is used; here its error would be taken for that
// of a launch on another one.
bool SetCurrent(int ordinal) {
  if (cudaSetDevice(ordinal) == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

}  // namespace

ScopedDevice::ScopedDevice(int ordinal) : previous_(ordinal), is_nested_(scope_count++ > 0) {
  if (cudaGetDevice(&previous_) == cudaSuccess && previous_ == ordinal) return;
  is_changed_ = SetCurrent(ordinal);
}

ScopedDevice::~ScopedDevice() {
  --scope_count;
  if (is_changed_ && is_nested_) SetCurrent(previous_);
}

ScopedRelaxedCapture::ScopedRelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

ScopedRelaxedCapture::~ScopedRelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

std::string Describe(cudaError_t error, std::string_view call) {
  return absl::StrCat(std::string(call), ": ", cudaGetErrorString(error), " (",
                      cudaGetErrorName(error), ")");
}

void CheckCleanup(cudaError_t result, std::string_view call) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  LogCleanupFailure(call, Describe(result, "CUDA"));
}

SpareEvents::~SpareEvents() {
  const ScopedDevice device(ordinal_);
  std::lock_guard lock(mu_);
  for (cudaEvent_t event : events_) CheckCleanup(cudaEventDestroy(event), "cudaEventDestroy");
}

cudaEvent_t SpareEvents::Take() {
  std::lock_guard lock(mu_);
  if (events_.empty()) return nullptr;
  const cudaEvent_t event = events_.back();
  events_.pop_back();
  return event;
}

bool SpareEvents::Give(cudaEvent_t event) {
  std::lock_guard lock(mu_);
  if (events_.size() >= kMaxCount) return false;
  events_.push_back(event);
  return true;
}

absl::Status CudaContext::Check(cudaError_t result, std::string_view call, std::string_view where) {
  if (result == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  const absl::Status failure = absl::InternalError(
      absl::StrCat("cuda:", ordinal_, ", ", std::string(where), ": ", Describe(result, call)));
  health_.Report(failure);
  return failure;
}

}  // namespace cipherd::runtime::cuda

#include "core/runtime/cuda/cuda_progress.h"

#include "core/runtime/cuda/cuda_context.h"

namespace cipherd::runtime::cuda {
namespace {

// The position of work whose end nobody can learn, because the device failed.
constexpr uint64_t kNever = UINT64_MAX;
// So many markers wait at most before Mark itself looks which have passed.
constexpr size_t kMaxMarkers = 64;

}  // namespace

uint64_t CudaProgress::Mark() {
  std::lock_guard lock(mu_);
  if (stream_ == nullptr) return marked_;
  if (is_capturing_) return capture_position_;
  return RecordMarker();
}

bool CudaProgress::HasPassed(uint64_t position) {
  std::lock_guard lock(mu_);
  if (stream_ == nullptr || passed_ >= position) return true;
  CollectPassed();
  return passed_ >= position;
}

void CudaProgress::BeginCapture() {
  std::lock_guard lock(mu_);
  capture_position_ = RecordMarker();
  is_capturing_ = true;
}

void CudaProgress::EndCapture() {
  std::lock_guard lock(mu_);
  is_capturing_ = false;
}

void CudaProgress::Close() {
  std::lock_guard lock(mu_);
  if (stream_ == nullptr) return;
  stream_ = nullptr;
  const ScopedDevice device(ordinal_);
  const ScopedRelaxedCapture relaxed;
  // A stream destroyed inside a capture cannot be synchronised; its last marker can.
  if (!markers_.empty()) {
    CheckCleanup(cudaEventSynchronize(markers_.back().event), "cudaEventSynchronize");
  }
  for (const Marker& marker : markers_) spare_events_.push_back(marker.event);
  markers_.clear();
  for (cudaEvent_t event : spare_events_) CheckCleanup(cudaEventDestroy(event), "cudaEventDestroy");
  spare_events_.clear();
}

uint64_t CudaProgress::RecordMarker() {
  const ScopedDevice device(ordinal_);
  const ScopedRelaxedCapture relaxed;
  if (markers_.size() >= kMaxMarkers) CollectPassed();
  cudaEvent_t event = nullptr;
  if (!spare_events_.empty()) {
    event = spare_events_.back();
    spare_events_.pop_back();
  } else if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) {
    return kNever;
  }
  if (cudaEventRecord(event, stream_) != cudaSuccess) {
    spare_events_.push_back(event);
    return kNever;
  }
  markers_.push_back({++marked_, event});
  return marked_;
}

void CudaProgress::CollectPassed() {
  const ScopedDevice device(ordinal_);
  const ScopedRelaxedCapture relaxed;
  while (!markers_.empty() && cudaEventQuery(markers_.front().event) == cudaSuccess) {
    passed_ = markers_.front().position;
    spare_events_.push_back(markers_.front().event);
    markers_.pop_front();
  }
  // "Not ready" is an answer, and must not be taken for an error of the next call.
  cudaGetLastError();
}

}  // namespace cipherd::runtime::cuda

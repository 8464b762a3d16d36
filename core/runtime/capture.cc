#include "core/runtime/capture.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace cipherd::runtime {
namespace {

std::shared_ptr<Capture>& ThreadCapture() {
  thread_local std::shared_ptr<Capture> capture;
  return capture;
}

}  // namespace

absl::Status CapturedMemory::CheckLiveness() const {
  for (const auto& [address, storage] : outside_blocks) {
    if (storage.expired()) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "graph: the block at %p, which captured work touches, has been freed", address));
    }
  }
  return absl::OkStatus();
}

Capture::Capture(std::string_view origin_name, bool check_liveness, const MemoryPools& pools)
    : origin_name_(origin_name), check_liveness_(check_liveness), pools_(pools) {
  members_.push_back({origin_name_, CaptureClock(1, 0)});
  memory_.pool = pools_.device->OpenCapture();
}

std::shared_ptr<Capture> Capture::OfThisThread() {
  std::shared_ptr<Capture>& capture = ThreadCapture();
  // A capture whose origin was destroyed elsewhere has ended without this thread.
  if (capture != nullptr && capture->has_ended()) capture.reset();
  return capture;
}

absl::Status Capture::BindToThisThread(std::shared_ptr<Capture> capture) {
  if (const std::shared_ptr<Capture> current = OfThisThread(); current != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("BeginCapture: this thread captures stream '",
                                                      current->origin_name(), "' already"));
  }
  ThreadCapture() = std::move(capture);
  return absl::OkStatus();
}

void Capture::UnbindFromThisThread() { ThreadCapture().reset(); }

void Capture::Invalidate(std::string_view cause) {
  std::lock_guard lock(mu_);
  InvalidateLocked(cause);
}

void Capture::InvalidateLocked(std::string_view cause) {
  if (invalid_cause_.empty()) invalid_cause_ = std::string(cause);
}

absl::Status Capture::Refuse(std::string_view call, std::string_view reason) {
  const std::string cause = absl::StrCat(std::string(call), ": ", std::string(reason));
  Invalidate(cause);
  return absl::FailedPreconditionError(cause);
}

bool Capture::has_ended() const {
  std::lock_guard lock(mu_);
  return has_ended_;
}

size_t Capture::AddMember(std::string_view name, const CaptureClock& clock) {
  std::lock_guard lock(mu_);
  const size_t member = members_.size();
  members_.push_back({std::string(name), clock});
  members_.back().clock.resize(member + 1, 0);
  members_.back().clock[member] = 1;
  return member;
}

void Capture::RemoveMember(size_t member) {
  std::lock_guard lock(mu_);
  members_[member].is_present = false;
  InvalidateLocked(absl::StrCat("stream '", members_[member].name, "' was destroyed"));
}

void Capture::AddWork(size_t member) {
  std::lock_guard lock(mu_);
  ++members_[member].clock[member];
}

CaptureClock Capture::ClockOf(size_t member) const {
  std::lock_guard lock(mu_);
  return members_[member].clock;
}

void Capture::Advance(size_t member, const CaptureClock& clock) {
  std::lock_guard lock(mu_);
  CaptureClock& own = members_[member].clock;
  own.resize(std::max(own.size(), clock.size()), 0);
  for (size_t i = 0; i < clock.size(); ++i) own[i] = std::max(own[i], clock[i]);
}

absl::Status Capture::CheckRange(std::string_view call, const void* address, size_t bytes,
                                 const SlabPool::Location& location) {
  if (!check_liveness_) return absl::OkStatus();
  if (location.kind != SlabPool::Location::Kind::kLive) {
    const std::string cause = absl::StrFormat("%s: the %d bytes at %p are not inside a live block",
                                              std::string(call), bytes, address);
    InvalidateLocked(cause);
    return absl::FailedPreconditionError(cause);
  }
  if (location.capture != memory_.pool.get()) {
    memory_.outside_blocks[location.block] = location.storage;
  }
  return absl::OkStatus();
}

absl::Status Capture::CheckAccesses(std::span<const MemoryAccess> accesses) {
  if (!check_liveness_) return absl::OkStatus();
  for (const MemoryAccess& access : accesses) {
    if (access.bytes == 0) continue;
    const SlabPool::Location location = pools_.Locate(access.address, access.bytes);
    std::lock_guard lock(mu_);
    if (absl::Status status =
            CheckRange("Stream::DeclareAccess", access.address, access.bytes, location);
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Capture::CheckTransferSide(std::string_view call, const void* address, size_t bytes) {
  const SlabPool::Location location = pools_.Locate(address, bytes);
  if (location.kind == SlabPool::Location::Kind::kOutside) {
    return Refuse(call,
                  absl::StrFormat("the %d bytes at %p are pageable memory, which a capture may "
                                  "not touch; use pinned or device memory of this device",
                                  bytes, address));
  }
  std::lock_guard lock(mu_);
  return CheckRange(call, address, bytes, location);
}

absl::Status Capture::End(CapturedMemory& memory) {
  std::string cause;
  CapturedMemory own;
  {
    std::lock_guard lock(mu_);
    has_ended_ = true;
    const CaptureClock& end = members_[kOrigin].clock;
    for (size_t i = 0; i < members_.size(); ++i) {
      const Member& member = members_[i];
      const uint64_t joined = i < end.size() ? end[i] : 0;
      if (member.is_present && joined < member.clock[i]) {
        InvalidateLocked(absl::StrCat("forked stream '", member.name, "' has work that stream '",
                                      origin_name_, "' does not wait for"));
      }
    }
    cause = invalid_cause_;
    own = std::move(memory_);
  }
  if (!cause.empty()) {
    return absl::InternalError(
        absl::StrCat("capture of stream '", origin_name_, "' failed: ", cause));
  }
  memory = std::move(own);
  return absl::OkStatus();
}

absl::Status RefuseWhileCapturing(std::string_view call) {
  const std::shared_ptr<Capture> capture = Capture::OfThisThread();
  if (capture == nullptr) return absl::OkStatus();
  return capture->Refuse(call, absl::StrCat("forbidden while this thread captures stream '",
                                            capture->origin_name(), "'"));
}

absl::Status RefuseWhileCapturing(std::string_view call, Capture* current) {
  CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing(call));
  if (current == nullptr) return absl::OkStatus();
  return current->Refuse(call, absl::StrCat("the stream takes part in the capture of stream '",
                                            current->origin_name(), "'"));
}

absl::Status CheckWaitOnCaptured(const Capture* recorded_in, Capture* current) {
  if (current != nullptr && current != recorded_in) {
    return current->Refuse("Stream::Wait", "the event was recorded in another capture");
  }
  if (recorded_in == nullptr || recorded_in->has_ended()) {
    return absl::FailedPreconditionError(
        "Stream::Wait: the event was last recorded in a capture that has ended");
  }
  return absl::OkStatus();
}

absl::Status CheckEndCapture(const Capture* current, size_t member) {
  if (current == nullptr || member != Capture::kOrigin) {
    return absl::FailedPreconditionError("Stream::EndCapture: no capture began on this stream");
  }
  if (Capture::OfThisThread().get() != current) {
    return absl::FailedPreconditionError(
        "Stream::EndCapture: must be called on the thread that began the capture");
  }
  return absl::OkStatus();
}

absl::Status CheckAllocate(const Capture* current) {
  if (current != nullptr && Capture::OfThisThread().get() == current) return absl::OkStatus();
  return RefuseWhileCapturing("Device::Allocate");
}

}  // namespace cipherd::runtime

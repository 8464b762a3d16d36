// The rules of a capture that do not depend on the device: which thread it binds, what invalidates
// it, whether every forked stream has rejoined, and which memory its work touches.
//
//   if (absl::Status s = RefuseWhileCapturing("Stream::Synchronize"); !s.ok()) return s;
//
// A device's streams derive from it or hold one, and add how work is recorded. Shared by the
// streams that joined and by the events recorded in them. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/runtime/memory_pools.h"
#include "core/runtime/stream.h"

namespace cipherd::runtime {

// How much of each stream's captured work lies before a point: entry i counts the work of member i.
// Entries beyond the end are 0.
using CaptureClock = std::vector<uint64_t>;

// What a graph keeps of its capture: the blocks that it reserves, and references to the blocks of
// others that its work touches.
struct CapturedMemory {
  std::unique_ptr<CapturePool> pool;
  std::map<const void*, std::weak_ptr<Storage>> outside_blocks;

  // FailedPrecondition, naming the address, where one of outside_blocks has been freed.
  absl::Status CheckLiveness() const;
};

class Capture {
 public:
  static constexpr size_t kOrigin = 0;

  Capture(std::string_view origin_name, bool check_liveness, const MemoryPools& pools);
  virtual ~Capture() = default;
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // The capture that the calling thread began and has not ended, or null.
  static std::shared_ptr<Capture> OfThisThread();
  // Makes `capture` that of the calling thread. FailedPrecondition where it captures already.
  static absl::Status BindToThisThread(std::shared_ptr<Capture> capture);
  static void UnbindFromThisThread();

  // The first cause stays; the capture will fail with it.
  void Invalidate(std::string_view cause);
  // Invalidates with "`call`: `reason`" and returns the same as FailedPrecondition.
  absl::Status Refuse(std::string_view call, std::string_view reason);

  // After End, events recorded in this capture are stale.
  bool has_ended() const;

  // Members. A stream that joins has work at once, so that it must be waited for.
  size_t AddMember(std::string_view name, const CaptureClock& clock);
  void RemoveMember(size_t member);
  void AddWork(size_t member);
  CaptureClock ClockOf(size_t member) const;
  // Orders later work of `member` after the point `clock`.
  void Advance(size_t member, const CaptureClock& clock);

  // Refuses ranges that are not wholly inside live blocks where liveness is checked.
  absl::Status CheckAccesses(std::span<const MemoryAccess> accesses);
  // As above for one side of a copy or fill, and refuses pageable memory.
  absl::Status CheckTransferSide(std::string_view call, const void* address, size_t bytes);

  // Ends the capture. OK with what the graph keeps in `memory`; Internal, naming the cause, where
  // it was invalidated or a member has not rejoined, and then the pool is given back.
  absl::Status End(CapturedMemory& memory);

  CapturePool* pool() const { return memory_.pool.get(); }
  const std::string& origin_name() const { return origin_name_; }

 private:
  struct Member {
    std::string name;
    CaptureClock clock;
    bool is_present = true;
  };

  absl::Status CheckRange(std::string_view call, const void* address, size_t bytes,
                          const SlabPool::Location& location) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void InvalidateLocked(std::string_view cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string origin_name_;
  const bool check_liveness_;
  const MemoryPools pools_;

  mutable std::mutex mu_;
  std::string invalid_cause_ ABSL_GUARDED_BY(mu_);
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Member> members_ ABSL_GUARDED_BY(mu_);
  // `pool` is set once by the constructor and taken by End.
  CapturedMemory memory_;
};

// For each call that is forbidden on a thread that captures: invalidates this thread's capture and
// returns FailedPrecondition, or OK where it has none.
absl::Status RefuseWhileCapturing(std::string_view call);

// The same for calls on a stream, which are forbidden on a stream that takes part in a capture
// (`current`, or null) also where another thread began that.
absl::Status RefuseWhileCapturing(std::string_view call, Capture* current);

// Stream::Wait on an event that was last recorded in the capture `recorded_in` (null where that is
// gone), by a stream that takes part in `current` (or null): refuses stale records and merging of
// captures.
absl::Status CheckWaitOnCaptured(const Capture* recorded_in, Capture* current);

// Stream::EndCapture on member `member` of `current` (or null): refuses where no capture began on
// this stream and thread.
absl::Status CheckEndCapture(const Capture* current, size_t member);

// Device::Allocate for a stream that takes part in `current` (or null): on a thread that captures,
// only streams of its capture may have memory.
absl::Status CheckAllocate(const Capture* current);

}  // namespace cipherd::runtime

// Which key sets are in the memory of one device, within a budget.
//
//   if (std::optional<KeyResidency::Pin> pin = residency.TryPin(keys)) {
//     CIPHERD_RETURN_IF_ERROR(residency.EnsureLoaded(*pin, transfer));   // enqueues copies, once
//     CIPHERD_RETURN_IF_ERROR(compute.Wait(pin->loaded_event()));
//     ... pin->device_keys() ...                                          // addresses
//   }                                                                     // may be evicted
//   afterwards
//
// A pinned set stays where it is. Room for another one is made by evicting sets that nobody pins,
// least recently used first; where that is not enough, TryPin gives nothing and the caller tries
// again after a pin has gone. The budget is charged before memory is allocated. A set is copied
// once however many ask for it.
//
// A pin is held until the device has done all that reads the keys; it keeps the set in host memory,
// too, from where it is copied. A set that nobody pins is here on its own: host memory may make
// room. A set that its tenant dropped leaves with its last pin. What leaves is overwritten before
// its memory is used for anything else. Thread-safe; outlives its pins.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/ckks/key_set.h"
#include "core/runtime/device.h"
#include "core/runtime/event.h"
#include "core/runtime/stream.h"
#include "server/engine/key_set.h"

namespace cipherd::engine {

class KeyResidency {
  struct Entry;

 public:
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept
        : residency_(std::exchange(other.residency_, nullptr)),
          entry_(std::exchange(other.entry_, nullptr)) {}
    Pin& operator=(Pin&& other) noexcept;
    ~Pin() { Release(); }

    // After EnsureLoaded.
    const ckks::KeySet& device_keys() const;
    const runtime::Event& loaded_event() const;

    // Idempotent.
    void Release();

   private:
    friend class KeyResidency;
    Pin(KeyResidency* residency, Entry* entry) : residency_(residency), entry_(entry) {}

    KeyResidency* residency_ = nullptr;
    Entry* entry_ = nullptr;
  };

  struct Stats {
    int64_t used_bytes = 0;
    int64_t budget_bytes = 0;
    uint64_t hits = 0;   // pins of a set that was here
    uint64_t loads = 0;  // copies of a set to the device
    uint64_t evictions = 0;
    uint64_t refusals = 0;  // of TryPin, for want of room
  };

  // `on_release` runs after each pin has gone, without a lock.
  KeyResidency(runtime::Device& device, int64_t budget_bytes,
               std::function<void()> on_release = nullptr);
  ~KeyResidency();

  // Nothing where the room that `keys` needs is pinned. Bookkeeping only: no memory is allocated
  // and no work enqueued. Does not block.
  std::optional<Pin> TryPin(const KeySetRef& keys);

  // How `keys` stand here, at this moment.
  struct Standing {
    // There, or on their way.
    bool is_here = false;
    // Here, or TryPin would find room.
    bool has_room = false;
    // Of all sets that are here.
    int64_t used_bytes = 0;
  };
  Standing StandingOf(const KeySetInfo& keys) const;

  // Enqueues the copies of the set on `stream` unless somebody has, and before them the wiping of
  // what made room. After an error the set is not here, and the next one who pins it tries again.
  absl::Status EnsureLoaded(Pin& pin, runtime::Stream& stream);

  // `keys` has been dropped: leaves now, or with its last pin.
  void Forget(const KeySetInfo& keys);

  Stats stats() const;

 private:
  struct Entry {
    KeySetInfoRef info;
    int pins = 0;  // guarded by mu_
    // Until it has been copied and nobody pins it: host memory is wiped when it is let go. Guarded
    // by mu_; the holder of a pin may read it.
    KeySetRef host;
    // Its copy has been seen to be complete: the device is not asked again. Guarded by mu_.
    bool is_copied = false;
    // Position in lru_ while nobody pins it, else in pinned_. Guarded by mu_.
    std::list<Entry*>::iterator position;
    // Serialises the load; taken without mu_.
    absl::Mutex load_mu;
    std::shared_ptr<runtime::Event> loaded;  // null until enqueued
    ckks::KeySet device_keys;
  };

  absl::Status Load(Entry& entry, runtime::Stream& stream);
  void Unpin(Entry* entry) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether evicting what nobody pins makes room for `bytes`.
  bool HasRoomFor(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return pinned_bytes_ + bytes <= budget_bytes_;
  }
  // Whether the device reads nothing of it from host memory any more.
  static bool IsCopied(Entry& entry);
  // Of sets whose pins were given up before.
  void LetGoOfCopied(std::vector<KeySetRef>& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Overwrites the set's words on `stream`, after all that has been enqueued there, and lets go of
  // them. Nobody pins it: its readers are done. Where the device refuses, they are let go as they
  // are.
  static void Wipe(Entry& entry, runtime::Stream& stream);
  // The same on a stream of its own, for sets that leave while none comes.
  void Wipe(Entry& entry) ABSL_LOCKS_EXCLUDED(wipe_mu_);
  // Takes an entry that nobody pins out of the books, for the caller to destroy without the lock.
  std::unique_ptr<Entry> Remove(Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  runtime::Device& device_;
  const int64_t budget_bytes_;
  const std::function<void()> on_release_;

  absl::Mutex wipe_mu_;
  std::unique_ptr<runtime::Stream> wiping_ ABSL_GUARDED_BY(wipe_mu_);  // made when it is needed

  mutable absl::Mutex mu_;
  std::map<const KeySetInfo*, std::unique_ptr<Entry>> entries_ ABSL_GUARDED_BY(mu_);
  // Entries that nobody pins, least recently used first.
  std::list<Entry*> lru_ ABSL_GUARDED_BY(mu_);
  std::list<Entry*> pinned_ ABSL_GUARDED_BY(mu_);
  int64_t pinned_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Whether an entry that nobody pins may still have its host memory.
  bool has_uncopied_ ABSL_GUARDED_BY(mu_) = false;
  // Made room, and are to be wiped by whoever loads next.
  std::vector<std::unique_ptr<Entry>> evicted_ ABSL_GUARDED_BY(mu_);
  Stats stats_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::engine

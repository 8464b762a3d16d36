// What each of several devices has to do, for placement.h; an engine with one device has none of
// it.
//
//   const DeviceLoads::View view = loads.Look(program);
//   if (!view.Decide(device, request, waiting, claimed).is_here) ...   // another one's
//   DeviceLoads::Charge charge = loads.Begin(device, seconds);       // until the batch is done
//
// Look looks at other workers and is called under the scheduler's lock, under which they begin and
// end to ask for work: what it says of them holds until that lock is let go, and the view no
// longer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "server/engine/key_residency.h"
#include "server/engine/placement.h"
#include "server/engine/request.h"

namespace cipherd::engine {

class Worker;

class DeviceLoads {
  struct Device {
    explicit Device(const KeyResidency& keys) : keys(keys) {}

    const KeyResidency& keys;
    std::vector<const Worker*> workers;
    std::atomic<int64_t> backlog_nanoseconds = 0;
    std::atomic<int> in_flight = 0;
  };

 public:
  // A batch under way.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept
        : device_(std::exchange(other.device_, nullptr)), nanoseconds_(other.nanoseconds_) {}
    Charge& operator=(Charge&& other) noexcept;
    ~Charge() { Release(); }

    bool is_charged() const { return device_ != nullptr; }
    // Idempotent.
    void Release();

   private:
    friend class DeviceLoads;
    Charge(Device* device, int64_t nanoseconds);

    Device* device_ = nullptr;
    int64_t nanoseconds_ = 0;
  };

  struct Decision {
    // The device that asks is to run it (or none can, for want of room).
    bool is_here = true;
    // What it costs the device, beside running it.
    absl::Duration load_cost;
    // When the answer may become another one though nothing happens.
    absl::Time look_again = absl::InfiniteFuture();
  };

  // The devices as requests of one program see them; what is of their keys is asked for with each.
  class View {
   public:
    // Whether `device` is to run `request`, whose tenant has `waiting` requests of the program
    // queued, itself included. The device has `claimed` to do besides: of the batch that it forms.
    Decision Decide(size_t device, const Request& request, size_t waiting,
                    absl::Duration claimed) const;

   private:
    friend class DeviceLoads;
    static constexpr size_t kUsualDeviceCount = 8;

    View(const DeviceLoads& loads, absl::Time now) : loads_(loads), now_(now) {}

    const DeviceLoads& loads_;
    const absl::Time now_;
    absl::InlinedVector<DeviceLoad, kUsualDeviceCount> devices_;
  };

  // Of the devices' key residencies, which outlive this, as does `clock`.
  DeviceLoads(const std::vector<std::unique_ptr<KeyResidency>>& keys,
              double key_load_bytes_per_second, const base::Clock& clock);

  // Before the first request.
  void AddWorker(size_t device, const Worker& worker);

  View Look(const ServedProgram& program) const;

  // Enters a batch that will take about `expected`.
  Charge Begin(size_t device, absl::Duration expected);

  // Of batches under way.
  int in_flight(size_t device) const { return devices_[device]->in_flight.load(); }

 private:
  const double key_load_bytes_per_second_;
  const base::Clock& clock_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace cipherd::engine

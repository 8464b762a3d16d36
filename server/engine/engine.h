// The serving engine: programs, workers and key sets behind one request interface. Free of gRPC and
// protobuf, so that it is tested, measured and run under ThreadSanitizer in process.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto engine, Engine::Create(std::move(devices), options, clock));
//   CIPHERD_RETURN_IF_ERROR(engine->AddProgram(program));      // known, not ready
//   CIPHERD_RETURN_IF_ERROR(engine->LoadProgram("mlp"));       // captured, verified, ready
//
//   RequestPtr request = engine->Open(head);                   // counted from here on
//   CIPHERD_RETURN_IF_ERROR(engine->Admit(*request));          // else request->Finish(kReceiving,
//   …)
//   ... write request->inputs() ...
//   engine->Submit(request, [request](const absl::Status& status) {
//     if (!status.ok()) return;                                // ended already
//     ... read request->outputs() ...
//     request->Finish(RequestState::kReplying, absl::OkStatus());
//   });
//
// Versions. Several versions of a program may be here at once; a request that names none gets the
// newest that is ready, one that names one exactly that. Programs are loaded, replaced and unloaded
// while others (and older versions of the same one) serve: capture and verification run on streams
// of their own.
//
// Devices. There may be several, each with workers, instances, constants and key sets of its own;
// requests, queues, key sets in host memory and the books are one. placement.h says where a request
// runs. What every device can read, the pinned memory of requests and keys, is the first device's.
// A program serves while some device serves it; one that has failed for good takes no part any
// more.
//
// Ownership: the engine owns its devices and outlives every request and key reference that it gave
// out. Thread-safe; one thread at a time loads or unloads one program. LoadProgram, ReplaceProgram,
// UnloadProgram and Drain block, nothing else does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/runtime/device.h"
#include "server/engine/device_loads.h"
#include "server/engine/engine_options.h"
#include "server/engine/key_residency.h"
#include "server/engine/key_store.h"
#include "server/engine/program.h"
#include "server/engine/request.h"
#include "server/engine/request_ledger.h"
#include "server/engine/scheduler.h"
#include "server/engine/serving_settings.h"
#include "server/engine/tenant_quotas.h"
#include "server/engine/worker.h"

namespace cipherd::engine {

class Engine {
 public:
  using Devices = std::vector<std::unique_ptr<runtime::Device>>;

  // Opens the key store and creates the workers; no program yet. InvalidArgument for no device.
  // `clock` outlives the engine.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(Devices devices,
                                                        const EngineOptions& options,
                                                        const base::Clock& clock);
  static absl::StatusOr<std::unique_ptr<Engine>> Create(std::unique_ptr<runtime::Device> device,
                                                        const EngineOptions& options,
                                                        const base::Clock& clock);
  // Ends what is left with UNAVAILABLE and stops.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Called when a program has become ready (some version of it has) or has ceased to be, on the
  // thread that made it so. To be set before the first program is loaded.
  void set_readiness_listener(std::function<void(std::string_view program, bool ready)> listener) {
    readiness_listener_ = std::move(listener);
  }

  // Makes `program` known and allocates the pinned trees of its requests. InvalidArgument for a
  // name and version that are taken, and for settings; FailedPrecondition for keys that no tier
  // could hold; ResourceExhausted where pinned memory does not suffice.
  absl::Status AddProgram(std::shared_ptr<const Program> program, const ServingSettings& settings)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status AddProgram(std::shared_ptr<const Program> program) {
    return AddProgram(std::move(program), options_.DefaultServing());
  }
  // Captures and verifies the instances of every worker on all devices that have not failed, then
  // makes the program ready; the newest version that is known where none is named. NotFound, or why
  // some device could not that has not failed by that: then no device holds memory of this call.
  absl::Status LoadProgram(std::string_view name, int64_t version = 0) ABSL_LOCKS_EXCLUDED(mu_);
  // Adds and loads `program` beside the versions of it that are here (one of the same number
  // included); then unloads those, letting their requests complete. After an error of the former
  // everything is as before; DeadlineExceeded where old requests outlast `timeout`. `on_ready` is
  // called when the new one serves and the old ones still let requests in, before the readiness
  // listener hears of it.
  absl::Status ReplaceProgram(std::shared_ptr<const Program> program,
                              const ServingSettings& settings, absl::Duration timeout,
                              const std::function<void()>& on_ready = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The same, but of the versions that are here only those of `replaced` go: none where the new one
  // is to serve beside them all. What is in `replaced` and not here is passed over.
  absl::Status ReplaceVersions(std::shared_ptr<const Program> program,
                               const ServingSettings& settings,
                               std::span<const std::shared_ptr<const Program>> replaced,
                               absl::Duration timeout,
                               const std::function<void()>& on_ready = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Lets no more requests in, waits until those under way have ended, and gives everything up that
  // the version holds. NotFound; DeadlineExceeded, and may be called again, where `timeout` passes
  // first.
  absl::Status UnloadProgram(std::string_view name, int64_t version, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Unloads exactly this one, whatever else has its name and version.
  absl::Status UnloadProgram(const Program& program, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The newest version that is ready (without one, the newest known) where none is named. NotFound.
  absl::StatusOr<std::shared_ptr<ServedProgram>> FindProgram(std::string_view name,
                                                             int64_t version = 0) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // "served: 'mlp', 'tumour'", or versions where the program has some: for messages.
  std::string DescribeServed(std::string_view name) const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether requests for exactly this one are let in.
  bool IsReady(const Program& program) const ABSL_LOCKS_EXCLUDED(mu_);
  // In the order in which they were added.
  std::vector<std::shared_ptr<ServedProgram>> programs() const ABSL_LOCKS_EXCLUDED(mu_);

  KeyStore& keys() { return *key_store_; }
  const KeyStore& keys() const { return *key_store_; }

  // Enters a request in the ledger, under its program's name, or "unknown" for one that is not
  // here; its deadline becomes what the settings of the version that it asks for make of it.
  RequestPtr Open(RequestHead head);
  // Grants what the request needs: a ready program (else NotFound, Unavailable), room in the
  // tenant's quotas (ResourceExhausted), the tenant's key set (NotFound; none need be named for a
  // program that reads none) of the program's context with every key that it reads
  // (InvalidArgument, FailedPrecondition), and pinned trees (ResourceExhausted). Keys that are on
  // file only are on their way to host memory from here on. In kReceiving; after an error the
  // caller finishes the request. `only`: the inputs were checked against this program, and no other
  // version will do (Unavailable).
  absl::Status Admit(Request& request, const Program* only = nullptr);
  // Queues an admitted request whose inputs are complete, once its keys are in host memory; until
  // then it stays in kReceiving. `continuation` is called exactly once,
  // maybe before this returns: with OK in kReplying, when the caller reads the outputs and finishes
  // the request; else with the status that the request ended with.
  void Submit(const RequestPtr& request, Request::Continuation continuation);
  // Ends the request as soon as its state allows (request_state.h). Any time, any thread.
  void Cancel(const RequestPtr& request);

  // Admits nothing more, and waits until every request has ended or `timeout` has passed; then ends
  // what is still queued with UNAVAILABLE. False where requests are in flight after that.
  bool Drain(absl::Duration timeout);
  bool is_draining() const ABSL_LOCKS_EXCLUDED(mu_);
  // Drains without patience, stops the workers and closes the pools. FailedPrecondition naming what
  // leaked. Idempotent.
  absl::Status Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // Whether Request::timeline is filled from now on: for measurements, since it takes time.
  void RecordTimelines(bool on) { records_timelines_.store(on); }

  size_t device_count() const { return devices_.size(); }
  const runtime::Device& device(size_t index = 0) const { return *devices_[index]; }
  const RequestLedger& ledger() const { return ledger_; }
  const TenantQuotas& quotas() const { return quotas_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  // Null for one device.
  const DeviceLoads* device_loads() const { return loads_.get(); }
  const KeyResidency& key_residency(size_t device = 0) const { return *key_residencies_[device]; }
  const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  const EngineOptions& options() const { return options_; }
  const base::Clock& clock() const { return clock_; }

 private:
  Engine(Devices devices, const EngineOptions& options, const base::Clock& clock);
  using ServedPtr = std::shared_ptr<ServedProgram>;

  absl::StatusOr<ServedPtr> Add(std::shared_ptr<const Program> program,
                                const ServingSettings& settings);
  absl::Status Load(ServedProgram& served, const std::function<void()>& on_ready)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Replace(std::shared_ptr<const Program> program, const ServingSettings& settings,
                       const std::vector<ServedPtr>& old, absl::Duration timeout,
                       const std::function<void()>& on_ready) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Unload(const ServedPtr& served, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  // What a program has on one device: constants, and instances for each worker there.
  struct DeviceProgram {
    std::shared_ptr<const ProgramBinding> binding;
    std::vector<std::unique_ptr<ProgramPool>> pools;
  };
  absl::StatusOr<DeviceProgram> LoadOn(size_t device, const ServedProgram& served);
  // By device; of one that has failed for good, before or by this, nothing. The first error of the
  // others, or of all.
  absl::StatusOr<std::vector<DeviceProgram>> LoadOnAll(const ServedProgram& served);
  absl::StatusOr<std::unique_ptr<ProgramPool>> BuildPool(size_t device, const ServedProgram& served,
                                                         const ProgramBinding& binding);
  // In the memory of all devices.
  size_t AllocatedDeviceBytes() const;
  ServedPtr Find(std::string_view name,
                 const std::function<bool(const ServedProgram&)>& accepts) const
      ABSL_LOCKS_EXCLUDED(mu_);
  ServedPtr Find(const Program& program) const ABSL_LOCKS_EXCLUDED(mu_);

  // What `head` asks for (Admit). NotFound, Unavailable.
  absl::StatusOr<ServedPtr> FindReady(const RequestHead& head, const Program* only) const
      ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status OpenKeyStore();
  absl::Status CreateWorkers();
  Worker::Environment WorkerEnvironment(size_t device);
  // Of a device that takes part no more, why; of all of them together, OK while one does.
  absl::Status DeviceHealth(size_t device) const { return devices_[device]->health(); }
  absl::Status DeviceHealth() const;
  // With its keys, or ends it with why it has none.
  void Enqueue(const RequestPtr& request, const absl::StatusOr<KeySetRef>& keys);
  void OnWorkerFault(const absl::Status& cause) ABSL_LOCKS_EXCLUDED(mu_);
  // Whoever has found the failure: a worker, a load.
  void EndWorkersOfFailedDevices();
  void OnWorkerRebuild(const absl::Status& rebuilt) ABSL_LOCKS_EXCLUDED(mu_);
  // On a device that has not failed.
  bool AnyWorkerServes() const;
  // Works out whether `served` is ready, and tells the listener where its name's readiness changed.
  // `before_told` is called between the change and the listener's hearing of it.
  void UpdateReadiness(ServedProgram& served, const std::function<void()>& before_told = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_, readiness_mu_);
  void UpdateReadiness() ABSL_LOCKS_EXCLUDED(mu_, readiness_mu_);

  const EngineOptions options_;
  const base::Clock& clock_;
  // In the order of construction: each uses those above it.
  const Devices devices_;
  std::atomic<bool> records_timelines_ = false;
  RequestLedger ledger_;
  TenantQuotas quotas_;
  std::unique_ptr<KeyStore> key_store_;
  // By device. What they hold of sets in host memory goes before its device does.
  std::vector<std::unique_ptr<KeyResidency>> key_residencies_;
  // Null for one device.
  std::unique_ptr<DeviceLoads> loads_;
  std::unique_ptr<Scheduler> scheduler_;
  // Stands for the keys of programs that read none.
  const KeySetRef no_keys_ = std::make_shared<const StoredKeySet>(
      StoredKeySet{.info = std::make_shared<KeySetInfo>(), .charge = {}, .keys = {}});

  mutable absl::Mutex mu_;
  std::vector<ServedPtr> programs_ ABSL_GUARDED_BY(mu_);
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void(std::string_view, bool)> readiness_listener_;
  // Held while the listener is told, so that it hears of changes in their order.
  absl::Mutex readiness_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  std::map<std::string, bool> told_ready_ ABSL_GUARDED_BY(readiness_mu_);

  // Those of the first device, then those of the second, and so on.
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace cipherd::engine

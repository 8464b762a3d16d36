// The serving engine: programs, workers and key sets behind one request interface. Free of gRPC and
// protobuf, so that it is tested, measured and run under ThreadSanitizer in process.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto engine, Engine::Create(std::move(device), options));
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
// Ownership: the engine owns its device and outlives every request and key reference that it gave
// out. Thread-safe. LoadProgram and Drain block, nothing else does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
#include "server/engine/key_residency.h"
#include "server/engine/key_store.h"
#include "server/engine/program.h"
#include "server/engine/request.h"
#include "server/engine/request_ledger.h"
#include "server/engine/scheduler.h"
#include "server/engine/worker.h"

namespace cipherd::engine {

struct KeyOptions {
  // Of all key sets in pinned host memory, and of those resident on the device.
  int64_t host_budget_bytes = int64_t{8} << 30;
  int64_t device_budget_bytes = int64_t{4} << 30;
};

struct EngineOptions {
  int workers = 1;
  // Of each program on each worker. Three keep transfer, compute and output busy at once.
  int instances = 3;
  // Requests of one program that may wait while every instance is busy.
  int queue_capacity = 32;
  // Uncaptured runs before each capture.
  int warmup = 1;
  KeyOptions keys;

  absl::Status Validate() const;

  // Requests of one program between header and last byte of reply: those that wait and those that
  // run. Each holds pinned trees, also while it is received or replied to.
  int place_count() const { return queue_capacity + workers * instances; }
};

class Engine {
 public:
  // Creates the workers; no program yet. `clock` outlives the engine.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(std::unique_ptr<runtime::Device> device,
                                                        const EngineOptions& options,
                                                        const base::Clock& clock);
  // Ends what is left with UNAVAILABLE and stops.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Called when a program has become ready or has ceased to be, on the thread that made it so. To
  // be set before the first program is loaded.
  void set_readiness_listener(std::function<void(std::string_view program, bool ready)> listener) {
    readiness_listener_ = std::move(listener);
  }

  // Makes `program` known and allocates the pinned trees of its requests. InvalidArgument for a
  // name that is taken; ResourceExhausted where pinned memory does not suffice.
  absl::Status AddProgram(std::shared_ptr<const Program> program) ABSL_LOCKS_EXCLUDED(mu_);
  // Captures and verifies the instances of every worker, then makes the program ready. NotFound, or
  // why it could not be captured.
  absl::Status LoadProgram(std::string_view name) ABSL_LOCKS_EXCLUDED(mu_);

  // NotFound (unknown program).
  absl::StatusOr<std::shared_ptr<ServedProgram>> FindProgram(std::string_view name) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // In the order in which they were added.
  std::vector<std::shared_ptr<ServedProgram>> programs() const ABSL_LOCKS_EXCLUDED(mu_);

  KeyStore& keys() { return *key_store_; }
  const KeyStore& keys() const { return *key_store_; }

  // Enters a request in the ledger, under its program's name, or "unknown" for one that is not
  // here.
  RequestPtr Open(RequestHead head);
  // Grants what the request needs: a ready program (else NotFound, Unavailable), the tenant's key
  // set (NotFound; none need be named for a program that reads none) of the program's context with
  // every key that it reads (InvalidArgument, FailedPrecondition), and pinned trees
  // (ResourceExhausted). In kReceiving; after an error the caller finishes the request.
  absl::Status Admit(Request& request);
  // Queues an admitted request whose inputs are complete. `continuation` is called exactly once,
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

  const runtime::Device& device() const { return *device_; }
  const RequestLedger& ledger() const { return ledger_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  const KeyResidency& key_residency() const { return *key_residency_; }
  const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  const EngineOptions& options() const { return options_; }
  const base::Clock& clock() const { return clock_; }

 private:
  Engine(std::unique_ptr<runtime::Device> device, const EngineOptions& options,
         const base::Clock& clock);
  void OnWorkerFault(const absl::Status& cause) ABSL_LOCKS_EXCLUDED(mu_);
  void SetReady(ServedProgram& program, bool ready);

  const EngineOptions options_;
  const base::Clock& clock_;
  // In the order of construction: each uses those above it.
  const std::unique_ptr<runtime::Device> device_;
  RequestLedger ledger_;
  std::unique_ptr<KeyStore> key_store_;
  std::unique_ptr<KeyResidency> key_residency_;
  std::unique_ptr<Scheduler> scheduler_;
  // Stands for the keys of programs that read none.
  const KeySetRef no_keys_ = std::make_shared<const StoredKeySet>();

  mutable absl::Mutex mu_;
  std::vector<std::shared_ptr<ServedProgram>> programs_ ABSL_GUARDED_BY(mu_);
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void(std::string_view, bool)> readiness_listener_;

  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace cipherd::engine

// grpc.health.v1: whether each program, and the daemon as a whole, serves.
//
//   health.SetServing("fashion_mlp", true);
//   health.SetServing("", true);
//
// A name starts NOT_SERVING, and the daemon is NOT_SERVING until it is told otherwise: nothing
// answers SERVING before its first verified replay. Watch sends the current status at once and then
// each change; of changes faster than a client reads, it gets the last. Thread-safe; no call
// blocks.
#pragma once

#include <list>
#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "health.grpc.pb.h"
#include "server/call_gate.h"
#include "server/evaluation.h"
#include "server/told_early.h"

namespace cipherd::server {

// No program has a longer name, and none is kept for a watcher.
inline constexpr size_t kMaxHealthNameBytes = 256;
// Each holds a call; a load balancer needs one a program.
inline constexpr CallLimits kHealthWatches = {.max_calls = 1024, .max_calls_per_caller = 512};

class HealthService final
    : public ToldEarly<grpc::health::v1::Health, grpc::health::v1::Health::Service> {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Calls have their places among `environment.lookups`.
  explicit HealthService(const ServiceEnvironment& environment);

  // `name` is a program's, or empty for the daemon.
  void SetServing(std::string_view name, bool serving) ABSL_LOCKS_EXCLUDED(mu_);
  // Everything is NOT_SERVING from now on, whatever is set later.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mu_);
  // What Check would say. False for an unknown name.
  bool IsServing(std::string_view name) const ABSL_LOCKS_EXCLUDED(mu_);
  // Ends every Watch, now and from now on.
  void EndWatches() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Watcher;

  // NOT_FOUND for an unknown name.
  Reactor* Check(grpc::CallbackServerContext* context);
  // SERVICE_UNKNOWN for an unknown name, until it becomes known. INVALID_ARGUMENT for what is no
  // name; RESOURCE_EXHAUSTED beyond kHealthWatches.
  Reactor* Watch(grpc::CallbackServerContext* context);

  Status StatusOf(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NotifyWatchers(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ServiceEnvironment environment_;
  CallGate watches_{kHealthWatches};
  mutable absl::Mutex mu_;
  std::map<std::string, Status> statuses_ ABSL_GUARDED_BY(mu_) = {
      {"", grpc::health::v1::HealthCheckResponse::NOT_SERVING}};
  bool is_shut_down_ ABSL_GUARDED_BY(mu_) = false;
  bool watches_ended_ ABSL_GUARDED_BY(mu_) = false;
  std::list<Watcher*> watchers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::server

#include "server/health_service.h"

#include <optional>
#include <utility>

#include "server/lookup_reactor.h"
#include "server/stall_watch.h"
#include "server/wire_message.h"

namespace cipherd::server {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// One Watch. Lives until gRPC says OnDone; guarded by the lock of its service.
class HealthService::Watcher final : public HealthService::Reactor {
 public:
  Watcher(HealthService& service, grpc::CallbackServerContext& context)
      : service_(service), context_(context), pass_(service.watches_, CallerKey(context)) {
    // Not under the service's lock, which it takes when it calls.
    stall_.emplace(service_.environment_.stalls, service_.mu_, [this] {
      service_.mu_.AssertHeld();
      OnStall();
    });
    absl::MutexLock lock(&service_.mu_);
    position_ = service_.watchers_.insert(service_.watchers_.end(), this);
    if (!pass_.is_open()) {
      End(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watch already"));
      return;
    }
    stall_->AwaitPeer();
    StartRead(&request_);
  }

  // Whether `name` is what is watched.
  bool Watches(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    return name_ == name;
  }

  // Sends the status unless it was the last one sent; ends the call where watches have ended.
  void Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    if (is_writing_ || is_finished_) return;
    if (service_.watches_ended_) {
      End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the daemon is shutting down"));
      return;
    }
    if (!name_.has_value()) return;
    const HealthService::Status status = service_.StatusOf(*name_);
    if (sent_ == status) return;
    sent_ = status;
    HealthCheckResponse response;
    response.set_status(status);
    if (!SerializeMessage(response, response_).ok()) {
      End(grpc::Status(grpc::StatusCode::INTERNAL, "cannot write the status"));
      return;
    }
    is_writing_ = true;
    stall_->AwaitPeer();
    StartWrite(&response_);
  }

  void OnReadDone(bool ok) override {
    absl::MutexLock lock(&service_.mu_);
    // The peer of a call that has ended is waited for until it takes the status.
    if (is_finished_) return;
    stall_->Rest();
    HealthCheckRequest request;
    if (!ok || !ParseMessage(request_, request).ok() ||
        request.service().size() > kMaxHealthNameBytes) {
      End(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                       "service: expected a name, of at most 256 bytes"));
      return;
    }
    name_ = request.service();
    Update();
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&service_.mu_);
    stall_->Rest();
    is_writing_ = false;
    if (ok) {
      Update();
    } else {
      End(grpc::Status::CANCELLED);
    }
  }

  void OnCancel() override {
    absl::MutexLock lock(&service_.mu_);
    // A write under way fails, and ends the call then.
    if (!is_writing_) End(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    stall_.reset();
    {
      absl::MutexLock lock(&service_.mu_);
      service_.watchers_.erase(position_);
    }
    delete this;
  }

 private:
  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    if (std::exchange(is_finished_, true)) return;
    stall_->AwaitPeer();
    Finish(status);
  }

  void OnStall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    if (is_writing_ || is_finished_) {
      // The peer takes neither a status nor the end.
      context_.TryCancel();
    } else {
      End(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "waited for the name for too long"));
    }
  }

  HealthService& service_;
  grpc::CallbackServerContext& context_;
  const CallGate::Pass pass_;
  std::optional<StallWatch::Call> stall_;
  std::list<Watcher*>::iterator position_;
  // gRPC writes the one and reads the other while that is under way.
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  // Once it has come.
  std::optional<std::string> name_;
  std::optional<HealthService::Status> sent_;
  bool is_writing_ = false;
  bool is_finished_ = false;
};

HealthService::HealthService(const ServiceEnvironment& environment) : environment_(environment) {
  using Context = grpc::CallbackServerContext;
  Tell("Check", [this](Context* context) { return Check(context); });
  Tell("Watch", [this](Context* context) { return Watch(context); });
}

void HealthService::SetServing(std::string_view name, bool serving) {
  absl::MutexLock lock(&mu_);
  const std::string key(name);
  statuses_[key] =
      serving && !is_shut_down_ ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
  NotifyWatchers(key);
}

void HealthService::Shutdown() {
  absl::MutexLock lock(&mu_);
  is_shut_down_ = true;
  for (auto& [name, status] : statuses_) {
    status = HealthCheckResponse::NOT_SERVING;
    NotifyWatchers(name);
  }
}

bool HealthService::IsServing(std::string_view name) const {
  absl::MutexLock lock(&mu_);
  return StatusOf(std::string(name)) == HealthCheckResponse::SERVING;
}

void HealthService::EndWatches() {
  absl::MutexLock lock(&mu_);
  watches_ended_ = true;
  for (Watcher* watcher : watchers_) watcher->Update();
}

HealthService::Reactor* HealthService::Check(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<HealthCheckRequest, HealthCheckResponse>(
      environment_, *context, "Check",
      [this](const auto&, const HealthCheckRequest& which,
             HealthCheckResponse& response) -> absl::Status {
        absl::MutexLock lock(&mu_);
        const Status status = StatusOf(which.service());
        if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
          return absl::NotFoundError("unknown service");
        }
        response.set_status(status);
        return absl::OkStatus();
      });
}

HealthService::Reactor* HealthService::Watch(grpc::CallbackServerContext* context) {
  return new Watcher(*this, *context);
}

HealthService::Status HealthService::StatusOf(const std::string& name) const {
  const auto it = statuses_.find(name);
  return it == statuses_.end() ? HealthCheckResponse::SERVICE_UNKNOWN : it->second;
}

void HealthService::NotifyWatchers(const std::string& name) {
  for (Watcher* watcher : watchers_) {
    if (watcher->Watches(name)) watcher->Update();
  }
}

}  // namespace cipherd::server

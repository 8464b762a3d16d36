#include "server/health_service.h"

#include <optional>
#include <utility>

namespace cipherd::server {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

// A Watch that is turned away.
class Refusal final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

// One Watch. Lives until gRPC says OnDone; guarded by the lock of its service.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(HealthService& service, std::string name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service.mu_)
      : service_(service), name_(std::move(name)) {
    position_ = service_.watchers_.insert(service_.watchers_.end(), this);
    Update();
  }

  const std::string& name() const { return name_; }

  // Sends the status unless it was the last one sent; ends the call where watches have ended.
  void Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    if (is_writing_ || is_finished_) return;
    if (service_.watches_ended_) {
      End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the daemon is shutting down"));
      return;
    }
    const HealthService::Status status = service_.StatusOf(name_);
    if (sent_ == status) return;
    sent_ = status;
    response_.set_status(status);
    is_writing_ = true;
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&service_.mu_);
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
    {
      absl::MutexLock lock(&service_.mu_);
      service_.watchers_.erase(position_);
    }
    delete this;
  }

 private:
  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    if (!std::exchange(is_finished_, true)) Finish(status);
  }

  HealthService& service_;
  const std::string name_;
  std::list<Watcher*>::iterator position_;
  std::optional<HealthService::Status> sent_;
  HealthCheckResponse response_;
  bool is_writing_ = false;
  bool is_finished_ = false;
};

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

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Status status;
  {
    absl::MutexLock lock(&mu_);
    status = StatusOf(request->service());
  }
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    reactor->Finish(grpc::Status(grpc::StatusCode::NOT_FOUND, "unknown service"));
    return reactor;
  }
  response->set_status(status);
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* context, const HealthCheckRequest* request) {
  if (request->service().size() > kMaxHealthNameBytes) {
    return new Refusal(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                    "service: the name is too long to be one"));
  }
  absl::MutexLock lock(&mu_);
  if (watchers_.size() >= kMaxHealthWatchers) {
    return new Refusal(
        grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watch already"));
  }
  return new Watcher(*this, request->service());
}

HealthService::Status HealthService::StatusOf(const std::string& name) const {
  const auto it = statuses_.find(name);
  return it == statuses_.end() ? HealthCheckResponse::SERVICE_UNKNOWN : it->second;
}

void HealthService::NotifyWatchers(const std::string& name) {
  for (Watcher* watcher : watchers_) {
    if (watcher->name() == name) watcher->Update();
  }
}

}  // namespace cipherd::server

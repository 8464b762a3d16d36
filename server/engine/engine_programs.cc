// The part of Engine that has programs come, go and be found.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/engine/engine.h"
#include "server/engine/failure_reason.h"
#include "server/engine/shown_program.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {
namespace {

// In a message.
constexpr ptrdiff_t kMostShownPrograms = 10;

}  // namespace

absl::Status Engine::AddProgram(std::shared_ptr<const Program> program,
                                const ServingSettings& settings) {
  const ProgramInfo& info = program->info();
  const auto is_same = [&](const ServedProgram& served) {
    return served.info().version == info.version;
  };
  if (Find(info.name, is_same) != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("program '", info.name, "' version ", info.version, " is there already"));
  }
  return Add(std::move(program), settings).status();
}

absl::StatusOr<Engine::ServedPtr> Engine::Add(std::shared_ptr<const Program> program,
                                              const ServingSettings& settings) {
  CIPHERD_RETURN_IF_ERROR(settings.Validate());
  const ProgramInfo& info = program->info();
  if (const int64_t limit = options_.keys.max_set_bytes(); info.key_bytes > limit) {
    return absl::FailedPreconditionError(
        absl::StrCat("program '", info.name, "' reads keys of ", info.key_bytes,
                     " bytes, and a key set of ", limit,
                     " is the largest that the budgets of host memory, device memory, files and "
                     "tenants admit: raise the smallest of them"));
  }
  const int places = settings.place_count(options_.workers * static_cast<int>(devices_.size()));
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<PinnedPool> trees,
                           PinnedPool::Create(*program, places, *devices_.front()));
  auto served = std::make_shared<ServedProgram>(std::move(program), std::move(trees), settings);
  scheduler_->AddProgram(*served, places);
  absl::MutexLock lock(&mu_);
  programs_.push_back(served);
  return served;
}

absl::Status Engine::LoadProgram(std::string_view name, int64_t version) {
  const ServedPtr served = Find(name, [&](const ServedProgram& candidate) {
    return version == 0 || candidate.info().version == version;
  });
  if (served == nullptr) return FindProgram(name, version).status();
  return Load(*served, /*on_ready=*/nullptr);
}

absl::Status Engine::Load(ServedProgram& served, const std::function<void()>& on_ready) {
  const ProgramInfo& info = served.info();
  if (served.is_loaded()) {
    return absl::FailedPreconditionError(
        absl::StrCat("program '", info.name, "' version ", info.version, " is loaded already"));
  }
  const absl::Time start = clock_.Now();
  const size_t bytes_before = AllocatedDeviceBytes();
  CIPHERD_ASSIGN_OR_RETURN(std::vector<DeviceProgram> loaded, LoadOnAll(served));
  ServedProgram::Bindings bindings;
  for (const DeviceProgram& on_device : loaded) bindings.push_back(on_device.binding);
  served.set_bindings(std::move(bindings));
  const ServedPtr shared = Find(info.name, [&](const ServedProgram& s) { return &s == &served; });
  for (const std::unique_ptr<Worker>& worker : workers_) {
    std::vector<std::unique_ptr<ProgramPool>>& pools = loaded[worker->device_index()].pools;
    if (pools.empty()) continue;
    worker->AddProgram(shared, std::move(pools.back()));
    pools.pop_back();
  }
  UpdateReadiness(served, on_ready);
  const size_t bytes_after = AllocatedDeviceBytes();
  spdlog::info(
      "program '{}' version {} is loaded: {} instances of batch sizes [{}] on {} workers after "
      "{:.2f} s, about {} bytes of device memory and {} pinned",
      info.name, info.version, served.settings().instances,
      absl::StrJoin(served.settings().batch_sizes, ", "), workers_.size(),
      absl::ToDoubleSeconds(clock_.Now() - start),
      bytes_after - std::min(bytes_before, bytes_after), served.trees().bytes());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Engine::DeviceProgram>> Engine::LoadOnAll(const ServedProgram& served) {
  // None is left to take part: say why.
  CIPHERD_RETURN_IF_ERROR(DeviceHealth());
  std::vector<absl::StatusOr<DeviceProgram>> results;
  for (size_t device = 0; device < devices_.size(); ++device) results.push_back(DeviceProgram{});
  const auto load = [&](size_t device) {
    if (DeviceHealth(device).ok()) results[device] = LoadOn(device, served);
  };
  // Side by side: a capture keeps one processor busy for seconds.
  std::vector<std::thread> others;
  for (size_t device = 1; device < devices_.size(); ++device) others.emplace_back(load, device);
  load(0);
  for (std::thread& other : others) other.join();
  EndWorkersOfFailedDevices();
  std::vector<DeviceProgram> loaded;
  for (size_t device = 0; device < devices_.size(); ++device) {
    if (!results[device].ok() && (DeviceHealth(device).ok() || !DeviceHealth().ok())) {
      return results[device].status();
    }
    loaded.push_back(results[device].ok() ? *std::move(results[device]) : DeviceProgram{});
  }
  return loaded;
}

absl::StatusOr<Engine::DeviceProgram> Engine::LoadOn(size_t device, const ServedProgram& served) {
  CIPHERD_ASSIGN_OR_RETURN(
      std::unique_ptr<runtime::Stream> stream,
      devices_[device]->CreateStream(absl::StrCat("load ", served.info().name)));
  CIPHERD_ASSIGN_OR_RETURN(ProgramBinding bound,
                           served.program().Bind(*devices_[device], *stream, served.settings()));
  DeviceProgram loaded;
  loaded.binding = std::make_shared<const ProgramBinding>(std::move(bound));
  for (int i = 0; i < options_.workers; ++i) {
    CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<ProgramPool> pool,
                             BuildPool(device, served, *loaded.binding));
    loaded.pools.push_back(std::move(pool));
  }
  return loaded;
}

absl::StatusOr<std::unique_ptr<ProgramPool>> Engine::BuildPool(size_t device,
                                                               const ServedProgram& served,
                                                               const ProgramBinding& binding) {
  CIPHERD_ASSIGN_OR_RETURN(
      std::unique_ptr<runtime::Stream> stream,
      devices_[device]->CreateStream(absl::StrCat("capture ", served.info().name)));
  return ProgramPool::Create(served.program(), binding, served.settings(), *devices_[device],
                             *stream);
}

size_t Engine::AllocatedDeviceBytes() const {
  size_t bytes = 0;
  for (const std::unique_ptr<runtime::Device>& device : devices_) {
    bytes += device->device_memory_stats().allocated_bytes;
  }
  return bytes;
}

absl::Status Engine::ReplaceProgram(std::shared_ptr<const Program> program,
                                    const ServingSettings& settings, absl::Duration timeout,
                                    const std::function<void()>& on_ready) {
  std::vector<ServedPtr> old = programs();
  std::erase_if(
      old, [&](const ServedPtr& served) { return served->info().name != program->info().name; });
  return Replace(std::move(program), settings, old, timeout, on_ready);
}

absl::Status Engine::ReplaceVersions(std::shared_ptr<const Program> program,
                                     const ServingSettings& settings,
                                     std::span<const std::shared_ptr<const Program>> replaced,
                                     absl::Duration timeout,
                                     const std::function<void()>& on_ready) {
  std::vector<ServedPtr> old;
  for (const std::shared_ptr<const Program>& other : replaced) {
    if (ServedPtr served = Find(*other); served != nullptr) old.push_back(std::move(served));
  }
  return Replace(std::move(program), settings, old, timeout, on_ready);
}

absl::Status Engine::Replace(std::shared_ptr<const Program> program,
                             const ServingSettings& settings, const std::vector<ServedPtr>& old,
                             absl::Duration timeout, const std::function<void()>& on_ready) {
  CIPHERD_ASSIGN_OR_RETURN(const ServedPtr served, Add(std::move(program), settings));
  if (const absl::Status loaded = Load(*served, on_ready); !loaded.ok()) {
    Unload(served, absl::ZeroDuration()).IgnoreError();
    return loaded;
  }
  absl::Status unloaded;
  const absl::Time deadline = absl::Now() + timeout;
  // All of them first, so that no request lands on one that is about to go.
  for (const ServedPtr& other : old) other->set_retired();
  for (const ServedPtr& other : old) {
    unloaded.Update(Unload(other, std::max(deadline - absl::Now(), absl::ZeroDuration())));
  }
  return unloaded;
}

absl::Status Engine::UnloadProgram(std::string_view name, int64_t version, absl::Duration timeout) {
  CIPHERD_ASSIGN_OR_RETURN(const ServedPtr served, FindProgram(name, version));
  return Unload(served, timeout);
}

absl::Status Engine::UnloadProgram(const Program& program, absl::Duration timeout) {
  const ServedPtr served = Find(program);
  if (served != nullptr) return Unload(served, timeout);
  return absl::NotFoundError(absl::StrCat("program '", program.info().name, "' version ",
                                          program.info().version, " is not loaded"));
}

absl::Status Engine::Unload(const ServedPtr& served, absl::Duration timeout) {
  const ProgramInfo& info = served->info();
  served->set_retired();
  UpdateReadiness(*served);
  if (!served->trees().Drain(timeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat("program '", info.name, "' version ", info.version, ": ",
                     served->trees().leased_count(), " requests have not ended yet"));
  }
  scheduler_->RemoveProgram(*served);
  absl::Status status;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    status.Update(worker->RemoveProgram(*served));
  }
  // Requests that have ended may still refer to it; what it holds goes now.
  served->set_bindings({});
  {
    absl::MutexLock lock(&mu_);
    std::erase(programs_, served);
  }
  spdlog::info("program '{}' version {} is unloaded", info.name, info.version);
  return status;
}

Engine::ServedPtr Engine::Find(std::string_view name,
                               const std::function<bool(const ServedProgram&)>& accepts) const {
  absl::MutexLock lock(&mu_);
  ServedPtr best;
  for (const ServedPtr& served : programs_) {
    if (served->info().name != name || !accepts(*served)) continue;
    // Of equal versions the one that was added last.
    if (best == nullptr || served->info().version >= best->info().version) best = served;
  }
  return best;
}

Engine::ServedPtr Engine::Find(const Program& program) const {
  return Find(program.info().name,
              [&](const ServedProgram& served) { return &served.program() == &program; });
}

bool Engine::IsReady(const Program& program) const {
  const ServedPtr served = Find(program);
  return served != nullptr && served->is_ready();
}

absl::StatusOr<std::shared_ptr<ServedProgram>> Engine::FindProgram(std::string_view name,
                                                                   int64_t version) const {
  const auto fits = [&](const ServedProgram& served) {
    return version == 0 || served.info().version == version;
  };
  ServedPtr served = Find(name, [&](const ServedProgram& s) { return fits(s) && s.is_ready(); });
  if (served == nullptr) served = Find(name, fits);
  if (served != nullptr) return served;
  return WithReason(
      absl::NotFoundError(absl::StrCat("unknown program '", ShownName(name), "'",
                                       ShownVersion(version), "; ", DescribeServed(name))),
      FailureReason::kUnknownProgram);
}

std::string Engine::DescribeServed(std::string_view name) const {
  std::set<std::string> names;
  std::set<std::string> versions;
  for (const ServedPtr& served : programs()) {
    names.insert(absl::StrCat("'", served->info().name, "'"));
    if (served->info().name == name) versions.insert(absl::StrCat(served->info().version));
  }
  const bool is_known = !versions.empty();
  const std::set<std::string>& all = is_known ? versions : names;
  if (all.empty()) return "none is served";
  const auto end = std::next(all.begin(), std::min(std::ssize(all), kMostShownPrograms));
  return absl::StrCat("served: ", is_known ? "version " : "", absl::StrJoin(all.begin(), end, ", "),
                      end == all.end() ? "" : ", ...");
}

std::vector<std::shared_ptr<ServedProgram>> Engine::programs() const {
  absl::MutexLock lock(&mu_);
  return programs_;
}

void Engine::UpdateReadiness() {
  for (const ServedPtr& served : programs()) UpdateReadiness(*served);
}

void Engine::UpdateReadiness(ServedProgram& served, const std::function<void()>& before_told) {
  absl::MutexLock lock(&readiness_mu_);
  served.set_ready(served.is_loaded() && !served.is_retired() && AnyWorkerServes());
  if (before_told) before_told();
  const std::string& name = served.info().name;
  const bool is_ready = Find(name, [](const ServedProgram& s) { return s.is_ready(); }) != nullptr;
  if (std::exchange(told_ready_[name], is_ready) == is_ready) return;
  if (readiness_listener_) readiness_listener_(name, is_ready);
}

}  // namespace cipherd::engine

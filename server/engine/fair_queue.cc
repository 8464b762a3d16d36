#include "server/engine/fair_queue.h"

#include <algorithm>
#include <utility>

namespace cipherd::engine {
namespace {

constexpr size_t kMostSpares = 8;

}  // namespace

void FairQueue::Push(RequestPtr request) {
  Find(request->head().tenant, /*at_front=*/false)->requests.push_back(std::move(request));
  ++size_;
}

absl::Time FairQueue::oldest() const {
  absl::Time oldest = absl::InfiniteFuture();
  for (const Tenant& tenant : line_) {
    oldest = std::min(oldest, tenant.requests.front()->queued_at());
  }
  return oldest;
}

FairQueue::Share FairQueue::ShareOf(RunsHere runs_here) {
  Share share;
  for (Tenant& tenant : line_) {
    const RequestPtr& next = tenant.requests.front();
    tenant.is_left = !runs_here(next, tenant.requests.size());
    if (tenant.is_left) continue;
    share.count += tenant.requests.size();
    share.oldest = std::min(share.oldest, next->queued_at());
  }
  return share;
}

std::vector<RequestPtr> FairQueue::Pop(int count, RunsHere runs_here,
                                       absl::FunctionRef<bool(const RequestPtr&)> claim) {
  std::vector<RequestPtr> taken;
  // Before it stand those that could not be claimed.
  auto next = line_.begin();
  while (next != line_.end() && taken.size() < static_cast<size_t>(count)) {
    next->is_left = next->is_left || !runs_here(next->requests.front(), next->requests.size());
    if (next->is_left) {
      ++next;
      continue;
    }
    if (!claim(next->requests.front())) {
      if (next->passes >= kMaxPasses) break;
      ++next;
      continue;
    }
    for (auto passed = line_.begin(); passed != next; ++passed) {
      if (!passed->is_left) ++passed->passes;
    }
    const auto served = next++;
    taken.push_back(std::move(served->requests.front()));
    served->requests.pop_front();
    served->passes = 0;
    --size_;
    line_.splice(line_.end(), line_, served);
    if (next == line_.end() && !served->requests.empty()) next = served;
    EraseIfEmpty(served);
  }
  return taken;
}

void FairQueue::PutBack(std::vector<RequestPtr> requests) {
  while (!requests.empty()) {
    const auto tenant = Find(requests.back()->head().tenant, /*at_front=*/true);
    line_.splice(line_.begin(), line_, tenant);
    tenant->requests.push_front(std::move(requests.back()));
    requests.pop_back();
    ++size_;
  }
}

bool FairQueue::Remove(const RequestPtr& request) {
  const auto found = tenants_.find(request->head().tenant);
  if (found == tenants_.end()) return false;
  const auto tenant = found->second;
  const auto it = std::find(tenant->requests.begin(), tenant->requests.end(), request);
  if (it == tenant->requests.end()) return false;
  tenant->requests.erase(it);
  --size_;
  EraseIfEmpty(tenant);
  return true;
}

void FairQueue::RemoveIf(absl::FunctionRef<bool(const RequestPtr&)> is_dead,
                         std::vector<RequestPtr>& removed) {
  for (auto next = line_.begin(); next != line_.end();) {
    const auto tenant = next++;
    size_ -= std::erase_if(tenant->requests, [&](const RequestPtr& request) {
      if (!is_dead(request)) return false;
      removed.push_back(request);
      return true;
    });
    EraseIfEmpty(tenant);
  }
}

FairQueue::Line::iterator FairQueue::Find(const std::string& name, bool at_front) {
  const auto found = tenants_.find(name);
  if (found != tenants_.end()) return found->second;
  if (spare_.empty()) spare_.emplace_back();
  const auto entered = spare_.begin();
  line_.splice(at_front ? line_.begin() : line_.end(), spare_, entered);
  entered->name = name;
  entered->passes = 0;
  entered->is_left = false;
  tenants_.emplace(entered->name, entered);
  return entered;
}

void FairQueue::EraseIfEmpty(Line::iterator tenant) {
  if (!tenant->requests.empty()) return;
  tenants_.erase(tenant->name);
  if (spare_.size() < kMostSpares) {
    spare_.splice(spare_.begin(), line_, tenant);
  } else {
    line_.erase(tenant);
  }
}

}  // namespace cipherd::engine

// The waiting requests of one program: tenants take turns, each tenant's requests keep their order.
//
//   queue.Push(request);
//   std::vector<RequestPtr> batch = queue.Pop(8, [&](const RequestPtr& r) { return claim(r); });
//
// A tenant with a thousand requests and one with a single request are served alike: whoever has
// been served goes to the end of the line. A request that cannot be claimed (its keys have no room
// now) is passed over together with what its tenant has behind it, but not for ever: after
// kMaxPasses others it holds the line until its claim succeeds. Not thread-safe; never calls the
// requests that it holds.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/engine/request.h"

namespace cipherd::engine {

class FairQueue {
 public:
  static constexpr int kMaxPasses = 16;

  void Push(RequestPtr request);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // When the request that waits longest was queued; InfiniteFuture where none does.
  absl::Time oldest() const;

  // Whether the next request of a tenant, who has `waiting` here, is for the one who asks. Others
  // may take from this queue, too.
  using RunsHere = absl::FunctionRef<bool(const RequestPtr& next, size_t waiting)>;
  // What of the queue is for the one who asks, the tenants' next requests standing for all of
  // theirs.
  struct Share {
    size_t count = 0;
    absl::Time oldest = absl::InfiniteFuture();
  };
  Share ShareOf(RunsHere runs_here);

  // Takes out up to `count` requests that `claim` accepts, in their turn. Tenants that the ShareOf
  // before it has left to others are passed over, but hold no line for that, and those whose next
  // request `runs_here` refuses by now.
  std::vector<RequestPtr> Pop(int count, RunsHere runs_here,
                              absl::FunctionRef<bool(const RequestPtr&)> claim);

  // Gives back what the latest Pop took last, the first of `requests` the first in line again.
  void PutBack(std::vector<RequestPtr> requests);

  // False where it is not here.
  bool Remove(const RequestPtr& request);
  // Takes out, into `removed`, those that `is_dead` accepts.
  void RemoveIf(absl::FunctionRef<bool(const RequestPtr&)> is_dead,
                std::vector<RequestPtr>& removed);

 private:
  struct Tenant {
    std::string name;
    std::deque<RequestPtr> requests;
    // Requests of others that went first since its own could not.
    int passes = 0;
    // Left to others, by the latest ShareOf or the Pop after it.
    bool is_left = false;
  };
  using Line = std::list<Tenant>;

  // The tenant in the line, entered at its end (or front) where it was not.
  Line::iterator Find(const std::string& name, bool at_front);
  void EraseIfEmpty(Line::iterator tenant);

  // In the order of their turns; none without requests.
  Line line_;
  // Places in it that tenants have left, for the next who come: they keep their memory.
  Line spare_;
  // By the name at that place.
  std::unordered_map<std::string_view, Line::iterator> tenants_;
  size_t size_ = 0;
};

}  // namespace cipherd::engine

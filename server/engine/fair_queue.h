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

  // Takes out up to `count` requests that `claim` accepts, in their turn. A tenant whose next
  // request (of `waiting`) `runs_here` refuses is passed over as well, but holds no line for that:
  // others take from this queue, too.
  std::vector<RequestPtr> Pop(int count,
                              absl::FunctionRef<bool(const RequestPtr&, size_t waiting)> runs_here,
                              absl::FunctionRef<bool(const RequestPtr&)> claim);
  std::vector<RequestPtr> Pop(int count, absl::FunctionRef<bool(const RequestPtr&)> claim) {
    return Pop(
        count, [](const RequestPtr&, size_t) { return true; }, claim);
  }

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
    // In the Pop under way: left to others.
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

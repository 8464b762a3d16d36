// Ends calls early, from any thread.
//
//   auto cancellation = std::make_shared<Cancellation>();
//   std::thread caller([&] { client->ListPrograms({.cancellation = cancellation}); });
//   cancellation->Cancel();  // the call ends soon, with Cancelled
//
// May be given to many calls; what is cancelled stays so. Thread-safe.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace cipherd::client {

class Cancellation {
 public:
  // Something that is done when the calls are to end, for as long as this lives.
  class Scope {
   public:
    // `on_cancel` runs once: in Cancel, or here where that has been. It must not block, nor use the
    // cancellation. A null `cancellation` never cancels.
    Scope(std::shared_ptr<Cancellation> cancellation, std::function<void()> on_cancel);
    // Afterwards `on_cancel` neither runs nor begins to.
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const std::shared_ptr<Cancellation> cancellation_;
    std::list<std::function<void()>>::iterator place_;
  };

  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);
  bool is_cancelled() const ABSL_LOCKS_EXCLUDED(mu_);
  // Sleeps for `duration`, or until it is cancelled. Whether it is.
  bool WaitFor(absl::Duration duration) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::list<std::function<void()>> on_cancel_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::client

// Calls that take long, from Python: without the interpreter's lock, and ended by Ctrl-C.
//
//   return RunCall(owner, [&](const std::shared_ptr<client::Cancellation>& cancellation) {
//     return client->ListPrograms({.cancellation = cancellation});
//   });
//
// Signals of Python are handled by its main thread, which a call would keep from doing so. So a
// call runs on a thread of its own, and the calling one looks for signals meanwhile; where a
// handler raises, the call is cancelled, and when it has ended, which is soon, the handler's
// exception goes on.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "client/cancellation.h"
#include "client/python/bindings/live_calls.h"
#include "client/python/bindings/status_error.h"

namespace cipherd::python {

// Waits, without the interpreter's lock. Where a signal handler raises, cancels, waits all the
// same, and throws nanobind::python_error: however it ends, `has_ended` has been notified.
void AwaitInterruptibly(const absl::Notification& has_ended, client::Cancellation& cancellation);

inline void Unwrap(const absl::Status& status) { ThrowIfError(status); }
template <typename T>
T Unwrap(absl::StatusOr<T> value) {
  return ValueOrThrow(std::move(value));
}

// `body` takes a cancellation and returns a Status or a StatusOr; throws StatusError.
template <typename Body>
auto RunCall(const std::shared_ptr<CallOwner>& owner, const Body& body) {
  const LiveCall call(owner);
  using Result = decltype(body(call.cancellation()));
  std::optional<Result> result;
  absl::Notification has_ended;
  std::thread worker([&] {
    result.emplace(body(call.cancellation()));
    has_ended.Notify();
  });
  struct Joiner {
    ~Joiner() { worker.join(); }
    std::thread& worker;
  };
  {
    const Joiner joiner{worker};
    AwaitInterruptibly(has_ended, *call.cancellation());
  }
  return Unwrap(*std::move(result));
}

// Work of milliseconds, which nothing interrupts.
template <typename Body>
auto RunWork(const std::shared_ptr<CallOwner>& owner, const Body& body) {
  const LiveCall call(owner);
  std::optional<decltype(body())> result;
  {
    const nanobind::gil_scoped_release release;
    result.emplace(body());
  }
  return Unwrap(*std::move(result));
}

}  // namespace cipherd::python

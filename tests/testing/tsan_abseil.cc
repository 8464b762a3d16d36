// Tells ThreadSanitizer what Abseil's mutexes, notifications and blocking counters order.
//
// Debian's Abseil is built without ThreadSanitizer, which therefore sees neither Lock nor Unlock
// and would report every guarded variable as a race. The definitions below take the place of the
// library's in a test binary (an executable's symbols come first, also for calls within the
// library), call the library's and add the edges: what came before a release of a mutex happens
// before what follows its next acquisition. Readers release too, which orders more than the mutex
// does and so can hide a race among readers only.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace {

// The mutex that this thread is in a call of: the library evaluates conditions under it, in any
// thread that releases it.
thread_local void* current_mutex = nullptr;

class CurrentMutex {
 public:
  explicit CurrentMutex(void* mutex) : previous_(std::exchange(current_mutex, mutex)) {}
  ~CurrentMutex() { current_mutex = previous_; }

 private:
  void* previous_;
};

// The library's definition of the function with this mangled name.
template <typename Function>
Function LibraryFunction(const char* symbol) {
  void* const address = dlsym(RTLD_NEXT, symbol);
  if (address == nullptr) {
    std::fprintf(stderr, "tsan_abseil: Abseil has no %s\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function>(address);
}

// A member function is called with its object first, as the platform's ABI passes it.
template <typename Result, typename Object, typename... Arguments>
Result Acquire(const char* symbol, void* mutex, Object* object, Arguments... arguments) {
  CurrentMutex current(mutex);
  const auto function = LibraryFunction<Result (*)(Object*, Arguments...)>(symbol);
  if constexpr (std::is_void_v<Result>) {
    function(object, arguments...);
    __tsan_acquire(mutex);
  } else {
    const Result result = function(object, arguments...);
    __tsan_acquire(mutex);
    return result;
  }
}

template <typename Result, typename Object, typename... Arguments>
Result ReleaseAndAcquire(const char* symbol, void* mutex, Object* object, Arguments... arguments) {
  __tsan_release(mutex);
  return Acquire<Result>(symbol, mutex, object, arguments...);
}

void Release(const char* symbol, absl::Mutex* mutex) {
  CurrentMutex current(mutex);
  __tsan_release(mutex);
  LibraryFunction<void (*)(absl::Mutex*)>(symbol)(mutex);
}

}  // namespace

// Mangled names start with Debian's inline namespace.
#define SYMBOL(name) "_ZN4absl7debian3" name

void absl::Mutex::Lock() { Acquire<void>(SYMBOL("5Mutex4LockEv"), this, this); }
void absl::Mutex::Unlock() { Release(SYMBOL("5Mutex6UnlockEv"), this); }
bool absl::Mutex::TryLock() { return Acquire<bool>(SYMBOL("5Mutex7TryLockEv"), this, this); }
void absl::Mutex::ReaderLock() { Acquire<void>(SYMBOL("5Mutex10ReaderLockEv"), this, this); }
void absl::Mutex::ReaderUnlock() { Release(SYMBOL("5Mutex12ReaderUnlockEv"), this); }
bool absl::Mutex::ReaderTryLock() {
  return Acquire<bool>(SYMBOL("5Mutex13ReaderTryLockEv"), this, this);
}

void absl::Mutex::LockWhen(const Condition& condition) {
  Acquire<void>(SYMBOL("5Mutex8LockWhenERKNS0_9ConditionE"), this, this, &condition);
}
bool absl::Mutex::LockWhenWithTimeout(const Condition& condition, absl::Duration timeout) {
  return Acquire<bool>(SYMBOL("5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE"), this,
                       this, &condition, timeout);
}
bool absl::Mutex::LockWhenWithDeadline(const Condition& condition, absl::Time deadline) {
  return Acquire<bool>(SYMBOL("5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE"), this,
                       this, &condition, deadline);
}
void absl::Mutex::ReaderLockWhen(const Condition& condition) {
  Acquire<void>(SYMBOL("5Mutex14ReaderLockWhenERKNS0_9ConditionE"), this, this, &condition);
}
bool absl::Mutex::ReaderLockWhenWithTimeout(const Condition& condition, absl::Duration timeout) {
  return Acquire<bool>(SYMBOL("5Mutex25ReaderLockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE"),
                       this, this, &condition, timeout);
}
bool absl::Mutex::ReaderLockWhenWithDeadline(const Condition& condition, absl::Time deadline) {
  return Acquire<bool>(SYMBOL("5Mutex26ReaderLockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE"),
                       this, this, &condition, deadline);
}

void absl::Mutex::Await(const Condition& condition) {
  ReleaseAndAcquire<void>(SYMBOL("5Mutex5AwaitERKNS0_9ConditionE"), this, this, &condition);
}
bool absl::Mutex::AwaitWithTimeout(const Condition& condition, absl::Duration timeout) {
  return ReleaseAndAcquire<bool>(SYMBOL("5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE"),
                                 this, this, &condition, timeout);
}
bool absl::Mutex::AwaitWithDeadline(const Condition& condition, absl::Time deadline) {
  return ReleaseAndAcquire<bool>(SYMBOL("5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE"),
                                 this, this, &condition, deadline);
}

void absl::CondVar::Wait(absl::Mutex* mutex) {
  ReleaseAndAcquire<void>(SYMBOL("7CondVar4WaitEPNS0_5MutexE"), mutex, this, mutex);
}
bool absl::CondVar::WaitWithTimeout(absl::Mutex* mutex, absl::Duration timeout) {
  return ReleaseAndAcquire<bool>(SYMBOL("7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE"),
                                 mutex, this, mutex, timeout);
}
bool absl::CondVar::WaitWithDeadline(absl::Mutex* mutex, absl::Time deadline) {
  return ReleaseAndAcquire<bool>(SYMBOL("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE"), mutex,
                                 this, mutex, deadline);
}

// Runs in whichever thread holds the mutex, after that thread's Unlock has begun: its reads come
// before the next holder's writes, and after the previous holder's.
bool absl::Condition::Eval() const {
  using Function = bool (*)(const absl::Condition*);
  static const auto eval = LibraryFunction<Function>("_ZNK4absl7debian39Condition4EvalEv");
  if (current_mutex != nullptr) __tsan_acquire(current_mutex);
  const bool result = eval(this);
  if (current_mutex != nullptr) __tsan_release(current_mutex);
  return result;
}

// The flag is an atomic that inline functions load, and those are instrumented: the edge hangs on
// its address.
void absl::Notification::Notify() {
  __tsan_release(&notified_yet_);
  LibraryFunction<void (*)(absl::Notification*)>(SYMBOL("12Notification6NotifyEv"))(this);
}
void absl::Notification::WaitForNotification() const {
  using Function = void (*)(const absl::Notification*);
  LibraryFunction<Function>("_ZNK4absl7debian312Notification19WaitForNotificationEv")(this);
  __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
}
bool absl::Notification::WaitForNotificationWithTimeout(absl::Duration timeout) const {
  using Function = bool (*)(const absl::Notification*, absl::Duration);
  const bool result = LibraryFunction<Function>(
      "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE")(this,
                                                                                        timeout);
  __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
  return result;
}
bool absl::Notification::WaitForNotificationWithDeadline(absl::Time deadline) const {
  using Function = bool (*)(const absl::Notification*, absl::Time);
  const bool result = LibraryFunction<Function>(
      "_ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE")(this,
                                                                                     deadline);
  __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
  return result;
}

bool absl::BlockingCounter::DecrementCount() {
  __tsan_release(this);
  using Function = bool (*)(absl::BlockingCounter*);
  return LibraryFunction<Function>(SYMBOL("15BlockingCounter14DecrementCountEv"))(this);
}
void absl::BlockingCounter::Wait() {
  using Function = void (*)(absl::BlockingCounter*);
  LibraryFunction<Function>(SYMBOL("15BlockingCounter4WaitEv"))(this);
  __tsan_acquire(this);
}

// The library's own definition, where the sanitizer sees the count that orders the last holder
// behind the others.
void absl::Status::UnrefNonInlined(uintptr_t rep) {
  status_internal::StatusRep* const shared = RepToPointer(rep);
  if (shared->ref.load(std::memory_order_acquire) == 1 ||
      shared->ref.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    delete shared;
  }
}

namespace {

// Abseil's detector of deadlocks keeps a graph under a lock that the sanitizer does not see, and
// the sanitizer has a detector of its own.
[[maybe_unused]] const bool has_ignored_deadlocks = [] {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return true;
}();

}  // namespace

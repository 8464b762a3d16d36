// Calls that run outside the interpreter's lock: who has some, and how they are ended.
//
//   const auto owner = std::make_shared<CallOwner>("client", nullptr);
//   LiveCall call(owner);            // throws where the owner is closed
//   ... run, with call.cancellation() ...
//   CloseCalls(*owner);              // another thread: cancels, and returns when all have ended
//
// At the interpreter's end everything is closed: no thread of ours asks for its lock afterwards,
// which would end the process. After fork(), a child may not use what its parent made: gRPC's
// threads are not there, and a call would wait for ever; so it is refused.
//
// Used with the interpreter's lock, but for ~LiveCall.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "client/cancellation.h"

namespace cipherd::python {

// Whatever has calls: a client, or a session, whose calls are the client's too.
struct CallOwner {
  CallOwner(std::string owner_name, std::shared_ptr<CallOwner> owner_parent);

  const std::string name;
  const std::shared_ptr<CallOwner> parent;
  // Made by this process, not by one that it was forked from.
  bool IsOfThisProcess() const;
  bool is_closed = false;

 private:
  const pid_t process_;
};

class LiveCall {
 public:
  // Throws a StatusError, FailedPrecondition, where the owner, its parent or the interpreter is
  // closed, or the owner is another process's.
  explicit LiveCall(std::shared_ptr<CallOwner> owner);
  ~LiveCall();
  LiveCall(const LiveCall&) = delete;
  LiveCall& operator=(const LiveCall&) = delete;

  const std::shared_ptr<client::Cancellation>& cancellation() const { return cancellation_; }

 private:
  const std::shared_ptr<CallOwner> owner_;
  const std::shared_ptr<client::Cancellation> cancellation_;
};

// Around Python code that a call runs. Closing from in there would wait for itself, and is refused.
class CallbackScope {
 public:
  CallbackScope();
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
};

// Refuses new calls of `owner`, cancels those under way, and waits until they have ended; without
// the interpreter's lock meanwhile. Idempotent.
void CloseCalls(CallOwner& owner);
// Of every owner, for good.
void CloseAllCalls();

// Notes that gRPC runs in this process. Throws where it did in the one that this was forked from.
void CheckGrpcIsOfThisProcess();

}  // namespace cipherd::python

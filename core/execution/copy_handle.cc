#include "core/execution/copy_handle.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/status_macros.h"

namespace cipherd::execution {

struct CopyHandle::State {
  const std::shared_ptr<const runtime::Event> event;
  const value::Placement placement;
  const int64_t bytes_copied;
  const std::shared_ptr<const void> token;

  absl::Mutex mu;
  std::vector<runtime::StoragePtr> sources ABSL_GUARDED_BY(mu);

  // Storage is given up outside the lock: its destructor belongs to the runtime.
  void ReleaseSources() {
    std::vector<runtime::StoragePtr> released;
    absl::MutexLock lock(&mu);
    released.swap(sources);
  }
};

CopyHandle::CopyHandle(std::shared_ptr<const runtime::Event> event, value::Placement placement,
                       std::vector<runtime::StoragePtr> sources, int64_t bytes_copied,
                       std::shared_ptr<const void> token)
    : state_(new State{
          std::move(event), placement, bytes_copied, std::move(token), {}, std::move(sources)}) {}

std::shared_ptr<const runtime::Event> CopyHandle::event() const { return state_->event; }

value::Placement CopyHandle::placement() const { return state_->placement; }

int64_t CopyHandle::bytes_copied() const { return state_->bytes_copied; }

bool CopyHandle::HasToken(const std::shared_ptr<const void>& token) const {
  return state_->token == token;
}

absl::StatusOr<bool> CopyHandle::Done() const {
  if (state_->event != nullptr) {
    CIPHERD_ASSIGN_OR_RETURN(bool complete, state_->event->Query());
    if (!complete) return false;
  }
  state_->ReleaseSources();
  return true;
}

absl::StatusOr<CopyHandle> CopyHandle::WaitOn(runtime::Stream& stream) const {
  if (state_->event == nullptr) return *this;
  if (&stream.device() != state_->placement.device) {
    return absl::InvalidArgumentError(
        absl::StrCat("wait on a copy into ", state_->placement.ToString(), ": stream '",
                     stream.name(), "' is of ", stream.device().id().ToString()));
  }
  CIPHERD_RETURN_IF_ERROR(stream.Wait(*state_->event));
  return *this;
}

absl::Status CopyHandle::Synchronize() const {
  if (state_->event != nullptr) CIPHERD_RETURN_IF_ERROR(state_->event->Synchronize());
  state_->ReleaseSources();
  return absl::OkStatus();
}

}  // namespace cipherd::execution

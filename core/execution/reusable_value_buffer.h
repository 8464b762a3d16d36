// Fixed-address storage for one tree of tensors and exact values, whose payload can be replaced.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto buffer, ReusableValueBuffer::Like(
//       example, {.placement = Placement::On(device), .stream = &transfer}));
//   CIPHERD_ASSIGN_OR_RETURN(CopyHandle copied, buffer->CopyFrom(
//       tile, {.stream = &transfer, .wait_for = {consumer_done}}));
//   CIPHERD_RETURN_IF_ERROR(buffer->WaitFor(copied, compute));
//   CIPHERD_ASSIGN_OR_RETURN(ValueTree tree, buffer->value());   // read it on `compute`
//
// The buffer orders its own writes: each copy comes after the ones before it, whatever their
// streams. It cannot know who reads: before overwriting what a consumer may still read, record an
// event after the consumer and pass it as `wait_for`. Two buffers, one written while the other is
// read, stream any number of tiles through memory for two.
//
// Ownership: the buffer owns its storage, and the source storage of its copies; a source is
// released when its copy is found complete: by CopyHandle::Done or Synchronize, by the next
// CopyFrom, by Close. value() shares ownership of the storage; using such a tree after Close is the
// caller's fault.
//
// Threading: members are thread-safe; a stream passed in is used by the calling thread during the
// call.
//
// Errors: InvalidArgument for structure and arguments, FailedPrecondition once closed or for a
// foreign handle, the device's own error otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/execution/buffer_options.h"
#include "core/execution/copy_handle.h"
#include "core/execution/event_list.h"
#include "core/execution/value_tree_signature.h"
#include "core/runtime/device.h"
#include "core/value/value_tree.h"

namespace cipherd::execution {

class ReusableValueBuffer {
 public:
  // Allocates storage with the structure of `example` and enqueues the copy of its payload.
  // InvalidArgument: an unsupported leaf, no tensor at all, tensors in several places and no
  // `placement`, two tensors over one storage, `pin_memory` for a device target, a missing or wrong
  // stream or pinned device.
  static absl::StatusOr<std::unique_ptr<ReusableValueBuffer>> Like(const value::ValueTree& example,
                                                                   const BufferOptions& options);

  // Closes; a failure is logged.
  ~ReusableValueBuffer();
  ReusableValueBuffer(const ReusableValueBuffer&) = delete;
  ReusableValueBuffer& operator=(const ReusableValueBuffer&) = delete;

  // These answer also when closed.
  const ValueTreeSignature& signature() const { return signature_; }
  value::Placement placement() const { return placement_; }
  bool is_pinned() const { return is_pinned_; }
  bool closed() const;

  // Payload bytes of the storage.
  absl::StatusOr<int64_t> nbytes() const;

  // An ordinary tree over the fixed storage: each call gives the same addresses. Says nothing about
  // readiness, which is a matter of handles and streams.
  absl::StatusOr<value::ValueTree> value() const;

  // The latest copy, the one of Like at first.
  absl::StatusOr<CopyHandle> last_copy() const;

  // Replaces the payload by `source`, which may be in any memory. First validates the whole tree
  // and the arguments; then makes `stream` wait on `wait_for` and on this buffer's earlier copies,
  // enqueues one copy per tensor (one per row where a tensor has gaps), and records one event after
  // the last. A validation error leaves every byte as it was. Does not block unless asked to, or
  // unless a pageable source makes the driver do so.
  //
  // A host target is written before the call returns; leaves which are on a device must be complete
  // then, and travel on a stream of this buffer's own.
  absl::StatusOr<CopyHandle> CopyFrom(const value::ValueTree& source, const CopyOptions& options);

  // Makes `stream` wait for `handle`, the latest or an older one of this buffer, without blocking
  // the CPU.
  absl::Status WaitFor(const CopyHandle& handle, runtime::Stream& stream) const;

  // Whether `handle` was made by this buffer.
  bool Owns(const CopyHandle& handle) const { return handle.HasToken(token_); }

  // OK unless the latest copy failed half way and left a payload that is neither old nor new; then
  // FailedPrecondition until the next copy that succeeds.
  absl::Status payload_status() const;

  // Waits for the copies in flight and gives the storage up. Idempotent. The caller sees to it that
  // consumers are done.
  absl::Status Close();

 private:
  ReusableValueBuffer(ValueTreeSignature signature, value::Placement placement, bool is_pinned,
                      value::ValueTree storage);

  // Refuses a source that shares storage with the targets, unless it is the target in its own
  // place.
  absl::Status CheckOverlap(const value::ValueTree& source, std::string_view root_label) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<CopyHandle> CopyToDevice(const value::ValueTree& source, runtime::Stream& stream,
                                          const EventList& wait_for)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Leaves on a device travel on `stream`, or on a stream of this buffer's own where it is null.
  absl::StatusOr<CopyHandle> CopyToHost(const value::ValueTree& source, runtime::Stream* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<runtime::Stream*> StreamOf(runtime::Device& device)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ForgetCompletedCopies() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ValueTreeSignature signature_;
  const value::Placement placement_;
  const bool is_pinned_;
  // Its address is this buffer's identity.
  const std::shared_ptr<const void> token_;

  mutable absl::Mutex mu_;
  // Nothing once closed.
  std::optional<value::ValueTree> storage_ ABSL_GUARDED_BY(mu_);
  // The tensors of storage_, depth first.
  std::vector<value::Tensor> targets_ ABSL_GUARDED_BY(mu_);
  // Copies not yet known to be complete, oldest first.
  std::vector<CopyHandle> in_flight_ ABSL_GUARDED_BY(mu_);
  std::optional<CopyHandle> last_copy_ ABSL_GUARDED_BY(mu_);
  bool payload_torn_ ABSL_GUARDED_BY(mu_) = false;
  // Of a host target: one per device that a source came from.
  std::map<runtime::Device*, std::unique_ptr<runtime::Stream>> source_streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::execution

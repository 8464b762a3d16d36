#include "core/execution/reusable_value_buffer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/value/tensor_copy.h"
#include "spdlog/spdlog.h"

namespace cipherd::execution {
namespace {

using runtime::Device;
using runtime::StoragePtr;
using runtime::Stream;
using value::Placement;
using value::Tensor;
using value::ValueTree;

absl::Status ClosedError() { return absl::FailedPreconditionError("reusable buffer is closed"); }

absl::StatusOr<Tensor> AllocateTarget(const Tensor& example, const BufferOptions& options,
                                      Placement target) {
  if (!target.is_host()) return value::DeviceTensorLike(example, *options.stream);
  if (options.pin_memory) return value::PinnedTensorLike(example, *options.pinned_device);
  return value::HostTensorLike(example);
}

std::vector<StoragePtr> StoragesOf(const ValueTree& tree) {
  std::vector<StoragePtr> storages;
  for (const Tensor* tensor : value::TensorsOf(tree)) {
    if (tensor->bytes() > 0) storages.push_back(tensor->storage());
  }
  return storages;
}

// Path of the tensor at `index` of value::TensorsOf.
std::string PathOfTensor(const ValueTree& tree, std::string_view root_label, size_t index) {
  std::string found;
  value::ForEachTensor(tree, root_label, [&](const std::string& path, const Tensor&) {
    if (index-- == 0) found = path;
    return absl::OkStatus();
  }).IgnoreError();
  return found;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReusableValueBuffer>> ReusableValueBuffer::Like(
    const ValueTree& example, const BufferOptions& options) {
  CIPHERD_ASSIGN_OR_RETURN(ValueTreeSignature signature,
                           ValueTreeSignature::FromTree(example, "example"));
  if (value::TensorsOf(example).empty()) {
    return absl::InvalidArgumentError("example: expected at least one tensor, got none");
  }
  CIPHERD_ASSIGN_OR_RETURN(Placement target, TargetPlacement(example, options));
  CIPHERD_RETURN_IF_ERROR(value::RefuseAliases(example, "example"));

  CIPHERD_ASSIGN_OR_RETURN(
      ValueTree storage,
      value::MapTensors(example, "example", [&](const std::string&, const Tensor& tensor) {
        return AllocateTarget(tensor, options, target);
      }));
  // The constructor is private, so that make_unique cannot call it.
  std::unique_ptr<ReusableValueBuffer> buffer(new ReusableValueBuffer(
      std::move(signature), target, options.pin_memory, std::move(storage)));
  absl::MutexLock lock(&buffer->mu_);
  CIPHERD_RETURN_IF_ERROR((target.is_host() ? buffer->CopyToHost(example, options.stream)
                                            : buffer->CopyToDevice(example, *options.stream, {}))
                              .status());
  return buffer;
}

ReusableValueBuffer::ReusableValueBuffer(ValueTreeSignature signature, Placement placement,
                                         bool is_pinned, ValueTree storage)
    : signature_(std::move(signature)),
      placement_(placement),
      is_pinned_(is_pinned),
      token_(std::make_shared<char>()),
      storage_(std::move(storage)) {
  for (const Tensor* tensor : value::TensorsOf(*storage_)) targets_.push_back(*tensor);
}

ReusableValueBuffer::~ReusableValueBuffer() {
  if (absl::Status closed = Close(); !closed.ok()) {
    spdlog::error("closing a reusable buffer on {}: {}", placement_.ToString(), closed.ToString());
  }
}

bool ReusableValueBuffer::closed() const {
  absl::MutexLock lock(&mu_);
  return !storage_.has_value();
}

absl::StatusOr<int64_t> ReusableValueBuffer::nbytes() const {
  absl::MutexLock lock(&mu_);
  if (!storage_.has_value()) return ClosedError();
  return value::ValueTreeNbytes(*storage_);
}

absl::StatusOr<ValueTree> ReusableValueBuffer::value() const {
  absl::MutexLock lock(&mu_);
  if (!storage_.has_value()) return ClosedError();
  return *storage_;
}

absl::StatusOr<CopyHandle> ReusableValueBuffer::last_copy() const {
  absl::MutexLock lock(&mu_);
  if (!storage_.has_value()) return ClosedError();
  return *last_copy_;
}

absl::Status ReusableValueBuffer::payload_status() const {
  absl::MutexLock lock(&mu_);
  if (!storage_.has_value()) return ClosedError();
  if (payload_torn_) {
    return absl::FailedPreconditionError(
        "the latest copy into the buffer failed half way: copy again before reading");
  }
  return absl::OkStatus();
}

absl::StatusOr<CopyHandle> ReusableValueBuffer::CopyFrom(const ValueTree& source,
                                                         const CopyOptions& options) {
  std::optional<CopyHandle> handle;
  {
    absl::MutexLock lock(&mu_);
    if (!storage_.has_value()) return ClosedError();
    CIPHERD_RETURN_IF_ERROR(signature_.Validate(source, options.root_label));
    CIPHERD_RETURN_IF_ERROR(CheckCopyOptions(options, placement_));
    CIPHERD_RETURN_IF_ERROR(CheckOverlap(source, options.root_label));
    CIPHERD_RETURN_IF_ERROR(ForgetCompletedCopies());
    if (placement_.is_host()) return CopyToHost(source, nullptr);
    CIPHERD_ASSIGN_OR_RETURN(handle, CopyToDevice(source, *options.stream, options.wait_for));
  }
  if (!options.non_blocking) {
    if (absl::Status complete = handle->Synchronize(); !complete.ok()) {
      absl::MutexLock lock(&mu_);
      payload_torn_ = true;
      return complete;
    }
  }
  return *handle;
}

absl::Status ReusableValueBuffer::CheckOverlap(const ValueTree& source,
                                               std::string_view root_label) const {
  const std::vector<const Tensor*> sources = value::TensorsOf(source);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i]->bytes() == 0 || sources[i]->data() == targets_[i].data()) continue;
    for (const Tensor& target : targets_) {
      if (target.storage() != sources[i]->storage()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(PathOfTensor(source, root_label, i),
                       ": shares storage with a tensor of the buffer at another place"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CopyHandle> ReusableValueBuffer::CopyToDevice(const ValueTree& source,
                                                             Stream& stream,
                                                             const EventList& wait_for) {
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Event> event, stream.device().CreateEvent());
  CIPHERD_RETURN_IF_ERROR(WaitForEvents(wait_for, stream));
  // The first one, until it is complete, is that of Like: it also stands for what `stream` may not
  // know, the earlier users of the storage on the stream that allocated it.
  for (const CopyHandle& earlier : in_flight_) {
    CIPHERD_RETURN_IF_ERROR(earlier.WaitOn(stream).status());
  }

  const std::vector<const Tensor*> sources = value::TensorsOf(source);
  CopyHandle handle(event, placement_, StoragesOf(source), value::ValueTreeNbytes(source), token_);
  absl::Status enqueued;
  for (size_t i = 0; i < sources.size() && enqueued.ok(); ++i) {
    if (sources[i]->data() == targets_[i].data()) continue;  // copied onto itself, or without bytes
    enqueued = value::CopyTensorAsync(*sources[i], targets_[i], stream);
  }
  if (enqueued.ok()) enqueued = stream.Record(*event);
  payload_torn_ = !enqueued.ok();
  if (!enqueued.ok()) {
    // Copies that were enqueued may still run: keep what they use until they cannot.
    if (stream.Record(*event).ok()) {
      in_flight_.push_back(handle);
    } else {
      stream.Synchronize().IgnoreError();
    }
    return enqueued;
  }
  in_flight_.push_back(handle);
  last_copy_ = handle;
  return handle;
}

absl::StatusOr<CopyHandle> ReusableValueBuffer::CopyToHost(const ValueTree& source,
                                                           Stream* stream) {
  const std::vector<const Tensor*> sources = value::TensorsOf(source);
  std::vector<Stream*> used;
  absl::Status copied;
  payload_torn_ = true;
  for (size_t i = 0; i < sources.size() && copied.ok(); ++i) {
    const Tensor& from = *sources[i];
    if (from.data() == targets_[i].data()) continue;  // copied onto itself, or without bytes
    if (from.placement().is_host()) {
      copied = value::CopyTensorOnHost(from, targets_[i]);
      continue;
    }
    absl::StatusOr<Stream*> carrier = stream;
    if (stream == nullptr) carrier = StreamOf(*from.placement().device);
    copied = carrier.status();
    if (!copied.ok()) break;
    used.push_back(*carrier);
    copied = value::CopyTensorAsync(from, targets_[i], **carrier);
  }
  for (Stream* carrier : used) {
    if (absl::Status complete = carrier->Synchronize(); copied.ok()) copied = complete;
  }
  CIPHERD_RETURN_IF_ERROR(copied);
  payload_torn_ = false;
  last_copy_ = CopyHandle(nullptr, placement_, {}, value::ValueTreeNbytes(source), token_);
  return *last_copy_;
}

absl::StatusOr<Stream*> ReusableValueBuffer::StreamOf(Device& device) {
  std::unique_ptr<Stream>& stream = source_streams_[&device];
  if (stream == nullptr) {
    CIPHERD_ASSIGN_OR_RETURN(stream, device.CreateStream("copies into a host buffer"));
  }
  return stream.get();
}

absl::Status ReusableValueBuffer::ForgetCompletedCopies() {
  std::vector<CopyHandle> pending;
  for (const CopyHandle& handle : in_flight_) {
    CIPHERD_ASSIGN_OR_RETURN(bool done, handle.Done());
    if (!done) pending.push_back(handle);
  }
  in_flight_ = std::move(pending);
  return absl::OkStatus();
}

absl::Status ReusableValueBuffer::WaitFor(const CopyHandle& handle, Stream& stream) const {
  absl::MutexLock lock(&mu_);
  if (!storage_.has_value()) return ClosedError();
  if (!Owns(handle)) {
    return absl::FailedPreconditionError("the copy handle belongs to another buffer");
  }
  return handle.WaitOn(stream).status();
}

absl::Status ReusableValueBuffer::Close() {
  std::optional<ValueTree> storage;
  std::vector<Tensor> targets;
  std::vector<CopyHandle> in_flight;
  std::map<Device*, std::unique_ptr<Stream>> source_streams;
  {
    absl::MutexLock lock(&mu_);
    storage.swap(storage_);
    targets.swap(targets_);
    in_flight.swap(in_flight_);
    source_streams.swap(source_streams_);
    last_copy_.reset();
  }
  absl::Status closed;
  for (const CopyHandle& handle : in_flight) closed.Update(handle.Synchronize());
  return closed;
}

}  // namespace cipherd::execution

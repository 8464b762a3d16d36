// Copies of tensors, strides honoured: what moves payload between any two memories.
//
//   CIPHERD_ASSIGN_OR_RETURN(Tensor target, DeviceTensorLike(source, stream));
//   CIPHERD_RETURN_IF_ERROR(CopyTensorAsync(source, target, stream));
//
// Source and target have one topology (dtype, shape, strides), so that a copy is the same set of
// byte ranges on both sides. A tensor without gaps, in whatever order of its axes, is one range;
// else there is one range for each run of adjacent elements. Bytes in gaps are neither read nor
// written.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/runtime/device.h"
#include "core/runtime/stream.h"
#include "core/value/tensor.h"
#include "core/value/value_tree.h"

namespace cipherd::value {

// New uninitialised tensors with the topology of `example`: in pageable memory, in pinned memory of
// `device`, in device memory for work on `stream`.
absl::StatusOr<Tensor> HostTensorLike(const Tensor& example);
absl::StatusOr<Tensor> PinnedTensorLike(const Tensor& example, runtime::Device& device);
absl::StatusOr<Tensor> DeviceTensorLike(const Tensor& example, runtime::Stream& stream);

// Enqueues the copy on `stream`; does not synchronise. The caller keeps both storages until it is
// done. InvalidArgument where the topologies differ.
absl::Status CopyTensorAsync(const Tensor& source, const Tensor& target, runtime::Stream& stream);

// A copy of `tensor` on the device of `stream`, and one in pageable memory. Block until it is made.
absl::StatusOr<Tensor> CopyToDevice(const Tensor& tensor, runtime::Stream& stream);
absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, runtime::Stream& stream);

// Copies between host memories before it returns. InvalidArgument where the topologies differ or a
// side is on a device.
absl::Status CopyTensorOnHost(const Tensor& source, const Tensor& target);

// Enqueues the copy of every tensor of `source` into the tensor at its place in `target`, both of
// one structure; nothing is enqueued where they differ (InvalidArgument). Names `stream` to the
// storages of both sides (Storage::RecordUse), so that only pageable ones need an owner until the
// copy is done.
absl::Status CopyTreeAsync(const ValueTree& source, const ValueTree& target,
                           runtime::Stream& stream);

}  // namespace cipherd::value

#include "core/value/tensor_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"

namespace cipherd::value {
namespace {

// Copies `bytes` bytes.
using CopyRun = std::function<absl::Status(std::byte* to, const std::byte* from, size_t bytes)>;

struct Axis {
  int64_t count;
  int64_t stride_bytes;
};

// The byte ranges of a tensor: every combination of the outer axes starts a run.
struct Runs {
  int64_t run_bytes;
  std::vector<Axis> outer;
};

// Requires a tensor with elements.
Runs RunsOf(const Tensor& tensor) {
  const int64_t element_bytes = ElementBytes(tensor.dtype());
  std::vector<Axis> axes;
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    // An axis of one element moves nowhere, and one of stride 0 meets the same bytes again.
    if (tensor.shape()[i] == 1 || tensor.strides()[i] == 0) continue;
    axes.push_back({tensor.shape()[i], tensor.strides()[i] * element_bytes});
  }
  // Narrow strides first; of equal ones, the longer axis.
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return std::pair(a.stride_bytes, -a.count) < std::pair(b.stride_bytes, -b.count);
  });
  Runs runs{element_bytes, {}};
  for (const Axis& axis : axes) {
    if (runs.outer.empty() && axis.stride_bytes == runs.run_bytes) {
      runs.run_bytes *= axis.count;
    } else {
      runs.outer.push_back(axis);
    }
  }
  // Ascending addresses: the axis with the widest stride outermost.
  std::reverse(runs.outer.begin(), runs.outer.end());
  return runs;
}

absl::Status CopyRuns(const Runs& runs, size_t axis, std::byte* to, const std::byte* from,
                      const CopyRun& copy_run) {
  if (axis == runs.outer.size()) {
    return copy_run(to, from, static_cast<size_t>(runs.run_bytes));
  }
  const auto [count, stride_bytes] = runs.outer[axis];
  for (int64_t i = 0; i < count; ++i) {
    CIPHERD_RETURN_IF_ERROR(
        CopyRuns(runs, axis + 1, to + i * stride_bytes, from + i * stride_bytes, copy_run));
  }
  return absl::OkStatus();
}

bool SameTopology(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.strides() == b.strides();
}

std::string TopologyOf(const Tensor& tensor) {
  return absl::StrCat(std::string(ToString(tensor.dtype())), "[",
                      absl::StrJoin(tensor.shape(), ", "), "] strides [",
                      absl::StrJoin(tensor.strides(), ", "), "]");
}

absl::Status CopyTensor(const Tensor& source, const Tensor& target, const CopyRun& copy_run) {
  if (!SameTopology(source, target)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "copy of a tensor: expected ", TopologyOf(target), ", got ", TopologyOf(source)));
  }
  if (source.bytes() == 0) return absl::OkStatus();
  return CopyRuns(RunsOf(source), 0, target.data_as<std::byte>(), source.data_as<std::byte>(),
                  copy_run);
}

absl::StatusOr<Tensor> View(absl::StatusOr<runtime::StoragePtr> storage, const Tensor& example) {
  CIPHERD_RETURN_IF_ERROR(storage.status());
  CIPHERD_ASSIGN_OR_RETURN(
      Tensor tensor, Tensor::FromStorage(*std::move(storage), 0, example.dtype(), example.shape(),
                                         example.strides()));
  tensor.set_requires_grad(example.requires_grad());
  return tensor;
}

}  // namespace

absl::StatusOr<Tensor> HostTensorLike(const Tensor& example) {
  return View(runtime::AllocatePageable(static_cast<size_t>(example.extent_bytes())), example);
}

absl::StatusOr<Tensor> PinnedTensorLike(const Tensor& example, runtime::Device& device) {
  return View(device.AllocatePinned(static_cast<size_t>(example.extent_bytes())), example);
}

absl::StatusOr<Tensor> DeviceTensorLike(const Tensor& example, runtime::Stream& stream) {
  return View(stream.device().Allocate(static_cast<size_t>(example.extent_bytes()), stream),
              example);
}

absl::Status CopyTensorAsync(const Tensor& source, const Tensor& target, runtime::Stream& stream) {
  return CopyTensor(source, target, [&stream](std::byte* to, const std::byte* from, size_t bytes) {
    return stream.CopyAsync(to, from, bytes);
  });
}

absl::StatusOr<Tensor> CopyToDevice(const Tensor& tensor, runtime::Stream& stream) {
  CIPHERD_ASSIGN_OR_RETURN(Tensor copy, DeviceTensorLike(tensor, stream));
  CIPHERD_RETURN_IF_ERROR(CopyTensorAsync(tensor, copy, stream));
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  return copy;
}

absl::StatusOr<Tensor> CopyToHost(const Tensor& tensor, runtime::Stream& stream) {
  CIPHERD_ASSIGN_OR_RETURN(Tensor copy, HostTensorLike(tensor));
  CIPHERD_RETURN_IF_ERROR(CopyTensorAsync(tensor, copy, stream));
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  return copy;
}

absl::Status CopyTensorOnHost(const Tensor& source, const Tensor& target) {
  if (!source.placement().is_host() || !target.placement().is_host()) {
    return absl::InvalidArgumentError(absl::StrCat("copy on the host: from ",
                                                   source.placement().ToString(), " to ",
                                                   target.placement().ToString()));
  }
  return CopyTensor(source, target, [](std::byte* to, const std::byte* from, size_t bytes) {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  });
}

absl::Status CopyTreeAsync(const ValueTree& source, const ValueTree& target,
                           runtime::Stream& stream) {
  const std::vector<const Tensor*> sources = TensorsOf(source);
  const std::vector<const Tensor*> targets = TensorsOf(target);
  if (sources.size() != targets.size()) {
    return absl::InvalidArgumentError(absl::StrCat("copy of a tree: expected ", targets.size(),
                                                   " tensors, got ", sources.size()));
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!SameTopology(*sources[i], *targets[i])) {
      return absl::InvalidArgumentError(absl::StrCat("copy of a tree: tensor ", i, ": expected ",
                                                     TopologyOf(*targets[i]), ", got ",
                                                     TopologyOf(*sources[i])));
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i]->bytes() == 0) continue;
    sources[i]->storage()->RecordUse(stream);
    targets[i]->storage()->RecordUse(stream);
    CIPHERD_RETURN_IF_ERROR(CopyTensorAsync(*sources[i], *targets[i], stream));
  }
  return absl::OkStatus();
}

}  // namespace cipherd::value

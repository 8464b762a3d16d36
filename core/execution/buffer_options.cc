#include "core/execution/buffer_options.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::execution {
namespace {

using runtime::Device;
using runtime::Stream;
using value::Placement;
using value::Tensor;
using value::ValueTree;

// Where every tensor with bytes is; InvalidArgument where they are in several places.
absl::StatusOr<Placement> CommonPlacement(const ValueTree& example) {
  std::optional<Placement> common;
  std::string first_path;
  CIPHERD_RETURN_IF_ERROR(value::ForEachTensor(
      example, "example", [&](const std::string& path, const Tensor& tensor) -> absl::Status {
        if (tensor.bytes() == 0) return absl::OkStatus();
        if (!common.has_value()) {
          common = tensor.placement();
          first_path = path;
        }
        if (*common == tensor.placement()) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat("a target placement is needed: ", first_path,
                                                       " is on ", common->ToString(), ", ", path,
                                                       " on ", tensor.placement().ToString()));
      }));
  return common.value_or(Placement::Host());
}

absl::Status CheckTarget(const ValueTree& example, const BufferOptions& options, Placement target) {
  if (options.pin_memory && !target.is_host()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pin_memory: expected a host target, got ", target.ToString()));
  }
  if (options.pin_memory && options.pinned_device == nullptr) {
    return absl::InvalidArgumentError("pin_memory: expected a device whose pool to take from");
  }
  if (!target.is_host()) return CheckStreamOf(options.stream, *target.device);
  for (const Tensor* tensor : value::TensorsOf(example)) {
    if (tensor->bytes() == 0 || tensor->placement().is_host()) continue;
    CIPHERD_RETURN_IF_ERROR(CheckStreamOf(options.stream, *tensor->placement().device));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStreamOf(const Stream* stream, const Device& device) {
  if (stream == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("stream: expected one of ", device.id().ToString(), ", got none"));
  }
  if (&stream->device() != &device) {
    return absl::InvalidArgumentError(
        absl::StrCat("stream: expected one of ", device.id().ToString(), ", got '", stream->name(),
                     "' of ", stream->device().id().ToString()));
  }
  if (stream->is_capturing()) {
    return absl::FailedPreconditionError(
        absl::StrCat("stream '", stream->name(), "' is capturing: expected one that is not"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Placement> TargetPlacement(const ValueTree& example, const BufferOptions& options) {
  Placement target;
  if (options.placement.has_value()) {
    target = *options.placement;
  } else {
    CIPHERD_ASSIGN_OR_RETURN(target, CommonPlacement(example));
  }
  CIPHERD_RETURN_IF_ERROR(CheckTarget(example, options, target));
  return target;
}

absl::Status CheckCopyOptions(const CopyOptions& options, Placement target) {
  if (!target.is_host()) {
    CIPHERD_RETURN_IF_ERROR(CheckStreamOf(options.stream, *target.device));
    return CheckEvents(options.wait_for, *target.device);
  }
  if (options.stream != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("stream: expected none for a host target, got '",
                                                   options.stream->name(), "'"));
  }
  if (!options.wait_for.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wait_for: expected none for a host target, got ", options.wait_for.size(), " events"));
  }
  return absl::OkStatus();
}

}  // namespace cipherd::execution

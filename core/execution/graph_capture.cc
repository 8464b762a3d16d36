#include "core/execution/graph_capture.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "core/value/tensor_copy.h"

namespace cipherd::execution {
namespace {

using runtime::Device;
using runtime::Stream;
using value::Placement;
using value::Tensor;
using value::ValueTree;

constexpr std::string_view kExampleLabel = "example_inputs";

// The one device that every tensor of `tree` is on.
absl::StatusOr<Device*> DeviceOf(const ValueTree& tree) {
  Device* device = nullptr;
  CIPHERD_RETURN_IF_ERROR(value::ForEachTensor(
      tree, kExampleLabel, [&](const std::string& path, const Tensor& tensor) -> absl::Status {
        const Placement placement = tensor.placement();
        if (!placement.is_host() && (device == nullptr || device == placement.device)) {
          device = placement.device;
          return absl::OkStatus();
        }
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": expected a tensor on ",
                         device == nullptr ? "a device" : device->id().ToString(), ", got one on ",
                         placement.ToString()));
      }));
  if (device == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(kExampleLabel), ": expected at least one tensor, got none"));
  }
  return device;
}

// The signature of what the callable returned, nothing for None.
absl::StatusOr<std::optional<ValueTreeSignature>> CheckOutput(const ValueTree& output,
                                                              Device& device) {
  if (output.kind() == value::TreeKind::kNone) return std::nullopt;
  CIPHERD_ASSIGN_OR_RETURN(ValueTreeSignature signature,
                           ValueTreeSignature::FromTree(output, "output"));
  CIPHERD_RETURN_IF_ERROR(value::ForEachTensor(
      output, "output", [&](const std::string& path, const Tensor& tensor) -> absl::Status {
        if (tensor.placement() == Placement::On(device)) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat(path, ": expected a tensor on ",
                                                       device.id().ToString(), ", got one on ",
                                                       tensor.placement().ToString()));
      }));
  return signature;
}

// One attempt at a capture. Its parts are released last to first: what the graph uses outlives it,
// and the stream, which all of them were enqueued on, waits for its work at the very end.
class GraphCapture {
 public:
  GraphCapture(const ProgramFunction& function, const ValueTree& example, Device& device,
               const CaptureOptions& options)
      : function_(function), example_(example), device_(device), options_(options) {}

  absl::Status Prepare() {
    CIPHERD_ASSIGN_OR_RETURN(stream_, device_.CreateStream("capture"));
    return WaitForEvents(options_.wait_for, *stream_);
  }

  // One eager run over a fresh buffer, complete and released on return.
  absl::Status WarmUp() {
    CIPHERD_ASSIGN_OR_RETURN(auto buffer, FreshBuffer());
    CIPHERD_ASSIGN_OR_RETURN(ValueTree inputs, buffer->value());
    CIPHERD_ASSIGN_OR_RETURN(ValueTree output, function_(inputs.children(), *stream_));
    CIPHERD_RETURN_IF_ERROR(CheckFixed(output));
    CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
    return buffer->Close();
  }

  absl::Status Capture() {
    CIPHERD_ASSIGN_OR_RETURN(input_buffer_, FreshBuffer());
    CIPHERD_ASSIGN_OR_RETURN(ValueTree inputs, input_buffer_->value());
    CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
    CIPHERD_RETURN_IF_ERROR(stream_->BeginCapture(options_.check_input_liveness));
    absl::StatusOr<ValueTree> output = Record(inputs);
    // Also after a failure: the stream must leave its capture.
    absl::StatusOr<std::unique_ptr<runtime::Graph>> graph = stream_->EndCapture();
    CIPHERD_RETURN_IF_ERROR(output.status());
    CIPHERD_RETURN_IF_ERROR(graph.status());
    graph_ = *std::move(graph);
    output_ = *std::move(output);
    return absl::OkStatus();
  }

  absl::Status FirstReplay() {
    CIPHERD_RETURN_IF_ERROR(graph_->Launch(*stream_));
    return stream_->Synchronize();
  }

  // OK, or what `failure` is to the caller: Internal, naming stage and function and keeping the
  // cause; InvalidArgument where the output was refused.
  absl::Status AtStage(std::string_view stage, const absl::Status& failure) const {
    if (failure.ok()) return failure;
    const std::string where =
        absl::StrCat(std::string(stage), " of '", options_.function_name, "'");
    if (output_refused_) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", std::string(failure.message())));
    }
    return absl::InternalError(absl::StrCat(where, " failed: ", failure.ToString()));
  }

  CapturedGraph Finish(ProgramFunction function, CaptureStats stats) && {
    return {&device_,
            std::move(function),
            value::ValueTreeNbytes(example_),
            std::move(input_buffer_),
            std::move(graph_),
            std::move(output_),
            std::move(output_signature_),
            stats};
  }

 private:
  absl::StatusOr<std::unique_ptr<ReusableValueBuffer>> FreshBuffer() {
    return ReusableValueBuffer::Like(
        example_, {.placement = Placement::On(device_), .stream = stream_.get()});
  }

  absl::StatusOr<ValueTree> Record(const ValueTree& inputs) {
    CIPHERD_ASSIGN_OR_RETURN(ValueTree output, function_(inputs.children(), *stream_));
    CIPHERD_RETURN_IF_ERROR(CheckFixed(output));
    std::set<const runtime::Storage*> input_storages;
    for (const Tensor* tensor : value::TensorsOf(inputs)) {
      input_storages.insert(tensor->storage().get());
    }
    return value::MapTensors(
        output, "output", [&](const std::string&, const Tensor& tensor) -> absl::StatusOr<Tensor> {
          if (!input_storages.contains(tensor.storage().get())) return tensor;
          CIPHERD_ASSIGN_OR_RETURN(Tensor clone, value::DeviceTensorLike(tensor, *stream_));
          CIPHERD_RETURN_IF_ERROR(value::CopyTensorAsync(tensor, clone, *stream_));
          return clone;
        });
  }

  // Admits an output that a program may have, and that is like those of the runs before.
  absl::Status CheckFixed(const ValueTree& output) {
    absl::StatusOr<std::optional<ValueTreeSignature>> signature = CheckOutput(output, device_);
    if (!signature.ok()) {
      output_refused_ = true;
      return signature.status();
    }
    if (!std::exchange(has_run_, true)) output_signature_ = *signature;
    if (*signature == output_signature_) return absl::OkStatus();
    const auto text = [](const std::optional<ValueTreeSignature>& side) {
      return side.has_value() ? side->ToString() : std::string("nothing");
    };
    return absl::FailedPreconditionError(
        absl::StrCat("the schedule is not fixed: output: expected ", text(output_signature_),
                     ", got ", text(*signature)));
  }

  const ProgramFunction& function_;
  const ValueTree& example_;
  Device& device_;
  const CaptureOptions& options_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<ReusableValueBuffer> input_buffer_;
  std::unique_ptr<runtime::Graph> graph_;
  ValueTree output_;
  bool has_run_ = false;
  bool output_refused_ = false;
  // Of the first run.
  std::optional<ValueTreeSignature> output_signature_;
};

}  // namespace

absl::StatusOr<CapturedGraph> CaptureGraph(ProgramFunction function, const ValueTree& example,
                                           const CaptureOptions& options) {
  if (function == nullptr) return absl::InvalidArgumentError("function: expected one, got none");
  if (options.warmup < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("warmup: expected at least 0, got ", options.warmup));
  }
  CIPHERD_RETURN_IF_ERROR(ValueTreeSignature::FromTree(example, kExampleLabel).status());
  CIPHERD_ASSIGN_OR_RETURN(Device * device, DeviceOf(example));
  CIPHERD_RETURN_IF_ERROR(value::RefuseAliases(example, kExampleLabel));
  CIPHERD_RETURN_IF_ERROR(CheckEvents(options.wait_for, *device));

  GraphCapture capture(function, example, *device, options);
  CIPHERD_RETURN_IF_ERROR(capture.Prepare());
  CaptureStats stats{.warmup_iterations = options.warmup};
  const absl::Time start = options.clock->Now();
  for (int run = 1; run <= options.warmup; ++run) {
    CIPHERD_RETURN_IF_ERROR(capture.AtStage(
        absl::StrCat("warm-up run ", run, " of ", options.warmup), capture.WarmUp()));
  }
  const absl::Time warmed_up = options.clock->Now();
  CIPHERD_RETURN_IF_ERROR(capture.AtStage("capture", capture.Capture()));
  const absl::Time captured = options.clock->Now();
  CIPHERD_RETURN_IF_ERROR(capture.AtStage("first replay", capture.FirstReplay()));
  const absl::Time replayed = options.clock->Now();

  stats.warmup_seconds = absl::ToDoubleSeconds(warmed_up - start);
  stats.capture_seconds = absl::ToDoubleSeconds(captured - warmed_up);
  stats.first_replay_seconds = absl::ToDoubleSeconds(replayed - captured);
  const runtime::MemoryStats memory = device->device_memory_stats();
  stats.memory_allocated_bytes = memory.allocated_bytes;
  stats.memory_reserved_bytes = memory.reserved_bytes;
  return std::move(capture).Finish(std::move(function), stats);
}

}  // namespace cipherd::execution

#include "server/engine/device_submission.h"

#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/execution/cuda_graph_program.h"
#include "core/value/tensor_copy.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {
namespace {

double SecondsBetween(const runtime::Event& start, const runtime::Event& end) {
  const absl::StatusOr<double> seconds = end.SecondsSince(start);
  if (!seconds.ok()) {
    spdlog::warn("no stage time: {}", std::string(seconds.status().message()));
    return 0;
  }
  return *seconds;
}

}  // namespace

void WorkerStreams::AwaitQuiet() {
  // Their errors are known already.
  transfer->Synchronize().IgnoreError();
  compute->Synchronize().IgnoreError();
  output->Synchronize().IgnoreError();
}

absl::Status DeviceSubmission::Enqueue(WorkerStreams& streams, KeyResidency& residency,
                                       std::function<void()> on_done) {
  ProgramInstance& instance = *instance_;
  execution::CudaGraphProgram& graph = instance.graph();
  // No room for the keys is this request's trouble; any other failure is the device's.
  const absl::Status loaded = residency.EnsureLoaded(keys_, *streams.transfer);
  may_be_under_way_ = !loaded.ok() && !absl::IsResourceExhausted(loaded);
  CIPHERD_RETURN_IF_ERROR(loaded);
  CIPHERD_RETURN_IF_ERROR(instance.BindKeys(keys_.device_keys()));
  const std::vector<value::ValueTree> arguments = instance.Arguments(request_->inputs());

  may_be_under_way_ = true;
  CIPHERD_RETURN_IF_ERROR(streams.transfer->Record(instance.transfer_started()));
  absl::StatusOr<execution::CopyHandle> copied =
      graph.CopyInputsFrom(arguments, {.stream = streams.transfer.get(), .root_label = "inputs"});
  // A refused tree moved no byte.
  may_be_under_way_ = copied.status().code() != absl::StatusCode::kInvalidArgument;
  CIPHERD_RETURN_IF_ERROR(copied.status());
  inputs_copied_ = *copied;

  CIPHERD_RETURN_IF_ERROR(streams.compute->Wait(keys_.loaded_event()));
  CIPHERD_RETURN_IF_ERROR(copied->WaitOn(*streams.compute).status());
  CIPHERD_RETURN_IF_ERROR(streams.compute->Record(instance.replay_started()));
  CIPHERD_ASSIGN_OR_RETURN(const value::ValueTree borrowed,
                           graph.ReplayPrepared(*streams.compute, {.copy_handle = *copied}));
  CIPHERD_ASSIGN_OR_RETURN(replayed_, graph.completion_event());

  CIPHERD_RETURN_IF_ERROR(streams.output->Wait(*replayed_));
  CIPHERD_RETURN_IF_ERROR(streams.output->Record(instance.output_started()));
  CIPHERD_RETURN_IF_ERROR(value::CopyTreeAsync(borrowed, request_->outputs(), *streams.output));
  CIPHERD_RETURN_IF_ERROR(streams.output->Record(instance.output_copied()));
  return streams.output->LaunchHost(std::move(on_done));
}

void DeviceSubmission::RecordTimes() {
  StageTimes& times = request_->times();
  times.transfer_in_seconds =
      SecondsBetween(instance_->transfer_started(), *inputs_copied_->event());
  times.replay_seconds = SecondsBetween(instance_->replay_started(), *replayed_);
  times.transfer_out_seconds =
      SecondsBetween(instance_->output_started(), instance_->output_copied());
}

void DeviceSubmission::Release() {
  inputs_copied_.reset();
  keys_.Release();
  instance_.Return();
}

}  // namespace cipherd::engine

#include "server/engine/device_submission.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

absl::StatusOr<WorkerStreams> WorkerStreams::Create(runtime::Device& device,
                                                    std::string_view worker) {
  const std::string name(worker);
  WorkerStreams streams;
  CIPHERD_ASSIGN_OR_RETURN(streams.transfer, device.CreateStream(absl::StrCat(name, " transfer")));
  CIPHERD_ASSIGN_OR_RETURN(streams.compute, device.CreateStream(absl::StrCat(name, " compute")));
  CIPHERD_ASSIGN_OR_RETURN(streams.output, device.CreateStream(absl::StrCat(name, " output")));
  return streams;
}

void WorkerStreams::AwaitQuiet() {
  for (std::unique_ptr<runtime::Stream>* stream : {&transfer, &compute, &output}) {
    if (!(*stream)->Synchronize().ok()) stream->reset();
  }
}

absl::Status DeviceSubmission::LoadKeys(WorkerStreams& streams, KeyResidency& residency) {
  absl::Status failure;
  for (Item& item : items_) {
    const absl::Status loaded = residency.EnsureLoaded(item.keys, *streams.transfer);
    if (loaded.ok()) continue;
    if (!absl::IsResourceExhausted(loaded)) {
      failure = loaded;
      break;
    }
    // No room for the keys is this request's trouble; any other failure is the device's.
    item.keys.Release();
    refused_.push_back({std::move(item.request), loaded});
  }
  if (!refused_.empty()) {
    std::erase_if(items_, [](const Item& item) { return item.request == nullptr; });
  }
  may_be_under_way_ = !failure.ok();
  return failure;
}

absl::Status DeviceSubmission::Enqueue(WorkerStreams& streams,
                                       const std::optional<Listener>& listener) {
  // By its return it has let go of the borrowed outputs: as soon as `on_done` is enqueued the
  // program may be unloaded, and what it has is to be gone by then.
  CIPHERD_RETURN_IF_ERROR(EnqueueStages(streams, listener));
  return listener.has_value() ? streams.output->LaunchHost(listener->on_done) : absl::OkStatus();
}

absl::Status DeviceSubmission::EnqueueStages(WorkerStreams& streams,
                                             const std::optional<Listener>& listener) {
  ProgramInstance& instance = *instance_;
  // All of them before anything is enqueued: from then on the completion thread reads it.
  for (size_t item = 0; item < items_.size(); ++item) {
    if (!items_[item].request->wants_early_outputs()) continue;
    for (size_t output = 0; output < instance.early_output_count(); ++output) {
      early_outputs_.push_back({item, output});
    }
  }
  // In the order in which they are computed: a GPU computes the items side by side, the CPU one
  // after the other.
  if (streams.output->device().id().kind == runtime::DeviceId::Kind::kCuda) {
    std::ranges::stable_sort(early_outputs_, {}, &EarlyOutput::output);
  }
  CIPHERD_ASSIGN_OR_RETURN(inputs_copied_, CopyInputs(*streams.transfer));

  for (const Item& item : items_) {
    CIPHERD_RETURN_IF_ERROR(streams.compute->Wait(item.keys.loaded_event()));
  }
  CIPHERD_RETURN_IF_ERROR(inputs_copied_->WaitOn(*streams.compute).status());
  CIPHERD_RETURN_IF_ERROR(streams.compute->Record(instance.replay_started()));
  CIPHERD_ASSIGN_OR_RETURN(
      const value::ValueTree borrowed,
      instance.graph().ReplayPrepared(*streams.compute, {.copy_handle = inputs_copied_}));
  CIPHERD_ASSIGN_OR_RETURN(replayed_, instance.graph().completion_event());

  CIPHERD_RETURN_IF_ERROR(CopyEarlyOutputs(borrowed, listener, *streams.output));
  CIPHERD_RETURN_IF_ERROR(streams.output->Wait(*replayed_));
  CIPHERD_RETURN_IF_ERROR(streams.output->Record(instance.output_started()));
  CIPHERD_RETURN_IF_ERROR(CopyOutputs(borrowed, *streams.output));
  return streams.output->Record(*instance.output_copied());
}

absl::StatusOr<execution::CopyHandle> DeviceSubmission::CopyInputs(runtime::Stream& transfer) {
  ProgramInstance& instance = *instance_;
  std::vector<const value::ValueTree*> inputs;
  inputs.reserve(instance.batch_size());
  for (int place = 0; place < instance.batch_size(); ++place) {
    const Item& item = ItemAt(place);
    CIPHERD_RETURN_IF_ERROR(instance.BindKeys(place, item.keys.device_keys()));
    inputs.push_back(&item.request->inputs());
  }
  const std::vector<value::ValueTree> arguments = instance.Arguments(inputs);
  may_be_under_way_ = true;
  CIPHERD_RETURN_IF_ERROR(transfer.Record(instance.transfer_started()));
  absl::StatusOr<execution::CopyHandle> copied =
      instance.graph().CopyInputsFrom(arguments, {.stream = &transfer, .root_label = "inputs"});
  // A refused tree moved no byte.
  may_be_under_way_ = copied.status().code() != absl::StatusCode::kInvalidArgument;
  return copied;
}

absl::Status DeviceSubmission::CopyEarlyOutputs(const value::ValueTree& borrowed,
                                                const std::optional<Listener>& listener,
                                                runtime::Stream& stream) {
  ProgramInstance& instance = *instance_;
  for (size_t i = 0; i < early_outputs_.size(); ++i) {
    const auto [item, output] = early_outputs_[i];
    CIPHERD_RETURN_IF_ERROR(stream.Wait(instance.output_computed(item, output)));
    CIPHERD_RETURN_IF_ERROR(value::CopyTreeAsync(borrowed[item][output],
                                                 items_[item].request->outputs()[output], stream));
    if (listener.has_value()) {
      CIPHERD_RETURN_IF_ERROR(
          stream.LaunchHost([tell = listener->on_early_output, i] { tell(i); }));
    } else {
      CIPHERD_RETURN_IF_ERROR(stream.Record(instance.early_output_copied(item, output)));
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceSubmission::CopyOutputs(const value::ValueTree& borrowed,
                                           runtime::Stream& stream) {
  for (size_t item = 0; item < items_.size(); ++item) {
    const Request& request = *items_[item].request;
    const size_t copied = request.wants_early_outputs() ? instance_->early_output_count() : 0;
    for (size_t output = copied; output < borrowed[item].children().size(); ++output) {
      CIPHERD_RETURN_IF_ERROR(
          value::CopyTreeAsync(borrowed[item][output], request.outputs()[output], stream));
    }
  }
  return absl::OkStatus();
}

std::vector<const runtime::Event*> DeviceSubmission::milestones() const {
  std::vector<const runtime::Event*> milestones;
  for (const EarlyOutput& early : early_outputs_) {
    milestones.push_back(&instance_->early_output_copied(early.item, early.output));
  }
  milestones.push_back(replayed_.get());
  milestones.push_back(instance_->output_copied().get());
  return milestones;
}

void DeviceSubmission::OnMilestone(size_t index) {
  if (index < early_outputs_.size()) {
    TellEarlyOutput(index);
  } else {
    ReadReplayTimes();
  }
}

void DeviceSubmission::TellEarlyOutput(size_t output) {
  const EarlyOutput& early = early_outputs_[output];
  items_[early.item].request->TellOutputs(early.output + 1);
}

void DeviceSubmission::ReadReplayTimes() {
  ProgramInstance& instance = *instance_;
  replay_times_ = {SecondsBetween(instance.transfer_started(), *inputs_copied_->event()),
                   SecondsBetween(instance.replay_started(), *replayed_)};
}

void DeviceSubmission::RecordTimes() {
  ProgramInstance& instance = *instance_;
  if (!replay_times_.has_value()) ReadReplayTimes();
  const auto [in, replay] = *replay_times_;
  const double out = SecondsBetween(instance.output_started(), *instance.output_copied());
  const double taken = absl::ToDoubleSeconds(seen_at_ - taken_at_);
  for (const Item& item : items_) {
    StageTimes& times = item.request->times();
    times.transfer_in_seconds = in;
    times.replay_seconds = replay;
    times.transfer_out_seconds = out;
    times.device_wait_seconds = std::max(0.0, taken - in - replay - out);
  }
  if (charge_.is_charged()) items_.front().request->program().AddBatchTime(replay);
}

void DeviceSubmission::CountRun() {
  RunCounts& counts = items_.front().request->program().run_counts();
  if (replayed_ == nullptr) {
    counts.CountEagerRun();
  } else {
    counts.CountReplay(instance_->batch_size());
  }
}

void DeviceSubmission::RecordTimeline(const runtime::Event& epoch) {
  ProgramInstance& instance = *instance_;
  const auto span = [&](const runtime::Event& start, double seconds) {
    const double begin = SecondsBetween(epoch, start);
    return DeviceSpan{begin, begin + seconds};
  };
  const StageTimes& times = items_.front().request->times();
  const DeviceTimeline timeline = {
      .transfer_in = span(instance.transfer_started(), times.transfer_in_seconds),
      .replay = span(instance.replay_started(), times.replay_seconds),
      .transfer_out = span(instance.output_started(), times.transfer_out_seconds),
      .taken_at = taken_at_,
      .seen_at = seen_at_};
  for (const Item& item : items_) item.request->set_timeline(timeline);
}

std::vector<RequestPtr> DeviceSubmission::Release() {
  inputs_copied_.reset();
  // First, so that whoever the release of the keys wakes finds the device less loaded and the
  // instance idle.
  charge_.Release();
  instance_.Return();
  std::vector<RequestPtr> requests;
  for (Item& item : items_) {
    item.keys.Release();
    requests.push_back(std::move(item.request));
  }
  items_.clear();
  return requests;
}

}  // namespace cipherd::engine

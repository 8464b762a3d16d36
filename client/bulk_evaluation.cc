#include "client/bulk_evaluation.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/call_status.h"
#include "client/planned_range.h"
#include "core/base/status_macros.h"
#include "core/secret/random.h"
#include "proto/codec/error_detail.h"

namespace cipherd::client {
namespace {

absl::Status Refuse(const std::string& path, const std::string& what) {
  return codec::WithErrorDetail(absl::InvalidArgumentError(absl::StrCat(path, ": ", what)),
                                v1::ERROR_REASON_UNSPECIFIED, path);
}

// Before anything is sent, and by its place in the whole.
absl::Status CheckItems(const programs::ProgramInput& input, const ItemsView& items) {
  const std::string path = absl::StrCat("inputs['", input.name, "']");
  if (items.element_count != input.layout.element_count) {
    return Refuse(path, absl::StrCat("expected items of ", input.layout.element_count,
                                     " elements, got ", items.element_count));
  }
  const std::span<const double> numbers(
      items.numbers, static_cast<size_t>(items.item_count * items.element_count));
  const auto odd = std::find_if_not(numbers.begin(), numbers.end(),
                                    [](double number) { return std::isfinite(number); });
  if (odd == numbers.end()) return CheckInputRange(input, numbers, path);
  const int64_t place = odd - numbers.begin();
  const std::string element =
      absl::StrCat(path, "[", place / items.element_count, "][", place % items.element_count, "]");
  return Refuse(element, "expected a finite number");
}

bool IsOverloaded(const absl::Status& status) {
  return ReasonOf(status) == v1::ERROR_REASON_OVERLOADED;
}

}  // namespace

absl::Status BulkEvaluation::Start(const Target& target, WorkPool& pool,
                                   std::map<std::string, ItemsView> inputs, const Options& options,
                                   Callback callback) {
  const ProgramDescription& program = target.cipher.program();
  if (target.key_set_id.empty() && program.required_keys.size() > 0) {
    return absl::FailedPreconditionError("session: upload the keys before an evaluation");
  }
  if (options.in_flight < 1) {
    return Refuse("in_flight", absl::StrCat("expected at least 1, got ", options.in_flight));
  }
  if (options.timeout.has_value() && *options.timeout <= absl::ZeroDuration()) {
    return Refuse("timeout", absl::StrCat("expected a positive duration, got ",
                                          absl::FormatDuration(*options.timeout)));
  }
  std::map<std::string, int64_t> item_counts;
  for (const auto& [name, items] : inputs) item_counts[name] = items.item_count;
  CIPHERD_ASSIGN_OR_RETURN(const RequestSplit split, SplitIntoRequests(program, item_counts));
  for (const programs::ProgramInput& input : program.inputs) {
    CIPHERD_RETURN_IF_ERROR(CheckItems(input, inputs.at(input.name)));
  }
  std::shared_ptr<BulkEvaluation> evaluation(
      new BulkEvaluation(target, pool, std::move(inputs), options, split, std::move(callback)));
  evaluation->StartFirst();
  return absl::OkStatus();
}

BulkEvaluation::BulkEvaluation(const Target& target, WorkPool& pool,
                               std::map<std::string, ItemsView> inputs, const Options& options,
                               const RequestSplit& split, Callback callback)
    : target_(target),
      pool_(pool),
      options_(options),
      split_(split),
      deadline_(options.timeout.has_value() ? absl::Now() + *options.timeout
                                            : absl::InfiniteFuture()),
      inputs_(std::move(inputs)),
      callback_(std::move(callback)) {
  result_.requests.resize(split_.request_count());
  if (options_.on_output) return;
  for (const programs::ProgramOutput& output : program().outputs) {
    ItemsArray& items = result_.outputs[output.name];
    // Fewer than the inputs have only where there is one request.
    items.item_count = split_.request_count() == 1
                           ? std::min(split_.item_count, output.layout.item_count)
                           : split_.item_count;
    items.element_count = output.layout.element_count;
    items.numbers.resize(items.item_count * items.element_count);
  }
}

void BulkEvaluation::StartFirst() {
  cancel_.emplace(options_.cancellation, [this] { Cancel(); });
  std::vector<int64_t> requests;
  {
    // All at once: where one ends and finds no other under way, it ends the evaluation.
    absl::MutexLock lock(&mu_);
    for (int i = 0; i < options_.in_flight; ++i) {
      if (const std::optional<int64_t> request = TakeNext()) requests.push_back(*request);
    }
  }
  for (int64_t request : requests) Schedule(request);
  // Cancelled before it began.
  if (requests.empty()) pool_.Schedule([self = shared_from_this()] { self->Finish(); });
}

std::optional<int64_t> BulkEvaluation::TakeNext() {
  std::optional<int64_t> request;
  if (!status_.ok()) return request;
  if (!again_.empty()) {
    request = again_.front();
    again_.pop_front();
  } else if (next_request_ < split_.request_count()) {
    request = next_request_++;
  }
  if (request.has_value()) running_.try_emplace(*request);
  return request;
}

void BulkEvaluation::Schedule(int64_t request) {
  pool_.Schedule([self = shared_from_this(), request] {
    const absl::Status status = self->Send(request);
    if (!status.ok()) self->EndRequest(request, status);
  });
}

absl::Status BulkEvaluation::Send(int64_t request) {
  {
    absl::MutexLock lock(&mu_);
    CIPHERD_RETURN_IF_ERROR(status_);
  }
  CIPHERD_ASSIGN_OR_RETURN(value::ValueTree inputs, Encrypt(request));
  CIPHERD_ASSIGN_OR_RETURN(const CallOptions options, OptionsOfCall());
  const std::shared_ptr<BulkEvaluation> self = shared_from_this();
  OutputCallback on_output;
  if (options_.on_output) {
    on_output = [self, request](size_t index, value::ValueTree output) {
      self->OnOutput(request, index, std::move(output));
    };
  }
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<EvaluationCall> call,
                           target_.client.StartEvaluation(
                               {.program = target_.cipher.program_ptr(),
                                .key_set_id = target_.key_set_id,
                                .request_id = RequestId(request),
                                .inputs = std::move(inputs),
                                .on_output = std::move(on_output)},
                               options, [self, request](absl::StatusOr<EvaluationResult> result) {
                                 self->pool_.Schedule([self, request, result = std::move(result)] {
                                   self->Settle(request, result.ok()
                                                             ? self->Receive(request, *result)
                                                             : result.status());
                                 });
                               }));
  {
    absl::MutexLock lock(&mu_);
    const auto place = running_.find(request);
    // The result may have been here first.
    if (place == running_.end()) return absl::OkStatus();
    place->second.call = call;
    if (status_.ok()) return absl::OkStatus();
  }
  call->Cancel();
  return absl::OkStatus();
}

absl::StatusOr<value::ValueTree> BulkEvaluation::Encrypt(int64_t request) const {
  NamedVectors vectors;
  for (const programs::ProgramInput& input : program().inputs) {
    const ItemsView& items = inputs_.at(input.name);
    const bool whole = GoesWithEveryRequest(program(), input);
    const int64_t begin = whole ? 0 : split_.Begin(request);
    const int64_t end = whole ? items.item_count : split_.End(request);
    Vectors& rows = vectors[input.name];
    for (int64_t k = begin; k < end; ++k) {
      const double* const row = items.numbers + k * items.element_count;
      rows.emplace_back(row, row + items.element_count);
    }
  }
  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  return target_.cipher.EncryptInputs(vectors, random);
}

absl::StatusOr<CallOptions> BulkEvaluation::OptionsOfCall() const {
  if (deadline_ == absl::InfiniteFuture()) return CallOptions{.timeout = options_.timeout};
  const absl::Duration left = deadline_ - absl::Now();
  if (left > absl::ZeroDuration()) return CallOptions{.timeout = left};
  return absl::DeadlineExceededError(
      absl::StrCat("evaluation: not done within ", absl::FormatDuration(*options_.timeout)));
}

std::string BulkEvaluation::RequestId(int64_t request) const {
  if (options_.request_id.empty() || split_.request_count() == 1) return options_.request_id;
  return absl::StrCat(options_.request_id, ".", request);
}

absl::Status BulkEvaluation::Receive(int64_t request, const EvaluationResult& result) {
  result_.requests[request] = {.request_id = result.request_id,
                               .stage_times = result.stage_times,
                               .sent_bytes = result.sent_bytes,
                               .received_bytes = result.received_bytes};
  if (options_.on_output) return absl::OkStatus();
  for (size_t i = 0; i < program().outputs.size(); ++i) {
    CIPHERD_RETURN_IF_ERROR(Store(request, i, result.outputs[i]));
  }
  return absl::OkStatus();
}

void BulkEvaluation::OnOutput(int64_t request, size_t index, value::ValueTree output) {
  {
    absl::MutexLock lock(&mu_);
    UnderWay& under_way = running_.at(request);
    ++under_way.unsettled;
    under_way.has_told = true;
  }
  pool_.Schedule([self = shared_from_this(), request, index, output = std::move(output)] {
    self->Settle(request, self->Store(request, index, output));
  });
}

absl::Status BulkEvaluation::Store(int64_t request, size_t index, const value::ValueTree& output) {
  const int64_t begin = split_.Begin(request);
  CIPHERD_ASSIGN_OR_RETURN(
      const Vectors vectors,
      target_.cipher.DecryptOutput(index, output, split_.End(request) - begin, begin));
  const programs::ProgramOutput& described = program().outputs[index];
  const int64_t element_count = described.layout.element_count;
  OutputPart part{.output = described.name, .first_item = begin};
  double* row = nullptr;
  if (options_.on_output) {
    part.items = {.numbers = std::vector<double>(vectors.size() * element_count),
                  .item_count = static_cast<int64_t>(vectors.size()),
                  .element_count = element_count};
    row = part.items.numbers.data();
  } else {
    row = result_.outputs.at(described.name).numbers.data() + begin * element_count;
  }
  for (const std::vector<double>& vector : vectors) {
    row = std::copy(vector.begin(), vector.end(), row);
  }
  if (options_.on_output) options_.on_output(std::move(part));
  return absl::OkStatus();
}

void BulkEvaluation::Settle(int64_t request, const absl::Status& status) {
  absl::Status outcome;
  std::vector<std::shared_ptr<EvaluationCall>> to_cancel;
  bool is_last = false;
  {
    absl::MutexLock lock(&mu_);
    UnderWay& under_way = running_.at(request);
    under_way.status.Update(status);
    is_last = --under_way.unsettled == 0;
    if (!is_last && !status.ok()) to_cancel = Fail(status);
    outcome = under_way.status;
  }
  for (const std::shared_ptr<EvaluationCall>& call : to_cancel) call->Cancel();
  if (is_last) EndRequest(request, outcome);
}

void BulkEvaluation::EndRequest(int64_t request, const absl::Status& status) {
  std::vector<std::shared_ptr<EvaluationCall>> to_cancel;
  std::optional<int64_t> next;
  bool is_last = false;
  {
    absl::MutexLock lock(&mu_);
    const auto place = running_.find(request);
    const bool may_go_again = place == running_.end() || !place->second.has_told;
    running_.erase(request);
    if (status_.ok() && IsOverloaded(status) && may_go_again && !running_.empty()) {
      again_.push_back(request);
      return;
    }
    if (!status.ok()) to_cancel = Fail(status);
    next = TakeNext();
    is_last = running_.empty();
  }
  for (const std::shared_ptr<EvaluationCall>& call : to_cancel) call->Cancel();
  if (next.has_value()) Schedule(*next);
  if (is_last) Finish();
}

std::vector<std::shared_ptr<EvaluationCall>> BulkEvaluation::Fail(const absl::Status& status) {
  std::vector<std::shared_ptr<EvaluationCall>> calls;
  if (!status_.ok()) return calls;
  status_ = status;
  for (const auto& [request, under_way] : running_) {
    if (under_way.call != nullptr) calls.push_back(under_way.call);
  }
  return calls;
}

void BulkEvaluation::Cancel() {
  std::vector<std::shared_ptr<EvaluationCall>> calls;
  {
    absl::MutexLock lock(&mu_);
    calls = Fail(CancelledByCaller());
  }
  for (const std::shared_ptr<EvaluationCall>& call : calls) call->Cancel();
}

void BulkEvaluation::Finish() {
  cancel_.reset();
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    status = status_;
  }
  inputs_.clear();
  // What it holds, as this evaluation, is let go of when it has returned.
  const Callback callback = std::exchange(callback_, nullptr);
  if (status.ok()) {
    callback(std::move(result_));
  } else {
    callback(status);
  }
}

}  // namespace cipherd::client

#include "client/demo/demo_run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/demo/idx_file.h"
#include "client/session.h"
#include "client/terminal/progress_bar.h"
#include "core/base/status_macros.h"
#include "core/secret/random.h"

namespace cipherd::client {
namespace {

// Classifies batch after batch until none is left; run by several threads at once.
class Classifier {
 public:
  Classifier(const Session& session, const Vectors& images)
      : session_(session),
        images_(images),
        batch_size_(session.program().inputs[0].layout.item_count),
        logits_(images.size()),
        progress_("classifying images", static_cast<int64_t>(images.size()), ProgressUnit::kItems) {
  }

  void Work() {
    absl::Status status;
    while (status.ok()) {
      const int64_t begin = next_image_.fetch_add(batch_size_);
      if (begin >= static_cast<int64_t>(images_.size())) return;
      status = ClassifyBatch(begin);
    }
    // The other threads stop at their next batch.
    next_image_ = static_cast<int64_t>(images_.size());
    absl::MutexLock lock(&mu_);
    status_.Update(status);
  }

  // After all threads have ended.
  absl::StatusOr<Vectors> Finish(DemoReport& report) {
    absl::MutexLock lock(&mu_);
    CIPHERD_RETURN_IF_ERROR(status_);
    progress_.Finish();
    report.latencies = std::move(latencies_);
    report.sent_bytes = sent_bytes_;
    report.received_bytes = received_bytes_;
    return std::move(logits_);
  }

 private:
  absl::Status ClassifyBatch(int64_t begin) {
    const int64_t end =
        std::min<int64_t>(begin + batch_size_, static_cast<int64_t>(images_.size()));
    const ProgramDescription& program = session_.program();
    const Vectors batch(images_.begin() + begin, images_.begin() + end);
    CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
    CIPHERD_ASSIGN_OR_RETURN(
        value::ValueTree inputs,
        session_.cipher().EncryptInputs({{program.inputs[0].name, batch}}, random));

    const absl::Time start = absl::Now();
    CIPHERD_ASSIGN_OR_RETURN(const EvaluationResult result,
                             session_.EvaluateEncrypted(std::move(inputs)));
    const absl::Duration latency = absl::Now() - start;

    CIPHERD_ASSIGN_OR_RETURN(NamedVectors outputs,
                             session_.cipher().DecryptOutputs(result.outputs, end - begin));
    Vectors& batch_logits = outputs.begin()->second;
    std::move(batch_logits.begin(), batch_logits.end(), logits_.begin() + begin);
    absl::MutexLock lock(&mu_);
    latencies_.push_back(latency);
    sent_bytes_ += result.sent_bytes;
    received_bytes_ += result.received_bytes;
    done_count_ += end - begin;
    progress_.Update(done_count_);
    return absl::OkStatus();
  }

  const Session& session_;
  const Vectors& images_;
  const int64_t batch_size_;
  std::atomic<int64_t> next_image_{0};
  // Each image's entry is written by the one thread that has its batch.
  Vectors logits_;

  absl::Mutex mu_;
  ProgressBar progress_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::Duration> latencies_ ABSL_GUARDED_BY(mu_);
  uint64_t sent_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t received_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t done_count_ ABSL_GUARDED_BY(mu_) = 0;
};

absl::Status CheckProgram(const ProgramDescription& program, const PolynomialModel& model) {
  if (program.inputs.size() != 1 || program.outputs.size() != 1 ||
      program.inputs[0].layout.element_count != static_cast<int64_t>(model.pixel_count()) ||
      program.outputs[0].layout.element_count != static_cast<int64_t>(model.logit_count()) ||
      program.outputs[0].layout.item_count < program.inputs[0].layout.item_count) {
    return absl::FailedPreconditionError(absl::StrCat("program '", program.name, "' is not one of ",
                                                      model.pixel_count(), " pixels to ",
                                                      model.logit_count(), " logits"));
  }
  return absl::OkStatus();
}

absl::Status UploadKeys(Session& session, DemoReport& report) {
  const absl::Time start = absl::Now();
  ProgressBar progress("making and sending keys", static_cast<int64_t>(session.program().key_bytes),
                       ProgressUnit::kBytes);
  CIPHERD_RETURN_IF_ERROR(session.UploadKeys(
      [&](uint64_t sent_bytes, uint64_t) { progress.Update(static_cast<int64_t>(sent_bytes)); }));
  progress.Finish();
  report.key_count = session.program().required_keys.size();
  report.key_bytes = session.key_bytes_sent();
  report.key_time = absl::Now() - start;
  return absl::OkStatus();
}

void Compare(const Vectors& logits, const PolynomialModel& model, const DemoData& data,
             DemoReport& report) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const std::vector<double> expected = model.Logits(data.images[i]);
    for (size_t o = 0; o < expected.size(); ++o) {
      report.max_difference = std::max(report.max_difference, std::abs(logits[i][o] - expected[o]));
    }
    const size_t answer = ArgMax(logits[i]);
    report.agreement_count += answer == ArgMax(expected);
    report.correct_count += answer == data.labels[i];
    report.float64_correct_count += ArgMax(expected) == data.labels[i];
  }
}

}  // namespace

absl::StatusOr<DemoData> ReadDemoData(const std::string& directory, int64_t image_count) {
  CIPHERD_ASSIGN_OR_RETURN(
      const IdxArray images,
      ReadIdxFile(absl::StrCat(directory, "/t10k-images-idx3-ubyte.gz"), image_count));
  CIPHERD_ASSIGN_OR_RETURN(
      IdxArray labels,
      ReadIdxFile(absl::StrCat(directory, "/t10k-labels-idx1-ubyte.gz"), image_count));
  if (images.item_count() < image_count || labels.item_count() < image_count) {
    return absl::InvalidArgumentError(absl::StrCat("'", directory, "': expected ", image_count,
                                                   " images, got ", images.item_count()));
  }
  DemoData data;
  data.labels = std::move(labels.elements);
  for (int64_t i = 0; i < image_count; ++i) {
    const uint8_t* pixels = images.elements.data() + i * images.item_bytes();
    std::vector<double>& image = data.images.emplace_back(images.item_bytes());
    std::transform(pixels, pixels + image.size(), image.begin(),
                   [](uint8_t pixel) { return pixel / 255.0; });
  }
  return data;
}

absl::StatusOr<DemoReport> RunDemo(const Client& client, const PolynomialModel& model,
                                   const DemoData& data, const DemoOptions& options) {
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           Session::Create(client, options.program));
  CIPHERD_RETURN_IF_ERROR(CheckProgram(session->program(), model));
  DemoReport report;
  report.device =
      absl::StrCat(client.server_info().device(), " (", client.server_info().device_name(), ")");
  report.image_count = static_cast<int64_t>(data.images.size());
  report.images_per_request = session->program().inputs[0].layout.item_count;
  report.requests_in_flight = options.requests_in_flight;
  CIPHERD_RETURN_IF_ERROR(UploadKeys(*session, report));

  const absl::Time start = absl::Now();
  Classifier classifier(*session, data.images);
  std::vector<std::thread> threads;
  for (int i = 0; i < options.requests_in_flight; ++i)
    threads.emplace_back([&] { classifier.Work(); });
  for (std::thread& thread : threads) thread.join();
  CIPHERD_ASSIGN_OR_RETURN(const Vectors logits, classifier.Finish(report));
  report.wall_time = absl::Now() - start;

  Compare(logits, model, data, report);
  CIPHERD_RETURN_IF_ERROR(session->DropKeys());
  return report;
}

}  // namespace cipherd::client

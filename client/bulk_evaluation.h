// Evaluation of any number of items: split into requests, several under way at once, order kept.
//
//   RETURN_IF_ERROR(BulkEvaluation::Start({*client, session->cipher(), session->key_set_id()},
//                                         WorkPool::OfProcess(), {{"images", images}}, {},
//                                         [](absl::StatusOr<BulkResult> result) { ... }));
//
// The pool encrypts and decrypts; no thread waits while the daemon has a request. Memory holds the
// ciphertexts of the requests under way only. The first failure ends the others; but a request that
// is refused as OVERLOADED beside others of the same evaluation is sent again once one of them has
// ended, and fewer are under way from then on.
//
// Client and cipher outlive the evaluation, which lives until its callback has returned. Errors as
// in session.h.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/evaluation_call.h"
#include "client/program_cipher.h"
#include "client/request_split.h"
#include "client/work_pool.h"

namespace cipherd::client {

// Items of an input: row-major numbers that are someone else's.
struct ItemsView {
  const double* numbers = nullptr;
  int64_t item_count = 0;
  int64_t element_count = 0;
  // Keeps `numbers` alive, unchanged, until the callback has been called; let go of by any thread.
  std::shared_ptr<const void> owner;
};

// Items of an output.
struct ItemsArray {
  std::vector<double> numbers;
  int64_t item_count = 0;
  int64_t element_count = 0;
};

// Items of one output that have come: those of one request.
struct OutputPart {
  std::string output;
  // Of the whole evaluation's items, the first one of these.
  int64_t first_item = 0;
  ItemsArray items;
};

// What EvaluationResult says beside the outputs.
struct RequestReport {
  std::string request_id;
  v1::StageTimes stage_times;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

struct BulkResult {
  std::map<std::string, ItemsArray> outputs;
  // In the order of the items.
  std::vector<RequestReport> requests;
};

class BulkEvaluation : public std::enable_shared_from_this<BulkEvaluation> {
 public:
  struct Target {
    const Client& client;
    const ProgramCipher& cipher;
    // May be empty for a program that reads no keys (else FailedPrecondition).
    std::string key_set_id;
  };
  struct Options {
    // Of one request; of several: this, a dot and the request's number. Empty: made at random.
    std::string request_id;
    // Of the whole evaluation. Absent: that of CallOptions, for each request.
    std::optional<absl::Duration> timeout;
    // Requests at a time, at least 1.
    int in_flight = 4;
    // Ends the evaluation early, with Cancelled: the callback comes all the same. May be null.
    std::shared_ptr<Cancellation> cancellation = nullptr;
    // Asks for each output of each request as soon as the daemon has computed it; the result then
    // has the reports only. Called on threads of the pool, of several parts at once, and before the
    // callback. Nothing waits for who takes the parts further. May be null.
    std::function<void(OutputPart part)> on_output = nullptr;
  };
  // Called once, on a thread of the pool.
  using Callback = std::function<void(absl::StatusOr<BulkResult> result)>;

  // After an error no callback comes: InvalidArgument naming the input that does not fit the
  // program, or a number that is not finite.
  static absl::Status Start(const Target& target, WorkPool& pool,
                            std::map<std::string, ItemsView> inputs, const Options& options,
                            Callback callback);
  BulkEvaluation(const BulkEvaluation&) = delete;
  BulkEvaluation& operator=(const BulkEvaluation&) = delete;

 private:
  struct UnderWay {
    // Null until it has been started.
    std::shared_ptr<EvaluationCall> call;
    // The call, and early outputs that are being decrypted.
    int unsettled = 1;
    // The first error among them.
    absl::Status status;
    // An output has been told of: it cannot be sent again.
    bool has_told = false;
  };

  BulkEvaluation(const Target& target, WorkPool& pool, std::map<std::string, ItemsView> inputs,
                 const Options& options, const RequestSplit& split, Callback callback);

  const ProgramDescription& program() const { return target_.cipher.program(); }
  void StartFirst() ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);
  // Puts the next request among those under way; nothing where none is left to send.
  std::optional<int64_t> TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Schedule(int64_t request);
  absl::Status Send(int64_t request) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<value::ValueTree> Encrypt(int64_t request) const;
  absl::StatusOr<CallOptions> OptionsOfCall() const;
  std::string RequestId(int64_t request) const;
  // The call has come to its result: keeps its report, and its outputs, but for early ones.
  absl::Status Receive(int64_t request, const EvaluationResult& result);
  // An early output has come; on a thread of gRPC's.
  void OnOutput(int64_t request, size_t index, value::ValueTree output) ABSL_LOCKS_EXCLUDED(mu_);
  // Decrypts into the result, or for on_output.
  absl::Status Store(int64_t request, size_t index, const value::ValueTree& output);
  // The call of a request, or the work on one of its outputs, has ended: with the last of these
  // the request has.
  void Settle(int64_t request, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes the request from those under way, and schedules another or ends the evaluation.
  void EndRequest(int64_t request, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes `status` that of the evaluation unless it has failed already. Returns the calls to
  // cancel.
  std::vector<std::shared_ptr<EvaluationCall>> Fail(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Finish() ABSL_LOCKS_EXCLUDED(mu_);

  const Target target_;
  WorkPool& pool_;
  const Options options_;
  const RequestSplit split_;
  const absl::Time deadline_;
  // Until the callback.
  std::map<std::string, ItemsView> inputs_;
  // Each request writes its own rows and its own report.
  BulkResult result_;
  Callback callback_;
  std::optional<Cancellation::Scope> cancel_;

  absl::Mutex mu_;
  // OK until a request has failed or the caller has cancelled.
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  int64_t next_request_ ABSL_GUARDED_BY(mu_) = 0;
  // Refused as OVERLOADED.
  std::deque<int64_t> again_ ABSL_GUARDED_BY(mu_);
  // By request.
  std::map<int64_t, UnderWay> running_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::client

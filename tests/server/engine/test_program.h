// A program of a few lines for tests of the engine: no ciphertexts, only 64-bit words.
//
//   outputs[k][i] = inputs[i] + relinearization key[i] + rotation(1) key[i]
//                   + 10^12 · (version − 1) + 10^15 · k
//
// modulo 2^64, one output after the other.
// Keys are tensors of kWordCount words, read through the key table as real programs do, so that a
// result tells which input and which tenant's keys it was made of. A gate can hold the compute
// stream in the middle of a replay. Runs on devices of the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/engine.h"
#include "server/engine/program.h"

namespace cipherd::engine::testing {

inline constexpr int64_t kWordCount = 64;
inline constexpr char kContextId[] =
    "00000000000000000000000000000000000000000000000000000000000000aa";

// Open unless closed. Whoever passes waits while it is closed.
class Gate {
 public:
  void Close() {
    absl::MutexLock lock(&mu_);
    is_open_ = false;
  }
  void Open() {
    absl::MutexLock lock(&mu_);
    is_open_ = true;
  }
  // Lets `count` pass although it is closed.
  void Admit(int count) {
    absl::MutexLock lock(&mu_);
    admitted_ += count;
  }
  void Pass() {
    const auto may_pass = [&]()
                              ABSL_SHARED_LOCKS_REQUIRED(mu_) { return is_open_ || admitted_ > 0; };
    absl::MutexLock lock(&mu_);
    ++arrivals_;
    mu_.Await(absl::Condition(&may_pass));
    if (!is_open_) --admitted_;
  }
  // Blocks until `count` have come to the gate since it was made.
  void AwaitArrivals(int count) {
    const auto enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return arrivals_ >= count; };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&enough));
  }
  int arrivals() {
    absl::MutexLock lock(&mu_);
    return arrivals_;
  }

 private:
  absl::Mutex mu_;
  bool is_open_ ABSL_GUARDED_BY(mu_) = true;
  int arrivals_ ABSL_GUARDED_BY(mu_) = 0;
  int admitted_ ABSL_GUARDED_BY(mu_) = 0;
};

class TestProgram final : public Program {
 public:
  // With `gate`, every run of the program passes it, once before each output.
  explicit TestProgram(std::string name = "sum", std::shared_ptr<Gate> gate = nullptr,
                       int64_t version = 1, int output_count = 1);

  const ProgramInfo& info() const override { return info_; }
  absl::StatusOr<EvaluationTrees> MakeTrees(const TensorFactory& allocate) const override;
  absl::StatusOr<ProgramBinding> Bind(runtime::Device& device, runtime::Stream& stream,
                                      const ServingSettings& settings) const override;

  // What Bind returns from now on, where it is not OK.
  void FailBindWith(absl::Status status) { bind_status_ = std::move(status); }
  // Makes every run of the function give another result.
  void MakeUnsteady() { is_unsteady_ = true; }

 private:
  const int output_count_;
  ProgramInfo info_;
  std::shared_ptr<Gate> gate_;
  absl::Status bind_status_;
  bool is_unsteady_ = false;
};

// Key i of a tenant: kWordCount words that say whose they are.
std::vector<uint64_t> KeyWords(uint64_t tenant_seed, int key_index);
// Uploads both keys for `tenant`, named by `id` (64 hexadecimal digits).
void CommitTestKeys(KeyStore& store, std::string_view tenant, const std::string& id,
                    uint64_t tenant_seed, KeyStore::CommitContinuation continuation);
// The same, and returns the set once it is stored.
absl::StatusOr<KeySetRef> PutTestKeys(KeyStore& store, std::string_view tenant,
                                      const std::string& id, uint64_t tenant_seed);
// Waits for the acknowledgement.
absl::Status DropTestKeys(KeyStore& store, std::string_view tenant, const std::string& id);
// The set in host memory, once it is there.
absl::StatusOr<KeySetRef> AwaitKeys(KeyStore& store, std::string_view tenant,
                                    const std::string& id);
// The id that goes with PutTestKeys' bytes: what a store with files takes.
std::string TrueKeySetId(uint64_t tenant_seed);
// A valid key set id.
std::string TestKeySetId(int number);

// What the program makes of `input` with the keys of `tenant_seed`.
uint64_t ExpectedWord(uint64_t input, uint64_t tenant_seed, int64_t index, int64_t version = 1);
void FillInputs(const value::ValueTree& inputs, uint64_t value);
// Whether every word of output `output` is what it should be; of each.
bool OutputMatches(const value::ValueTree& outputs, size_t output, uint64_t value,
                   uint64_t tenant_seed, int64_t version = 1);
bool OutputsMatch(const value::ValueTree& outputs, uint64_t value, uint64_t tenant_seed,
                  int64_t version = 1);

}  // namespace cipherd::engine::testing

// Our side of tests/bench/peers: the same cases on the CPU device, with Google Benchmark.
//
//   peer_cases_bench --cases=tests/bench/peers/cases.json [--avx2] [Google Benchmark's flags]
//
// --avx2 has it do without AVX-512, as on a machine that has none (Highway's dispatch).
// Times are of the process's processor time, as the peers' are (time of all threads: bind the
// process to one processor to compare, and use real time for more). Each operation's result is
// decrypted and compared once before it is timed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "core/base/allocator_policy.h"
#include "core/base/status_macros.h"
#include "core/ckks/context.h"
#include "core/ckks/device_context.h"
#include "core/ckks/encoder.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/key_set.h"
#include "core/runtime/device.h"
#include "core/secret/decryptor.h"
#include "core/secret/encryptor.h"
#include "core/secret/key_generator.h"
#include "core/secret/random.h"
#include "hwy/targets.h"
#include "nlohmann/json.hpp"

namespace cipherd::bench {
namespace {

using ckks::Ciphertext;
using Slots = std::vector<double>;

constexpr double kTolerance = 1e-3;

absl::StatusOr<ckks::ContextParameters> ParametersOf(const nlohmann::json& peer_case) {
  ckks::ContextRequest request;
  request.log_n = peer_case.at("log_n");
  request.base_prime_bits = peer_case.at("base_bits");
  request.depth_prime_bits = peer_case.at("depth_bits");
  request.max_depth = peer_case.at("depth");
  request.p_prime_bits = peer_case.at("p_bits");
  request.p_prime_count = peer_case.at("p_count");
  request.digit_count = peer_case.at("digits");
  return ckks::MakeContextParameters(request, ckks::SecurityPolicy::k128BitClassical);
}

// Keys and an encrypted message of one case.
class Case {
 public:
  static absl::StatusOr<std::unique_ptr<Case>> Make(const nlohmann::json& description) {
    auto made = std::make_unique<Case>();
    CIPHERD_RETURN_IF_ERROR(made->Init(description));
    return made;
  }

  absl::StatusOr<Ciphertext> Encrypt() { return encryptor_->Encrypt(message_, random_); }
  absl::StatusOr<Ciphertext> MultiplyRelinearize() {
    CIPHERD_ASSIGN_OR_RETURN(const Ciphertext product,
                             evaluator_->Multiply(fresh_, fresh_, *stream_));
    return evaluator_->Relinearize(product, table_, *stream_);
  }
  absl::StatusOr<Ciphertext> Rescale() { return evaluator_->Rescale(product_, *stream_); }
  absl::StatusOr<Ciphertext> Rotate() { return evaluator_->Rotate(fresh_, 1, table_, *stream_); }

  absl::Status Synchronize() { return stream_->Synchronize(); }

  // Largest difference from what `expected` makes of slot j.
  template <class Expected>
  absl::StatusOr<double> Distance(const Ciphertext& ciphertext, const Expected& expected) {
    Ciphertext host = ciphertext;
    CIPHERD_ASSIGN_OR_RETURN(
        host.data, value::Tensor::AllocateHost(value::DType::kUint64, ciphertext.data.shape()));
    CIPHERD_RETURN_IF_ERROR(stream_->CopyAsync(host.data.data(), ciphertext.data.data(),
                                               static_cast<size_t>(host.data.bytes())));
    CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
    CIPHERD_ASSIGN_OR_RETURN(const ckks::Plaintext plain,
                             secret::Decryptor(*secret_key_).Decrypt(host));
    CIPHERD_ASSIGN_OR_RETURN(const auto decoded, encoder_->Decode(plain));
    double distance = 0;
    for (size_t j = 0; j < slots_.size(); ++j) {
      distance = std::max(distance, std::abs(decoded[j] - expected(slots_, j)));
    }
    return distance;
  }

 private:
  absl::Status Init(const nlohmann::json& description) {
    CIPHERD_ASSIGN_OR_RETURN(device_, runtime::OpenDevice("cpu", {}));
    CIPHERD_ASSIGN_OR_RETURN(stream_, device_->CreateStream("bench"));
    CIPHERD_ASSIGN_OR_RETURN(ckks::ContextParameters parameters, ParametersOf(description));
    CIPHERD_ASSIGN_OR_RETURN(
        context_,
        ckks::Context::Create(std::move(parameters), ckks::SecurityPolicy::k128BitClassical));
    CIPHERD_ASSIGN_OR_RETURN(device_context_,
                             ckks::DeviceContext::Create(context_, *device_, *stream_));
    encoder_ = std::make_unique<ckks::Encoder>(context_);
    evaluator_ = std::make_unique<ckks::Evaluator>(*device_context_);
    secret_key_ =
        std::make_unique<secret::SecretKey>(secret::SecretKey::Generate(context_, random_));
    const secret::KeyGenerator generator(*secret_key_);
    CIPHERD_ASSIGN_OR_RETURN(secret::PublicKey public_key, generator.GeneratePublicKey(random_));
    encryptor_.emplace(context_, std::move(public_key));
    const ckks::KeyLayout layout({ckks::KeyId::Relinearization(),
                                  ckks::KeyId::Rotation(1, context_->parameters().slot_count())});
    CIPHERD_ASSIGN_OR_RETURN(const ckks::KeySet host_keys,
                             generator.GenerateKeySet(layout, random_, nullptr));
    for (const auto& [id, key] : host_keys) {
      CIPHERD_ASSIGN_OR_RETURN(ckks::EvaluationKey resident, ckks::UploadKey(key, *stream_));
      keys_.emplace(id, std::move(resident));
    }
    CIPHERD_ASSIGN_OR_RETURN(table_, ckks::MakeKeyTable(layout, keys_, *stream_));
    slots_.resize(context_->parameters().slot_count());
    for (size_t j = 0; j < slots_.size(); ++j) slots_[j] = 0.5 + static_cast<double>(j % 7) / 16;
    CIPHERD_ASSIGN_OR_RETURN(message_,
                             encoder_->Encode(slots_, 0, context_->parameters().default_scale));
    CIPHERD_ASSIGN_OR_RETURN(fresh_, Encrypt());
    CIPHERD_ASSIGN_OR_RETURN(
        value::Tensor resident,
        value::Tensor::AllocateOn(*stream_, value::DType::kUint64, fresh_.data.shape()));
    CIPHERD_RETURN_IF_ERROR(stream_->CopyAsync(resident.data(), fresh_.data.data(),
                                               static_cast<size_t>(resident.bytes())));
    CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
    fresh_.data = std::move(resident);
    CIPHERD_ASSIGN_OR_RETURN(product_, MultiplyRelinearize());
    return Synchronize();
  }

  // In the order of construction.
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Stream> stream_;
  std::shared_ptr<const ckks::Context> context_;
  std::unique_ptr<ckks::DeviceContext> device_context_;
  std::unique_ptr<ckks::Encoder> encoder_;
  std::unique_ptr<ckks::Evaluator> evaluator_;
  secret::Random random_ = secret::Random::FromSeedForTesting(1);
  std::unique_ptr<secret::SecretKey> secret_key_;
  std::optional<secret::PublicKeyEncryptor> encryptor_;
  ckks::KeySet keys_;
  ckks::KeyTable table_;
  Slots slots_;
  ckks::Plaintext message_;
  Ciphertext fresh_;
  Ciphertext product_;
};

double Slot(const Slots& slots, size_t j) { return slots[j]; }
double NextSlot(const Slots& slots, size_t j) { return slots[(j + 1) % slots.size()]; }
double SquaredSlot(const Slots& slots, size_t j) { return slots[j] * slots[j]; }

void Run(benchmark::State& state, const std::string& description,
         absl::StatusOr<Ciphertext> (Case::*operation)(),
         double (*expected)(const Slots& slots, size_t j)) {
  const auto made = Case::Make(nlohmann::json::parse(description));
  if (!made.ok()) {
    state.SkipWithError(std::string(made.status().ToString()).c_str());
    return;
  }
  Case& the_case = **made;
  const auto result = (the_case.*operation)();
  const auto distance =
      result.ok() ? the_case.Distance(*result, expected) : absl::StatusOr<double>(result.status());
  if (!distance.ok() || *distance > kTolerance) {
    state.SkipWithError(distance.ok() ? "decrypts to something else"
                                      : std::string(distance.status().ToString()).c_str());
    return;
  }
  for (auto _ : state) {
    const auto out = (the_case.*operation)();
    const absl::Status status = out.ok() ? the_case.Synchronize() : out.status();
    if (!status.ok()) {
      state.SkipWithError(std::string(status.ToString()).c_str());
      return;
    }
  }
  state.counters["error"] = *distance;
}

int Main(int argc, char** argv) {
  base::KeepLargeBlocks();
  std::string cases_path;
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--cases=")) {
      cases_path = argument.substr(8);
    } else if (argument == "--avx2") {
      // Better targets have lower bits.
      hwy::DisableTargets(HWY_AVX2 - 1);
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  benchmark::Initialize(&argc, argv);
  std::ifstream file(cases_path);
  const nlohmann::json cases = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (benchmark::ReportUnrecognizedArguments(argc, argv) || !cases.is_array()) {
    std::fprintf(stderr,
                 "usage: %s --cases=FILE [--avx2] [--benchmark_…]; FILE is an array of cases\n",
                 argv[0]);
    return 2;
  }
  struct Operation {
    const char* name;
    absl::StatusOr<Ciphertext> (Case::*run)();
    double (*expected)(const Slots& slots, size_t j);
  };
  constexpr Operation kOperations[] = {
      {"encrypt", &Case::Encrypt, &Slot},
      {"multiply_relinearize", &Case::MultiplyRelinearize, &SquaredSlot},
      {"rescale", &Case::Rescale, &SquaredSlot},
      {"rotate", &Case::Rotate, &NextSlot}};
  for (const nlohmann::json& peer_case : cases) {
    for (const Operation& operation : kOperations) {
      const std::string name = peer_case.at("name").get<std::string>() + " " + operation.name;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [text = peer_case.dump(), operation](benchmark::State& state) {
                                     Run(state, text, operation.run, operation.expected);
                                   })
          ->Unit(benchmark::kMillisecond)
          ->MeasureProcessCPUTime()
          ->UseRealTime();
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace cipherd::bench

int main(int argc, char** argv) { return cipherd::bench::Main(argc, argv); }

// Times of the kernels that a key switch is made of.
//
//   kernels_bench [--device=cpu|cuda:N] [Google Benchmark's flags]
//
// Each line names its parameters: log2 N, limbs, bits of each prime, digits. Times come from events
// of the device around one launch, median and spread of seven repetitions; every benchmark checks
// its result in the same run and fails where that is wrong.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "core/base/status_macros.h"
#include "core/kernels/kernel_table.h"
#include "core/math/mulhi.h"
#include "core/ring/galois.h"
#include "core/ring/primes.h"
#include "core/ring/rns_basis.h"
#include "core/runtime/device.h"
#include "tests/testing/devices.h"

namespace cipherd::kernels {
namespace {

std::string device_spec = "cpu";

// A device with a ring of `limb_count` primes, and events to time one launch.
class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Open(int log_n, int limb_count, int bits) {
    auto bench = std::make_unique<Bench>();
    CIPHERD_ASSIGN_OR_RETURN(bench->device_, runtime::OpenDevice(device_spec, {}));
    CIPHERD_ASSIGN_OR_RETURN(bench->stream_, bench->device_->CreateStream("bench"));
    CIPHERD_ASSIGN_OR_RETURN(bench->begin_, bench->device_->CreateEvent());
    CIPHERD_ASSIGN_OR_RETURN(bench->end_, bench->device_->CreateEvent());
    CIPHERD_ASSIGN_OR_RETURN(const std::vector<uint64_t> primes,
                             ring::GeneratePrimes(log_n, std::vector<int>(limb_count, bits)));
    CIPHERD_ASSIGN_OR_RETURN(ring::RnsBasis basis, ring::RnsBasis::Create(log_n, primes));
    bench->basis_ = std::make_unique<ring::RnsBasis>(std::move(basis));
    const ring::RelocatableImage& image = bench->basis_->image();
    CIPHERD_ASSIGN_OR_RETURN(bench->tables_,
                             bench->device_->Allocate(image.bytes(), *bench->stream_));
    std::vector<uint8_t> staging(image.bytes());
    image.WriteAt(bench->tables_->data(), staging.data());
    CIPHERD_RETURN_IF_ERROR(
        bench->stream_->CopyAsync(bench->tables_->data(), staging.data(), staging.size()));
    CIPHERD_RETURN_IF_ERROR(bench->stream_->Synchronize());
    bench->limbs_.count = limb_count;
    for (int l = 0; l < limb_count; ++l) bench->limbs_.prime[l] = static_cast<uint16_t>(l);
    return bench;
  }

  const KernelTable& kernels() const {
    return KernelsFor(*device_, FastestArithmetic(*device_, ring()));
  }
  ring::RingTables ring() const { return basis_->TablesAt(tables_->data()); }
  const ring::RnsBasis& basis() const { return *basis_; }
  const LimbPrimes& limbs() const { return limbs_; }
  runtime::Device& device() { return *device_; }
  runtime::Stream& stream() { return *stream_; }
  int64_t poly_words() const { return limbs_.count * basis_->n(); }

  // Canonical residues of `outer_count` polynomials.
  std::vector<uint64_t> Random(int64_t outer_count) {
    std::vector<uint64_t> words(outer_count * poly_words());
    for (size_t w = 0; w < words.size(); ++w) {
      words[w] = random_() % basis_->prime(static_cast<int>(w / basis_->n() % limbs_.count));
    }
    return words;
  }

  // Seconds on the device of what `launch` enqueues.
  template <class Launch>
  absl::StatusOr<double> Seconds(const Launch& launch) {
    CIPHERD_RETURN_IF_ERROR(stream_->Record(*begin_));
    CIPHERD_RETURN_IF_ERROR(launch());
    CIPHERD_RETURN_IF_ERROR(stream_->Record(*end_));
    CIPHERD_RETURN_IF_ERROR(end_->Synchronize());
    return end_->SecondsSince(*begin_);
  }

 private:
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Stream> stream_;
  std::shared_ptr<runtime::Event> begin_;
  std::shared_ptr<runtime::Event> end_;
  std::unique_ptr<ring::RnsBasis> basis_;
  runtime::StoragePtr tables_;
  LimbPrimes limbs_;
  std::mt19937_64 random_{1};
};

// Times `launch` until the benchmark has enough.
template <class Launch>
absl::Status TimeLaunches(benchmark::State& state, Bench& bench, const Launch& launch) {
  for (auto _ : state) {
    CIPHERD_ASSIGN_OR_RETURN(const double seconds, bench.Seconds(launch));
    state.SetIterationTime(seconds);
  }
  return absl::OkStatus();
}

absl::Status Ntt(benchmark::State& state, bool is_forward) {
  CIPHERD_ASSIGN_OR_RETURN(
      const std::unique_ptr<Bench> bench,
      Bench::Open(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                  static_cast<int>(state.range(2))));
  const KernelTable& kernels = bench->kernels();
  const std::vector<uint64_t> words = bench->Random(1);
  CIPHERD_ASSIGN_OR_RETURN(const auto in, testing::Upload(words, bench->device(), bench->stream()));
  CIPHERD_ASSIGN_OR_RETURN(const auto out,
                           testing::Upload(words, bench->device(), bench->stream()));
  const PolyView in_view = {static_cast<uint64_t*>(in->data()), 1, 0};
  const PolyView out_view = {static_cast<uint64_t*>(out->data()), 1, 0};
  const auto run = [&](bool forward, PolyView from, PolyView to) {
    return (forward ? kernels.forward_ntt : kernels.inverse_ntt)(bench->ring(), bench->limbs(),
                                                                 from, to, bench->stream());
  };
  CIPHERD_RETURN_IF_ERROR(
      TimeLaunches(state, *bench, [&] { return run(is_forward, in_view, out_view); }));
  CIPHERD_RETURN_IF_ERROR(run(!is_forward, out_view, out_view));
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<uint64_t> back,
                           testing::Download<uint64_t>(out->data(), words.size(), bench->stream()));
  if (back != words) return absl::InternalError("the inverse does not give back the input");
  return absl::OkStatus();
}

absl::Status InnerProduct(benchmark::State& state) {
  CIPHERD_ASSIGN_OR_RETURN(
      const std::unique_ptr<Bench> bench,
      Bench::Open(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                  static_cast<int>(state.range(2))));
  const auto digit_count = static_cast<int>(state.range(3));
  const uint32_t element =
      state.range(4) == 0 ? 1 : ring::RotationElement(state.range(4), 5, bench->basis().log_n());
  const int64_t poly = bench->poly_words();
  const std::vector<uint64_t> digit_words = bench->Random(digit_count);
  const std::vector<uint64_t> key_words = bench->Random(2 * digit_count);
  CIPHERD_ASSIGN_OR_RETURN(const auto digits,
                           testing::Upload(digit_words, bench->device(), bench->stream()));
  CIPHERD_ASSIGN_OR_RETURN(const auto key_block,
                           testing::Upload(key_words, bench->device(), bench->stream()));
  CIPHERD_ASSIGN_OR_RETURN(const auto slot, testing::Upload(std::vector<void*>{key_block->data()},
                                                            bench->device(), bench->stream()));
  CIPHERD_ASSIGN_OR_RETURN(const auto out,
                           bench->device().Allocate(2 * poly * sizeof(uint64_t), bench->stream()));
  KeySlot key;
  key.slot = static_cast<const uint64_t* const*>(slot->data());
  key.key_limb_count = bench->limbs().count;
  for (int d = 0; d < digit_count; ++d) key.key_digits[d] = static_cast<uint16_t>(d);
  CIPHERD_RETURN_IF_ERROR(TimeLaunches(state, *bench, [&] {
    return bench->kernels().key_inner_product(
        bench->ring(), bench->limbs(), digit_count, element,
        ConstPolyView(static_cast<uint64_t*>(digits->data()), digit_count, poly), key,
        PolyView{static_cast<uint64_t*>(out->data()), 2, poly}, bench->stream());
  }));

  CIPHERD_ASSIGN_OR_RETURN(const std::vector<uint64_t> result,
                           testing::Download<uint64_t>(out->data(), 2 * poly, bench->stream()));
  const int64_t n = bench->basis().n();
  for (int64_t w = 0; w < 2 * poly; w += 97) {
    const int64_t component = w / poly;
    const int64_t limb = w / n % bench->limbs().count;
    const uint64_t q = bench->basis().prime(static_cast<int>(limb));
    const auto entry = static_cast<uint32_t>(w % n);
    const uint32_t source = ring::AutomorphismNttSource(entry, element, bench->basis().log_n());
    uint64_t expected = 0;
    for (int64_t d = 0; d < digit_count; ++d) {
      const math::uint128_t product =
          static_cast<math::uint128_t>(digit_words[d * poly + limb * n + source]) *
          key_words[(2 * d + component) * poly + limb * n + entry];
      expected = static_cast<uint64_t>((product + expected) % q);
    }
    if (result[w] != expected) return absl::InternalError("an entry is wrong");
  }
  return absl::OkStatus();
}

void Report(benchmark::State& state, const absl::Status& status) {
  if (!status.ok()) state.SkipWithError(std::string(status.ToString()).c_str());
}

void BM_ForwardNtt(benchmark::State& state) { Report(state, Ntt(state, /*is_forward=*/true)); }
void BM_InverseNtt(benchmark::State& state) { Report(state, Ntt(state, /*is_forward=*/false)); }
void BM_KeyInnerProduct(benchmark::State& state) { Report(state, InnerProduct(state)); }

void NttParameters(benchmark::internal::Benchmark* b) {
  b->ArgNames({"log_n", "limbs", "bits"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  b->Repetitions(7)->ReportAggregatesOnly(true)->MinTime(0.05);
  for (const auto& arguments : std::vector<std::vector<int64_t>>{
           {13, 1, 50}, {14, 1, 50}, {14, 1, 61}, {14, 9, 50}, {16, 1, 50}, {16, 24, 45}}) {
    b->Args(arguments);
  }
}
BENCHMARK(BM_ForwardNtt)->Apply(NttParameters);
BENCHMARK(BM_InverseNtt)->Apply(NttParameters);

BENCHMARK(BM_KeyInnerProduct)
    ->ArgNames({"log_n", "limbs", "bits", "digits", "rotation"})
    ->Args({14, 9, 50, 8, 0})
    ->Args({14, 9, 50, 8, 1})
    ->Args({14, 11, 47, 3, 0})
    ->Args({16, 31, 49, 3, 0})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Repetitions(7)
    ->ReportAggregatesOnly(true)
    ->MinTime(0.05);

}  // namespace
}  // namespace cipherd::kernels

int main(int argc, char** argv) {
  constexpr std::string_view kDeviceFlag = "--device=";
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with(kDeviceFlag)) {
      cipherd::kernels::device_spec = argv[i] + kDeviceFlag.size();
      std::rotate(argv + i, argv + i + 1, argv + argc);
      --argc;
      break;
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  auto device = cipherd::runtime::OpenDevice(cipherd::kernels::device_spec, {});
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", std::string(device.status().ToString()).c_str());
    return 1;
  }
  benchmark::AddCustomContext("device", (*device)->properties().name);
  device->reset();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}

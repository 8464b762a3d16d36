// A device, a stream and a ring on it, for tests of kernels.
//
//   TEST_P(EntryTest, NegatesEveryLimb) {
//     for (const Shape& shape : Shapes()) {
//       SCOPED_TRACE(shape);
//       ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
//       const Polys a = Filled(limbs_, shape.batch, shape.gap_words, fill);
//       Polys out(...);
//       ASSERT_OK(Run({&a}, out, [&](auto in, PolyView out) { return kernels().negate(...in[0],
//       out...); }));
//     }
//   }
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/kernels/kernel_table.h"
#include "core/ring/primes.h"
#include "core/ring/rns_basis.h"
#include "core/runtime/device.h"
#include "gtest/gtest.h"
#include "tests/kernels/polys.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {

// What one run of an operation works on.
struct Shape {
  int log_n;
  std::vector<int> bits;  // of the ring's primes, one limb each
  int64_t batch = 1;
  int64_t gap_words = 0;  // between polynomials
};

inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << "log_n " << shape.log_n << ", bits " << absl::StrJoin(shape.bits, " ") << ", batch "
             << shape.batch << ", gap " << shape.gap_words;
}

// One, three and nine limbs; primes of 30 to 61 bits; contiguous and strided.
inline std::vector<Shape> Shapes() {
  return {
      {.log_n = 4, .bits = {30}},
      {.log_n = 4, .bits = {61, 50, 60}, .batch = 5, .gap_words = 7},
      {.log_n = 5, .bits = {61}, .batch = 2},
      {.log_n = 10, .bits = {50, 40, 40, 61, 61, 60, 30, 30, 61}, .batch = 2, .gap_words = 16},
      {.log_n = 13, .bits = {50, 60, 61}},
      {.log_n = 14, .bits = {48, 49, 30}, .batch = 2, .gap_words = 4},
  };
}

// The launchers that a parameter names: "cuda" those on words, "cuda_fma" those on doubles,
// "cpu_mixed" each limb's fastest.
struct KernelsUnderTest {
  std::string device;
  kernels::Arithmetic arithmetic;
};

inline KernelsUnderTest KernelsOf(const std::string& param) {
  const std::string device = param.substr(0, param.find('_'));
  if (param == device + "_fma") return {device, kernels::Arithmetic::kFma};
  if (param == device + "_mixed") return {device, kernels::Arithmetic::kMixed};
  return {param, kernels::Arithmetic::kInteger};
}

// Every device with integers, and the CPU and CUDA with what else they have.
inline std::vector<std::string> AllKernelsUnderTest() {
  std::vector<std::string> params = DevicesUnderTest();
  for (const std::string& device : DevicesUnderTest()) {
    if (device == "cpu" || device == "cuda") params.push_back(device + "_fma");
    if (device == "cpu") params.push_back(device + "_mixed");
  }
  return params;
}

class KernelFixture : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const KernelsUnderTest under_test = KernelsOf(GetParam());
    arithmetic_ = under_test.arithmetic;
    ASSERT_OK_AND_ASSIGN(device_, OpenTestDevice(under_test.device));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream("kernels"));
  }

  const kernels::KernelTable& kernels() const { return kernels::KernelsFor(*device_, arithmetic_); }

  // Builds a ring, places it on the device, and makes limbs_ its primes in order. Where the
  // arithmetic has a greatest prime, larger sizes stand for that one's.
  void UseRing(int log_n, std::vector<int> bits) {
    if (arithmetic_ == kernels::Arithmetic::kFma) {
      for (int& size : bits) size = std::min(size, ring::kFmaPrimeBits);
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> primes, ring::GeneratePrimes(log_n, bits));
    ASSERT_OK_AND_ASSIGN(ring::RnsBasis basis, ring::RnsBasis::Create(log_n, primes));
    basis_.emplace(std::move(basis));
    ASSERT_OK_AND_ASSIGN(ring_block_, Place(basis_->image()));
    ring_ = basis_->TablesAt(ring_block_->data());
    // A ring may have more primes than an operand has limbs.
    std::vector<uint16_t> rows(std::min<size_t>(bits.size(), kernels::kMaxLimbs));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint16_t>(i);
    limbs_ = LimbsOf(rows);
  }

  absl::StatusOr<runtime::StoragePtr> Place(const ring::RelocatableImage& image) {
    CIPHERD_ASSIGN_OR_RETURN(runtime::StoragePtr block, device_->Allocate(image.bytes(), *stream_));
    std::vector<uint8_t> staging(image.bytes());
    image.WriteAt(block->data(), staging.data());
    CIPHERD_RETURN_IF_ERROR(stream_->CopyAsync(block->data(), staging.data(), staging.size()));
    CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
    return block;
  }

  Polys Filled(int64_t outer_count, int64_t gap_words, Fill fill) {
    return FilledPolys(*basis_, limbs_, outer_count, gap_words, fill, random_);
  }

  using Launch =
      std::function<absl::Status(const std::vector<kernels::PolyView>&, kernels::PolyView)>;

  // Uploads the inputs and what `out` holds, launches, and reads the result into `out`. Where
  // in_place is the index of an input, that input's memory is the output's.
  absl::Status Run(const std::vector<const Polys*>& inputs, Polys& out, const Launch& launch,
                   std::optional<size_t> in_place = std::nullopt) {
    std::vector<runtime::StoragePtr> blocks;
    std::vector<kernels::PolyView> views;
    for (const Polys* input : inputs) {
      CIPHERD_ASSIGN_OR_RETURN(runtime::StoragePtr block, Upload(input->words, *device_, *stream_));
      views.push_back(input->ViewAt(block->data()));
      blocks.push_back(std::move(block));
    }
    kernels::PolyView out_view;
    if (in_place.has_value()) {
      out_view = views[*in_place];
    } else {
      CIPHERD_ASSIGN_OR_RETURN(runtime::StoragePtr block, Upload(out.words, *device_, *stream_));
      out_view = out.ViewAt(block->data());
      blocks.push_back(std::move(block));
    }
    CIPHERD_RETURN_IF_ERROR(launch(views, out_view));
    CIPHERD_ASSIGN_OR_RETURN(out.words,
                             Download<uint64_t>(out_view.data, out.words.size(), *stream_));
    return absl::OkStatus();
  }

  kernels::Arithmetic arithmetic_ = kernels::Arithmetic::kInteger;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Stream> stream_;
  std::optional<ring::RnsBasis> basis_;
  runtime::StoragePtr ring_block_;
  ring::RingTables ring_;
  kernels::LimbPrimes limbs_;
  std::mt19937_64 random_{20240521};
};

// Compares words, gaps included; names the first place that differs.
inline ::testing::AssertionResult SamePolys(const Polys& actual, const Polys& expected) {
  if (actual.words.size() != expected.words.size() ||
      actual.outer_stride != expected.outer_stride) {
    return ::testing::AssertionFailure() << "different shapes";
  }
  for (size_t w = 0; w < expected.words.size(); ++w) {
    if (actual.words[w] == expected.words[w]) continue;
    const auto outer = static_cast<int64_t>(w) / expected.outer_stride;
    const auto rest = static_cast<int64_t>(w) % expected.outer_stride;
    return ::testing::AssertionFailure()
           << "polynomial " << outer << ", limb " << (rest >> expected.log_n) << ", entry "
           << (rest & (expected.n() - 1)) << ": expected " << expected.words[w] << ", got "
           << actual.words[w];
  }
  return ::testing::AssertionSuccess();
}

}  // namespace cipherd::testing

#define CIPHERD_INSTANTIATE_KERNEL_SUITE(suite)                                            \
  INSTANTIATE_TEST_SUITE_P(Kernels, suite,                                                 \
                           ::testing::ValuesIn(::cipherd::testing::AllKernelsUnderTest()), \
                           ::cipherd::testing::DeviceParamName)

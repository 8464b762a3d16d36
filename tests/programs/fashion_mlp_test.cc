// The committed program directory deploy/programs/fashion_mlp: what it states, what it computes in
// the clear, and one evaluation at full size on the CPU device.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/programs/catalog.h"
#include "core/programs/interpreter.h"
#include "core/programs/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/codec/program_codec.h"
#include "tests/programs/plain_interpreter.h"
#include "tests/programs/test_client.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::programs {
namespace {

using ckks::KeyId;
using ::testing::ElementsAreArray;

constexpr int kPixels = 784;
constexpr int kHidden = 64;
constexpr int kLogits = 10;
constexpr int kImages = 8;

using Image = std::vector<double>;

// logits = w2 (w1 x + b1)^2 + b2, straight from weights.safetensors.
std::vector<double> Reference(const Constants& weights, const Image& image) {
  const float* w1 = weights.at("w1").data_as<float>();
  const float* b1 = weights.at("b1").data_as<float>();
  const float* w2 = weights.at("w2").data_as<float>();
  const float* b2 = weights.at("b2").data_as<float>();
  std::vector<double> squares(kHidden);
  for (int i = 0; i < kHidden; ++i) {
    double sum = b1[i];
    for (int j = 0; j < kPixels; ++j) sum += static_cast<double>(w1[i * kPixels + j]) * image[j];
    squares[i] = sum * sum;
  }
  std::vector<double> logits(kLogits);
  for (int o = 0; o < kLogits; ++o) {
    logits[o] = b2[o];
    for (int i = 0; i < kHidden; ++i) {
      logits[o] += static_cast<double>(w2[o * kHidden + i]) * squares[i];
    }
  }
  return logits;
}

// Blobs: like clothes, unlike noise, most pixels are dark or bright together.
std::vector<Image> RandomImages() {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Image> images;
  for (int k = 0; k < kImages; ++k) {
    const double x = 28 * uniform(random);
    const double y = 28 * uniform(random);
    const double width = 4 + 8 * uniform(random);
    Image& image = images.emplace_back(kPixels);
    for (int j = 0; j < kPixels; ++j) {
      const double distance = std::hypot(j % 28 - x, j / 28 - y);
      image[j] = distance < width ? std::floor(255 * uniform(random)) / 255 : 0;
    }
  }
  return images;
}

class FashionMlp : public ::testing::Test {
 protected:
  void SetUp() override {
    // Under the bound for 128-bit security.
    const ProgramCatalog catalog(CIPHERD_PROGRAMS_DIRECTORY, codec::ParseProgramText, {});
    ASSERT_OK_AND_ASSIGN(program_, catalog.Load({.name = "fashion_mlp"}));
    ASSERT_OK_AND_ASSIGN(
        weights_,
        ReadSafetensors(CIPHERD_PROGRAMS_DIRECTORY "/fashion_mlp/weights.safetensors", 1 << 20));
  }

  static int64_t SlotOf(const SlotLayout& layout, int item, int element) {
    return item * layout.item_stride + element * layout.element_stride;
  }

  ComplexSlots Pack(const std::vector<Image>& images) const {
    ComplexSlots slots(program_->spec.context.slot_count());
    for (int k = 0; k < kImages; ++k) {
      for (int j = 0; j < kPixels; ++j) {
        slots[SlotOf(program_->spec.inputs[0].layout, k, j)] = images[k][j];
      }
    }
    return slots;
  }

  // Largest difference of a logit from the reference; each image's arg-max must agree.
  double Compare(const ComplexSlots& slots, const std::vector<Image>& images) const {
    double largest = 0;
    for (int k = 0; k < kImages; ++k) {
      const std::vector<double> expected = Reference(weights_, images[k]);
      std::vector<double> actual;
      for (int o = 0; o < kLogits; ++o) {
        actual.push_back(slots[SlotOf(program_->spec.outputs[0].layout, k, o)].real());
        largest = std::max(largest, std::abs(actual[o] - expected[o]));
      }
      EXPECT_EQ(std::max_element(actual.begin(), actual.end()) - actual.begin(),
                std::max_element(expected.begin(), expected.end()) - expected.begin())
          << "image " << k;
    }
    return largest;
  }

  std::shared_ptr<const CheckedProgram> program_;
  Constants weights_;
};

TEST_F(FashionMlp, ItsContextIsTheOneThatThisLibraryGenerates) {
  ASSERT_OK_AND_ASSIGN(const ckks::ContextParameters generated,
                       ckks::MakeContextParameters({.log_n = 14,
                                                    .base_prime_bits = 50,
                                                    .depth_prime_bits = 42,
                                                    .max_depth = 3,
                                                    .p_prime_bits = 50,
                                                    .p_prime_count = 2,
                                                    .digit_count = 2},
                                                   ckks::SecurityPolicy::k128BitClassical));
  EXPECT_EQ(program_->spec.context.q_primes, generated.q_primes);
  EXPECT_EQ(program_->spec.context.p_primes, generated.p_primes);
  EXPECT_EQ(program_->context->id(), generated.ContextId());
}

TEST_F(FashionMlp, ItsKeysAreRelinearizationAndEighteenRotations) {
  std::vector<KeyId> expected = {KeyId::Relinearization()};
  for (int64_t baby = 8; baby < 64; baby += 8) expected.push_back(KeyId::Rotation(baby, 8192));
  for (int64_t giant = 64; giant < 512; giant += 64)
    expected.push_back(KeyId::Rotation(giant, 8192));
  for (int64_t block = 512; block < 8192; block *= 2)
    expected.push_back(KeyId::Rotation(block, 8192));
  EXPECT_EQ(expected.size(), 19u);
  EXPECT_THAT(program_->keys.ids(), ElementsAreArray(expected));
}

TEST_F(FashionMlp, ItsScalesAreTheDefaultUntilTheSquare) {
  const double scale = std::ldexp(1.0, 42);
  const double q1 = static_cast<double>(program_->spec.context.q_primes[1]);
  EXPECT_EQ(program_->edges.at("images"), (EdgeState{0, scale, 2}));
  EXPECT_EQ(program_->edges.at("layer1"), (EdgeState{1, scale, 2}));
  EXPECT_EQ(program_->edges.at("hidden"), (EdgeState{2, scale * scale / q1, 2}));
  EXPECT_EQ(program_->edges.at("layer2").depth, 3);
  EXPECT_NEAR(program_->edges.at("layer2").scale / scale, 1, 1e-6);
}

TEST_F(FashionMlp, ThePackingComputesTheModel) {
  const std::vector<Image> images = RandomImages();
  const auto edges =
      EvaluatePlain(program_->spec, *program_->constants, {{"images", Pack(images)}});
  EXPECT_LT(Compare(edges.at("layer2"), images), 1e-11);
  double largest = 0;
  for (const auto& slot : edges.at("layer2")) largest = std::max(largest, std::abs(slot));
  EXPECT_LT(largest, program_->spec.outputs[0].magnitude_bound);
}

// One evaluation under encryption. Errors of slots at the scale 2^42, as in interpreter_test, for
// N = 2^14: deviations of 128 times those of coefficients. Fresh 3.19 · 128 = 2^8.7; rounding by a
// rescale or a key switch 0.29 · sqrt(1 + 2N/3) · 128 = 2^11.9, of three components 0.29 · (2N/3) ·
// 128 = 2^18.6. Layer 1 adds sixteen blocks, each of a rescale and a rotation: 2^11.9 · sqrt(2 ·
// 16) = 2^14.4; squaring multiplies by 2 |hidden|, below 16: 2^18.4; the rescale of two components
// adds little, since relinearize comes first. Layer 2 sums 64 of them by weights below 1 in
// magnitude: 2^21.4. Eight deviations: 2^24.4 / 2^42 = 2^-17.6.
TEST_F(FashionMlp, EncryptedLogitsEqualTheReference) {
  ASSERT_OK_AND_ASSIGN(const auto device, runtime::OpenDevice("cpu", {}));
  ASSERT_OK_AND_ASSIGN(const auto stream, device->CreateStream("compute"));
  ASSERT_OK_AND_ASSIGN(const auto tables,
                       ckks::DeviceContext::Create(program_->context, *device, *stream));
  ASSERT_OK_AND_ASSIGN(const auto interpreter, Interpreter::Make(program_, *tables, *stream));
  ASSERT_OK_AND_ASSIGN(const execution::ProgramFunction function, interpreter->MakeFunction());
  ASSERT_OK_AND_ASSIGN(const auto client, TestClient::Make(program_, 1, *stream));
  const std::vector<Image> images = RandomImages();
  ASSERT_OK_AND_ASSIGN(const auto inputs, client->Encrypt({{"images", Pack(images)}}));

  double best_ms = INFINITY;
  for (int run = 0; run < 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_OK_AND_ASSIGN(const value::ValueTree outputs, function(inputs, *stream));
    ASSERT_OK(stream->Synchronize());
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    best_ms = std::min(best_ms, elapsed.count());
    ASSERT_OK_AND_ASSIGN(const auto slots, client->Decrypt(outputs));
    const double difference = Compare(slots.at("logits"), images);
    EXPECT_LT(difference, std::ldexp(1.0, -17));
    if (run == 0) {
      RecordProperty("max_difference", std::to_string(difference));
      std::printf("max |difference| of a logit: %.3g\n", difference);
    }
  }
  std::printf(
      "evaluation of eight images on cpu:0, best of 3: %.1f ms; keys %.1f MB, constants %.1f MB\n",
      best_ms, program_->key_bytes() / 1e6, interpreter->constant_bytes() / 1e6);
}

}  // namespace
}  // namespace cipherd::programs

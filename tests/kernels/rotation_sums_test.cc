#include "core/kernels/rotation_sums.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/ring/galois.h"
#include "gmock/gmock.h"
#include "tests/kernels/kernel_fixture.h"
#include "tests/math/mpz.h"

namespace cipherd::kernels {
namespace {

using ::cipherd::testing::Fill;
using ::cipherd::testing::Polys;
using ::cipherd::testing::Residue;
using ::cipherd::testing::SamePolys;
using ::cipherd::testing::ToMpz;

struct SumsCase {
  int log_n;
  int key_limbs;
  int first_limb;
  int limbs;
  // The addend has limbs below it.
  int addend_limbs;
  int digit_count;
  int rotation_count;
  // Rotation 0 has no key.
  bool begins_without_key;
  int sum_count;  // 0: no factors
  int64_t batch;
  // Items of digits and addend beside those of a rotation's.
  int64_t more_items = 0;
  int64_t gap_words = 0;
  bool batched_factors = false;
  bool accumulates = false;
};

std::ostream& operator<<(std::ostream& out, const SumsCase& c) {
  return out << "log_n " << c.log_n << ", limbs " << c.first_limb << "+" << c.limbs << ", "
             << c.rotation_count << " rotations, " << c.sum_count << " sums, batch " << c.batch
             << ", accumulates " << c.accumulates;
}

class RotationSumsTest : public testing::KernelFixture {
 protected:
  struct Block {
    Polys words{0, 0, 0};
    runtime::StoragePtr data;
  };
  absl::StatusOr<Block> Place(Polys words) {
    Block block{std::move(words), nullptr};
    CIPHERD_ASSIGN_OR_RETURN(block.data, testing::Upload(block.words.words, *device_, *stream_));
    return block;
  }

  // Entry of the digits and the addend that meets entry i.
  static uint32_t SourceOf(uint32_t i, uint32_t g, int log_n) {
    const uint64_t exponent =
        uint64_t{ring::NttIndexToExponent(i, log_n)} * g % (uint64_t{2} << log_n);
    return ring::NttExponentToIndex(static_cast<uint32_t>(exponent), log_n);
  }

  void Check(const SumsCase& c, const std::vector<int>& bits, Fill fill) {
    SCOPED_TRACE(c);
    ASSERT_NO_FATAL_FAILURE(UseRing(c.log_n, bits));
    const LimbPrimes key_limbs = limbs_;
    std::vector<uint16_t> rows;
    for (int l = 0; l < c.limbs; ++l) rows.push_back(static_cast<uint16_t>(c.first_limb + l));
    limbs_ = testing::LimbsOf(rows);
    const int64_t items = c.batch + c.more_items;
    const Polys digits = Filled(c.digit_count * items, c.gap_words, fill);
    LimbPrimes addend_limbs = limbs_;
    addend_limbs.count = c.addend_limbs;
    const Polys addend =
        testing::FilledPolys(*basis_, addend_limbs, 2 * items, c.gap_words, fill, random_);

    RotationSums sums;
    sums.rotation_count = c.rotation_count;
    sums.sum_count = std::max(c.sum_count, 1);
    sums.has_factors = c.sum_count > 0;
    sums.accumulates = c.accumulates;
    sums.digit_count = c.digit_count;
    sums.key.key_limb_count = c.key_limbs;
    sums.key.first_limb = c.first_limb;
    for (int d = 0; d < c.digit_count; ++d) {
      sums.key.key_digits[d] = static_cast<uint16_t>(c.digit_count - 1 - d);
    }
    for (int l = 0; l < c.addend_limbs; ++l) {
      const uint64_t q = basis_->prime(limbs_.prime[l]);
      sums.addend_scalars[l] = fill == Fill::kGreatest ? q - 1 : l % 2 == 0 ? 1 : random_() % q;
    }
    std::vector<Block> keys;
    std::vector<runtime::StoragePtr> slots;
    std::vector<Block> factors;
    for (int r = 0; r < c.rotation_count; ++r) {
      RotationSums::Rotation& rotation = sums.rotations[r];
      rotation.addend_item = static_cast<int32_t>(c.more_items * (r % 2));
      rotation.digit_item = static_cast<int32_t>(c.more_items * (r / 2 % 2));
      ASSERT_OK_AND_ASSIGN(
          keys.emplace_back(),
          Place(testing::FilledPolys(*basis_, key_limbs, 2 * c.digit_count, 0, fill, random_)));
      const std::vector<void*> address = {keys.back().data->data()};
      ASSERT_OK_AND_ASSIGN(slots.emplace_back(), testing::Upload(address, *device_, *stream_));
      for (int s = 0; s < c.sum_count; ++s) {
        ASSERT_OK_AND_ASSIGN(factors.emplace_back(),
                             Place(Filled(c.batched_factors ? c.batch : 1, c.gap_words, fill)));
        // One of them is left out.
        if (r == 1 && s == c.sum_count - 1) continue;
        sums.factors[s][r] = {
            .data = static_cast<const uint64_t*>(factors.back().data->data()),
            .item_stride = c.batched_factors ? factors.back().words.outer_stride : 0};
      }
      if (r == 0 && c.begins_without_key) continue;
      rotation.key_slot = static_cast<const uint64_t* const*>(slots.back()->data());
      rotation.galois_element = r % 3 == 2 ? 1 : ring::RotationElement(3 * r + 1, 5, c.log_n);
    }

    Polys out = Filled(2 * sums.sum_count * c.batch, c.gap_words, fill);
    Polys expected = out;
    for (int component = 0; component < 2; ++component) {
      for (int s = 0; s < sums.sum_count; ++s) {
        for (int64_t item = 0; item < c.batch; ++item) {
          for (int l = 0; l < c.limbs; ++l) {
            for (uint32_t i = 0; i < out.n(); ++i) {
              uint64_t& word = expected.at((component * sums.sum_count + s) * c.batch + item, l, i);
              mpz_class sum = c.accumulates ? ToMpz(word) : mpz_class(0);
              for (int r = 0; r < c.rotation_count; ++r) {
                const RotationSums::Rotation& rotation = sums.rotations[r];
                const uint32_t source = SourceOf(i, rotation.galois_element, c.log_n);
                const bool has_key = rotation.key_slot != nullptr;
                mpz_class rotated = 0;
                for (int d = 0; has_key && d < c.digit_count; ++d) {
                  rotated += ToMpz(digits.at(d * items + rotation.digit_item + item, l, source)) *
                             ToMpz(keys[r].words.at(sums.key.key_digits[d] * 2 + component,
                                                    c.first_limb + l, i));
                }
                if (l < c.addend_limbs && (component == 0 || !has_key)) {
                  rotated +=
                      ToMpz(sums.addend_scalars[l]) *
                      ToMpz(addend.at(component * items + rotation.addend_item + item, l, source));
                }
                if (sums.has_factors) {
                  if (sums.factors[s][r].data == nullptr) continue;
                  rotated *= ToMpz(
                      factors[r * c.sum_count + s].words.at(c.batched_factors ? item : 0, l, i));
                }
                sum += rotated;
              }
              word = Residue(sum, basis_->prime(limbs_.prime[l]));
            }
          }
        }
      }
    }
    ASSERT_OK(Run({&digits, &addend}, out, [&](const std::vector<PolyView>& views, PolyView view) {
      return kernels().rotation_sums(ring_, limbs_, sums, views[0], views[1], view, *stream_);
    }));
    ASSERT_TRUE(SamePolys(out, expected));
  }
};

TEST_P(RotationSumsTest, MatchBigIntegersWithFactors) {
  const std::vector<int> bits = {50, 40, 61, 60, 30};
  for (Fill fill : {Fill::kRandom, Fill::kGreatest, Fill::kZeros}) {
    for (bool accumulates : {false, true}) {
      Check({.log_n = 4,
             .key_limbs = 5,
             .first_limb = 0,
             .limbs = 5,
             .addend_limbs = 3,
             .digit_count = 2,
             .rotation_count = 3,
             .begins_without_key = true,
             .sum_count = 1,
             .batch = 1,
             .accumulates = accumulates},
            bits, fill);
      Check({.log_n = 5,
             .key_limbs = 5,
             .first_limb = 2,
             .limbs = 3,
             .addend_limbs = 1,
             .digit_count = 3,
             .rotation_count = 4,
             .begins_without_key = false,
             .sum_count = 3,
             .batch = 3,
             .gap_words = 5,
             .batched_factors = true,
             .accumulates = accumulates},
            bits, fill);
      Check({.log_n = 9,
             .key_limbs = 5,
             .first_limb = 1,
             .limbs = 4,
             .addend_limbs = 4,
             .digit_count = 1,
             .rotation_count = 5,
             .begins_without_key = true,
             .sum_count = 2,
             .batch = 2,
             .more_items = 3,
             .accumulates = accumulates},
            bits, fill);
    }
  }
}

TEST_P(RotationSumsTest, MatchBigIntegersWithoutFactors) {
  const std::vector<int> bits = {50, 61, 48};
  for (Fill fill : {Fill::kRandom, Fill::kGreatest, Fill::kZeros}) {
    for (bool accumulates : {false, true}) {
      Check({.log_n = 4,
             .key_limbs = 3,
             .first_limb = 0,
             .limbs = 3,
             .addend_limbs = 3,
             .digit_count = 2,
             .rotation_count = 8,
             .begins_without_key = true,
             .sum_count = 0,
             .batch = 2,
             .more_items = 4,
             .accumulates = accumulates},
            bits, fill);
      Check({.log_n = 9,
             .key_limbs = 3,
             .first_limb = 1,
             .limbs = 2,
             .addend_limbs = 1,
             .digit_count = 4,
             .rotation_count = 3,
             .begins_without_key = false,
             .sum_count = 0,
             .batch = 1,
             .gap_words = 7,
             .accumulates = accumulates},
            bits, fill);
    }
  }
}

// As many rotations, sums and digits as a launch takes, of the greatest residues.
TEST_P(RotationSumsTest, HoldTheMostRotationsAndSumsOfTheGreatestResidues) {
  for (Fill fill : {Fill::kGreatest, Fill::kRandom}) {
    Check({.log_n = 4,
           .key_limbs = 2,
           .first_limb = 0,
           .limbs = 2,
           .addend_limbs = 2,
           .digit_count = kMaxDigits - 1,
           .rotation_count = kMaxSumRotations,
           .begins_without_key = true,
           .sum_count = kMaxRotationSums,
           .batch = 1,
           .accumulates = true},
          {61, 50}, fill);
    Check({.log_n = 8,
           .key_limbs = 1,
           .first_limb = 0,
           .limbs = 1,
           .addend_limbs = 1,
           .digit_count = 2,
           .rotation_count = kMaxSumRotations,
           .begins_without_key = false,
           .sum_count = 5,
           .batch = 1},
          {50}, fill);
  }
}

TEST_P(RotationSumsTest, RefusesWhatALaunchDoesNotTake) {
  ASSERT_NO_FATAL_FAILURE(UseRing(4, {50, 50}));
  const Polys two = Filled(2, 0, Fill::kRandom);
  const auto refused = [&](const std::string& message, auto change) {
    RotationSums sums;
    sums.rotation_count = 1;
    sums.addend_scalars = {1, 1};
    change(sums);
    Polys out(4, 2, 2);
    EXPECT_THAT(
        Run({&two, &two}, out,
            [&](const std::vector<PolyView>& views, PolyView view) {
              return kernels().rotation_sums(ring_, limbs_, sums, views[0], views[1], view,
                                             *stream_);
            }),
        testing::StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr(message)));
  };
  refused("sums.sum_count: expected 1 to 1, got 2", [](RotationSums& s) { s.sum_count = 2; });
  refused("sums.sum_count: expected 1 to 8, got 9", [](RotationSums& s) {
    s.has_factors = true;
    s.sum_count = 9;
  });
  refused("sums.rotation_count: expected 1 to 16, got 17",
          [](RotationSums& s) { s.rotation_count = 17; });
  refused("addend_item: expected 0 to 0, got 1",
          [](RotationSums& s) { s.rotations[0].addend_item = 1; });
  refused("galois_element without a key: expected 1 to 1, got 5",
          [](RotationSums& s) { s.rotations[0].galois_element = 5; });
  refused("sums.digit_count: expected 1 to 63, got 0", [](RotationSums& s) {
    static const uint64_t* const address = nullptr;
    s.rotations[0].key_slot = &address;
  });
}

CIPHERD_INSTANTIATE_KERNEL_SUITE(RotationSumsTest);

}  // namespace
}  // namespace cipherd::kernels

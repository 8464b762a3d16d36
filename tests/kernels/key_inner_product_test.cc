#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/ring/galois.h"
#include "tests/kernels/kernel_fixture.h"
#include "tests/math/mpz.h"

namespace cipherd::kernels {
namespace {

using ::cipherd::testing::Fill;
using ::cipherd::testing::Polys;
using ::cipherd::testing::Residue;
using ::cipherd::testing::SamePolys;
using ::cipherd::testing::ToMpz;

struct KeyCase {
  int log_n;
  int key_limbs;
  int key_digits;
  int first_limb;
  int limbs;
  std::vector<uint16_t> digits;  // of the key, by digit of the operand
  int64_t batch;
  int64_t gap_words;
};

std::ostream& operator<<(std::ostream& out, const KeyCase& c) {
  return out << "log_n " << c.log_n << ", limbs " << c.first_limb << "+" << c.limbs << " of "
             << c.key_limbs << ", " << c.digits.size() << " of " << c.key_digits
             << " digits, batch " << c.batch;
}

class KeyInnerProductTest : public testing::KernelFixture {
 protected:
  // A key of random residues on the device, and the slot that points to it.
  struct Key {
    Polys words;  // [digit · 2 + component, limb, N]
    runtime::StoragePtr block;
    runtime::StoragePtr slot;
  };
  absl::StatusOr<Key> MakeKey(const LimbPrimes& key_limbs, int key_digits, Fill fill) {
    Key key{testing::FilledPolys(*basis_, key_limbs, 2 * key_digits, 0, fill, random_), nullptr,
            nullptr};
    CIPHERD_ASSIGN_OR_RETURN(key.block, testing::Upload(key.words.words, *device_, *stream_));
    const std::vector<void*> address = {key.block->data()};
    CIPHERD_ASSIGN_OR_RETURN(key.slot, testing::Upload(address, *device_, *stream_));
    return key;
  }

  // Limb l of the operand is modulo prime first_limb + l, as in the key.
  Polys Expected(const KeyCase& c, const Polys& digits, const Polys& key, uint32_t g) const {
    Polys result(c.log_n, c.limbs, 2 * c.batch, c.gap_words);
    for (int64_t component = 0; component < 2; ++component) {
      for (int64_t item = 0; item < c.batch; ++item) {
        for (int l = 0; l < c.limbs; ++l) {
          for (uint32_t i = 0; i < result.n(); ++i) {
            // Entry i is the value at an exponent e; of a(X^g), the value of a at g·e.
            const uint64_t exponent =
                uint64_t{ring::NttIndexToExponent(i, c.log_n)} * g % (2 * result.n());
            const uint32_t source =
                ring::NttExponentToIndex(static_cast<uint32_t>(exponent), c.log_n);
            mpz_class sum = 0;
            for (size_t d = 0; d < c.digits.size(); ++d) {
              sum += ToMpz(digits.at(d * c.batch + item, l, source)) *
                     ToMpz(key.at(c.digits[d] * 2 + component, c.first_limb + l, i));
            }
            result.at(component * c.batch + item, l, i) =
                Residue(sum, basis_->prime(limbs_.prime[l]));
          }
        }
      }
    }
    return result;
  }

  void Check(const KeyCase& c, const std::vector<int>& bits, Fill fill) {
    SCOPED_TRACE(c);
    ASSERT_NO_FATAL_FAILURE(UseRing(c.log_n, bits));
    ASSERT_OK_AND_ASSIGN(const Key key, MakeKey(limbs_, c.key_digits, fill));
    std::vector<uint16_t> rows;
    for (int l = 0; l < c.limbs; ++l) rows.push_back(static_cast<uint16_t>(c.first_limb + l));
    limbs_ = testing::LimbsOf(rows);
    const auto digit_count = static_cast<int>(c.digits.size());
    const Polys digits = Filled(digit_count * c.batch, c.gap_words, fill);
    KeySlot slot;
    slot.slot = static_cast<const uint64_t* const*>(key.slot->data());
    slot.key_limb_count = c.key_limbs;
    slot.first_limb = c.first_limb;
    std::copy(c.digits.begin(), c.digits.end(), slot.key_digits.begin());
    for (uint32_t g :
         {uint32_t{1}, ring::RotationElement(3, 5, c.log_n), ring::ConjugationElement(c.log_n)}) {
      Polys out(c.log_n, c.limbs, 2 * c.batch, c.gap_words);
      ASSERT_OK(Run({&digits}, out, [&](const std::vector<PolyView>& views, PolyView view) {
        return kernels().key_inner_product(ring_, limbs_, digit_count, g, views[0], slot, view,
                                           *stream_);
      }));
      ASSERT_TRUE(SamePolys(out, Expected(c, digits, key.words, g))) << "element " << g;
    }
  }
};

TEST_P(KeyInnerProductTest, MatchesBigIntegersForDigitsLimbsAndElements) {
  const std::vector<int> bits = {50, 40, 40, 61, 61, 60, 30, 30, 61};
  for (Fill fill : {Fill::kRandom, Fill::kGreatest, Fill::kZeros}) {
    Check({4, 9, 1, 0, 9, {0}, 1, 0}, bits, fill);
    Check({4, 9, 3, 4, 5, {1, 2}, 3, 5}, bits, fill);
    Check({10, 9, 4, 8, 1, {3, 0, 2}, 2, 0}, bits, fill);
    Check({10, 9, 9, 0, 9, {0, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 16}, bits, fill);
  }
  Check({13, 3, 2, 1, 2, {0, 1}, 1, 0}, {61, 61, 50}, Fill::kRandom);
}

// 64 products of 61 bits are as much as the sum holds.
TEST_P(KeyInnerProductTest, HoldsTheMostDigitsOfTheGreatestResidues) {
  KeyCase c{4, 1, kMaxDigits, 0, 1, {}, 1, 0};
  for (uint16_t d = 0; d < kMaxDigits; ++d) c.digits.push_back(kMaxDigits - 1 - d);
  Check(c, {61}, Fill::kGreatest);
  Check(c, {61}, Fill::kRandom);
}

// The slot is read when the work runs, so that a captured launch follows it.
TEST_P(KeyInnerProductTest, CapturedLaunchFollowsItsSlot) {
  const KeyCase c{10, 2, 2, 0, 2, {0, 1}, 1, 0};
  ASSERT_NO_FATAL_FAILURE(UseRing(c.log_n, {50, 61}));
  ASSERT_OK_AND_ASSIGN(const Key first, MakeKey(limbs_, 2, Fill::kRandom));
  ASSERT_OK_AND_ASSIGN(const Key second, MakeKey(limbs_, 2, Fill::kRandom));
  const Polys digits = Filled(2, 0, Fill::kRandom);
  ASSERT_OK_AND_ASSIGN(const auto digits_block, testing::Upload(digits.words, *device_, *stream_));
  Polys out(c.log_n, 2, 2);
  ASSERT_OK_AND_ASSIGN(const auto out_block, testing::Upload(out.words, *device_, *stream_));
  KeySlot slot;
  slot.slot = static_cast<const uint64_t* const*>(first.slot->data());
  slot.key_limb_count = 2;
  slot.key_digits = {0, 1};

  ASSERT_OK(stream_->BeginCapture(/*check_liveness=*/true));
  ASSERT_OK(kernels().key_inner_product(ring_, limbs_, 2, 1, digits.ViewAt(digits_block->data()),
                                        slot, out.ViewAt(out_block->data()), *stream_));
  ASSERT_OK_AND_ASSIGN(const auto graph, stream_->EndCapture());
  for (const Key* key : {&first, &second}) {
    const void* address = key->block->data();
    ASSERT_OK(stream_->CopyAsync(first.slot->data(), &address, sizeof(address)));
    ASSERT_OK(graph->Launch(*stream_));
    ASSERT_OK_AND_ASSIGN(
        out.words, testing::Download<uint64_t>(out_block->data(), out.words.size(), *stream_));
    EXPECT_TRUE(SamePolys(out, Expected(c, digits, key->words, 1)));
  }
}

CIPHERD_INSTANTIATE_KERNEL_SUITE(KeyInnerProductTest);

}  // namespace
}  // namespace cipherd::kernels

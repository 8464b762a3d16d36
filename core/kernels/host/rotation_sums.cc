// Sums of rotations, a piece of a limb at a time: its rotations stay in the cache of the core while
// every sum reads them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/host/limb_kernel_choice.h"
#include "core/kernels/poly_access.h"
#include "core/math/barrett.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/shoup.h"

namespace cipherd::kernels::host {
namespace {

using ring::PrimeConstants;

// Words of a limb that are worked on together; a multiple of every tile of a limb kernel.
constexpr int64_t kPieceWords = 256;
static_assert(int64_t{1} << kMinVectorLogN <= kPieceWords);

using Piece = std::array<uint64_t, kPieceWords>;

struct Operands {
  RingTables ring;
  RotationSums sums;
  int64_t batch;
  int64_t digit_items;   // polynomials of one digit
  int64_t addend_items;  // and of one component of the addend
  ConstPolyView digits;
  ConstPolyView addend;
  PolyView out;
  std::vector<PermutationPtr> sources;  // by rotation
};

// One limb of one item.
class LimbSums {
 public:
  LimbSums(const LimbKernels& kernels, const PrimeConstants& prime, const Operands& x, int64_t item,
           int limb)
      : kernels_(kernels),
        prime_(prime),
        x_(x),
        item_(item),
        limb_(limb),
        scalar_(x.sums.addend_scalars[limb]),
        scalar_shoup_(math::ShoupQuotient(
            scalar_, math::Barrett{prime.q, prime.barrett_high, prime.barrett_low})) {}

  void Run() {
    const int64_t n = int64_t{1} << x_.ring.log_n;
    const int64_t words = std::min(n, kPieceWords);
    for (int64_t begin = 0; begin < n; begin += words) {
      for (int r = 0; r < x_.sums.rotation_count; ++r) Rotate(r, begin, words);
      for (int s = 0; s < x_.sums.sum_count; ++s) Sum(s, begin, words);
    }
  }

 private:
  const uint64_t* Limb(const ConstPolyView& view, int64_t polynomial) const {
    return LimbOf(view, polynomial, limb_, x_.ring.log_n);
  }

  // out = scalar · a.
  void Scale(const uint64_t* a, int64_t words, uint64_t* out) const {
    if (scalar_ == 0) {
      std::fill_n(out, words, 0);
    } else if (scalar_ == 1) {
      std::copy_n(a, words, out);
    } else {
      kernels_.multiply_scalar(prime_, words, scalar_, scalar_shoup_, a, out);
    }
  }

  // Writes rotation r, entries [begin, begin + words).
  void Rotate(int r, int64_t begin, int64_t words) {
    const RotationSums::Rotation& rotation = x_.sums.rotations[r];
    const int64_t addend_item = rotation.addend_item + item_;
    Piece& out0 = rotated_[r][0];
    Piece& out1 = rotated_[r][1];
    if (rotation.key_slot == nullptr) {
      // Where the scalar is 0, the addend may have no such limb.
      for (int c = 0; c < 2; ++c) {
        const uint64_t* const from =
            scalar_ == 0 ? nullptr : Limb(x_.addend, c * x_.addend_items + addend_item) + begin;
        Scale(from, words, rotated_[r][c].data());
      }
      return;
    }
    const uint32_t* const sources =
        x_.sources[r] == nullptr ? nullptr : x_.sources[r]->data() + begin;
    const KeySlot& form = x_.sums.key;
    const int64_t n = int64_t{1} << x_.ring.log_n;
    KeyProductOperands operands;
    operands.digit_count = x_.sums.digit_count;
    operands.component_stride = form.key_limb_count * n;
    for (int d = 0; d < x_.sums.digit_count; ++d) {
      const int64_t polynomial = d * x_.digit_items + rotation.digit_item + item_;
      operands.digits[d] = Limb(x_.digits, polynomial) + (sources == nullptr ? begin : 0);
      operands.key[d] = *rotation.key_slot + form.key_digits[d] * 2 * operands.component_stride +
                        (form.first_limb + limb_) * n + begin;
    }
    operands.sources = sources;
    operands.out0 = out0.data();
    operands.out1 = out1.data();
    kernels_.key_inner_product(prime_, words, operands);
    if (scalar_ == 0) return;
    const uint64_t* const addend = Limb(x_.addend, addend_item);
    for (int64_t k = 0; k < words; ++k) {
      scratch_[0][k] = addend[sources == nullptr ? begin + k : int64_t{sources[k]}];
    }
    Scale(scratch_[0].data(), words, scratch_[0].data());
    kernels_.add(prime_, words, out0.data(), scratch_[0].data(), out0.data());
  }

  // Writes or adds to sum s, entries [begin, begin + words).
  void Sum(int s, int64_t begin, int64_t words) {
    std::array<uint64_t*, 2> out;
    for (int c = 0; c < 2; ++c) {
      const int64_t polynomial = (c * x_.sums.sum_count + s) * x_.batch + item_;
      out[c] = LimbOf(x_.out, polynomial, limb_, x_.ring.log_n) + begin;
    }
    if (!x_.sums.has_factors) {
      for (int c = 0; c < 2; ++c) {
        if (!x_.sums.accumulates) std::copy_n(rotated_[0][c].data(), words, out[c]);
        for (int r = x_.sums.accumulates ? 0 : 1; r < x_.sums.rotation_count; ++r) {
          kernels_.add(prime_, words, out[c], rotated_[r][c].data(), out[c]);
        }
      }
      return;
    }
    // The products of factors with rotations are those of digits with a key.
    KeyProductOperands operands;
    operands.digit_count = 0;
    operands.component_stride = kPieceWords;
    for (int r = 0; r < x_.sums.rotation_count; ++r) {
      const RotationSums::Factor& factor = x_.sums.factors[s][r];
      if (factor.data == nullptr) continue;
      operands.digits[operands.digit_count] = factor.data + item_ * factor.item_stride +
                                              (static_cast<int64_t>(limb_) << x_.ring.log_n) +
                                              begin;
      operands.key[operands.digit_count++] = rotated_[r][0].data();
    }
    operands.sources = nullptr;
    operands.out0 = x_.sums.accumulates ? scratch_[0].data() : out[0];
    operands.out1 = x_.sums.accumulates ? scratch_[1].data() : out[1];
    kernels_.key_inner_product(prime_, words, operands);
    for (int c = 0; x_.sums.accumulates && c < 2; ++c) {
      kernels_.add(prime_, words, out[c], scratch_[c].data(), out[c]);
    }
  }

  const LimbKernels& kernels_;
  const PrimeConstants& prime_;
  const Operands& x_;
  const int64_t item_;
  const int limb_;
  const uint64_t scalar_;
  const uint64_t scalar_shoup_;
  alignas(64) std::array<std::array<Piece, 2>, kMaxSumRotations> rotated_;  // [rotation][component]
  alignas(64) std::array<Piece, 2> scratch_;
};

}  // namespace

template <class Choice>
absl::Status RotationSumsLaunchers<Choice>::Run(const RingTables& ring, const LimbPrimes& limbs,
                                                const RotationSums& sums, ConstPolyView digits,
                                                ConstPolyView addend, PolyView out,
                                                Stream& stream) {
  Operands operands = {.ring = ring,
                       .sums = sums,
                       .batch = out.outer_count / (2 * sums.sum_count),
                       .digit_items = digits.outer_count / std::max(sums.digit_count, 1),
                       .addend_items = addend.outer_count / 2,
                       .digits = digits,
                       .addend = addend,
                       .out = out,
                       .sources = {}};
  for (int r = 0; r < sums.rotation_count; ++r) {
    const uint32_t element = sums.rotations[r].galois_element;
    operands.sources.push_back(element == 1 ? nullptr : AutomorphismOf(element, ring.log_n));
  }
  return Launch("rotation_sums", stream, [limbs, operands = std::move(operands)] {
    ForEachLimb(operands.ring, limbs, operands.batch, Work::kHeavy,
                [&](int64_t item, int limb, const PrimeConstants& prime) {
                  const LimbKernels& kernels = Choice::ForPrime(prime, operands.ring.log_n);
                  LimbSums(kernels, prime, operands, item, limb).Run();
                });
  });
}

template struct RotationSumsLaunchers<ScalarChoice<math::IntegerArithmetic>>;
template struct RotationSumsLaunchers<ScalarChoice<math::FmaArithmetic>>;
template struct RotationSumsLaunchers<MixedChoice>;

}  // namespace cipherd::kernels::host

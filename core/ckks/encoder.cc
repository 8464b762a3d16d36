#include "core/ckks/encoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/context.h"
#include "core/ckks/host_ring.h"
#include "core/ckks/slot_transform.h"
#include "core/ckks/value_checks.h"
#include "core/math/power.h"
#include "core/ring/rns_basis.h"

namespace cipherd::ckks {
namespace {

using Complex = std::complex<double>;

// A rounded coefficient as mantissa · 2^exponent, exact for every double.
struct ScaledInteger {
  int64_t mantissa;
  int exponent;  // 0 where the number is below 2^62 in magnitude
};

ScaledInteger RoundExactly(double x) {
  if (std::fabs(x) < 0x1p62) return {std::llrint(x), 0};
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // in [0.5, 1), 53 bits
  return {static_cast<int64_t>(std::ldexp(fraction, 53)), exponent - 53};
}

uint64_t Residue(const ScaledInteger& x, const math::Barrett& m) {
  const uint64_t magnitude = math::Reduce64(
      x.mantissa < 0 ? uint64_t{0} - static_cast<uint64_t>(x.mantissa) : x.mantissa, m);
  const uint64_t residue =
      x.exponent == 0
          ? magnitude
          : math::MulMod(magnitude, math::PowMod(2 % m.q, static_cast<uint64_t>(x.exponent), m), m);
  return x.mantissa < 0 ? math::NegateMod(residue, m.q) : residue;
}

// Representatives in (-Q/2, Q/2), rounded to extended precision, of residues modulo several primes.
class Reconstruction {
 public:
  Reconstruction(const ring::RnsBasis& basis, const std::vector<int64_t>& prime_ids)
      : digits_(prime_ids.size()) {
    for (int64_t id : prime_ids) moduli_.push_back(basis.modulus(static_cast<int>(id)));
    for (const math::Barrett& m : moduli_) {
      std::vector<uint64_t>& row = inverses_.emplace_back();
      for (const math::Barrett& before : moduli_) {
        if (before.q == m.q) break;
        row.push_back(math::InverseMod(before.q % m.q, m));
      }
    }
  }

  // `residue(l)` is the residue modulo prime l.
  template <typename ResidueOf>
  long double operator()(ResidueOf residue) {
    const size_t count = moduli_.size();
    // Mixed radix: x = d_0 + d_1 q_0 + d_2 q_0 q_1 + …, d_l in [0, q_l).
    for (size_t l = 0; l < count; ++l) {
      const math::Barrett& m = moduli_[l];
      uint64_t digit = residue(l);
      for (size_t k = 0; k < l; ++k) {
        digit = math::MulMod(math::SubMod(digit, math::Reduce64(digits_[k], m), m.q),
                             inverses_[l][k], m);
      }
      digits_[l] = digit;
    }
    // (Q - 1) / 2 has the digits (q_l - 1) / 2.
    bool negative = false;
    for (size_t l = count; l-- > 0;) {
      const uint64_t half = (moduli_[l].q - 1) / 2;
      if (digits_[l] == half) continue;
      negative = digits_[l] > half;
      break;
    }
    // Q - 1 - x has the digits q_l - 1 - d_l, so that x - Q = -(Q - 1 - x) - 1.
    long double magnitude = 0;
    for (size_t l = count; l-- > 0;) {
      const uint64_t digit = negative ? moduli_[l].q - 1 - digits_[l] : digits_[l];
      magnitude =
          magnitude * static_cast<long double>(moduli_[l].q) + static_cast<long double>(digit);
    }
    return negative ? -magnitude - 1 : magnitude;
  }

 private:
  std::vector<math::Barrett> moduli_;
  std::vector<std::vector<uint64_t>> inverses_;  // [l][k]: q_k^-1 mod q_l, k < l
  std::vector<uint64_t> digits_;
};

}  // namespace

struct Encoder::Tables {
  internal::SlotTransform transform;
};

Encoder::Encoder(std::shared_ptr<const Context> context)
    : context_(std::move(context)),
      tables_(std::make_unique<const Tables>(Tables{internal::SlotTransform(
          context_->parameters().galois_generator, context_->parameters().log_n)})) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;

absl::StatusOr<Plaintext> Encoder::Encode(std::span<const double> slots, int depth, double scale,
                                          value::ModulusBasis basis) const {
  return EncodeComplex(std::vector<Complex>(slots.begin(), slots.end()), depth, scale, basis);
}

absl::StatusOr<Plaintext> Encoder::EncodeComplex(std::span<const Complex> slots, int depth,
                                                 double scale, value::ModulusBasis basis) const {
  const ContextParameters& parameters = context_->parameters();
  const size_t slot_count = static_cast<size_t>(parameters.slot_count());
  if (slots.size() > slot_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("slots: expected at most ", slot_count, ", got ", slots.size()));
  }
  if (depth < 0 || depth > parameters.max_depth()) {
    return absl::InvalidArgumentError(
        absl::StrCat("depth: expected 0 to ", parameters.max_depth(), ", got ", depth));
  }
  if (!std::isfinite(scale) || scale <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("scale: expected a finite number above 0, got ", internal::ExactText(scale)));
  }
  std::vector<Complex> padded(slot_count);
  for (size_t j = 0; j < slots.size(); ++j) {
    if (!std::isfinite(slots[j].real()) || !std::isfinite(slots[j].imag())) {
      return absl::InvalidArgumentError(absl::StrCat("slots[", j, "]: expected a finite number"));
    }
    padded[j] = slots[j];
  }
  std::vector<double> coefficients = tables_->transform.ToCoefficients(padded);
  double largest = 0;
  bool finite = true;
  for (double& x : coefficients) {
    x *= scale;
    finite = finite && std::isfinite(x);
    largest = std::max(largest, std::fabs(x));
  }
  const double log_bound = parameters.log_q(depth) - 2;
  if (!finite || std::log2(largest) > log_bound) {
    return absl::InvalidArgumentError(
        absl::StrCat("slots: expected scaled coefficients of at most 2^", log_bound,
                     ", a quarter of the modulus at depth ", depth, ", got 2^", std::log2(largest),
                     "; encode at a lower depth or a smaller scale"));
  }

  std::vector<ScaledInteger> rounded;
  rounded.reserve(coefficients.size());
  for (double x : coefficients) rounded.push_back(RoundExactly(x));
  const std::vector<int64_t> prime_ids =
      parameters.ActivePrimeIds(depth, basis == value::ModulusBasis::kQP);
  Plaintext plaintext{.data = {},
                      .depth = depth,
                      .scale = scale,
                      .domain = value::PolynomialDomain::kNtt,
                      .basis = basis};
  CIPHERD_ASSIGN_OR_RETURN(
      plaintext.data,
      value::Tensor::AllocateHost(value::DType::kUint64, {static_cast<int64_t>(prime_ids.size()),
                                                          parameters.ring_degree()}));
  std::span<uint64_t> rest(plaintext.data.data_as<uint64_t>(),
                           static_cast<size_t>(plaintext.data.element_count()));
  for (int64_t id : prime_ids) {
    const math::Barrett& m = context_->basis().modulus(static_cast<int>(id));
    const std::span<uint64_t> limb = rest.first(rounded.size());
    for (size_t i = 0; i < rounded.size(); ++i) limb[i] = Residue(rounded[i], m);
    ForwardNttOnHost(*context_, id, limb);
    rest = rest.subspan(rounded.size());
  }
  return plaintext;
}

absl::StatusOr<std::vector<Complex>> Encoder::Decode(const Plaintext& plaintext) const {
  const ContextParameters& parameters = context_->parameters();
  if (plaintext.depth < 0 || plaintext.depth > parameters.max_depth()) {
    return absl::InvalidArgumentError(
        absl::StrCat("depth: expected 0 to ", parameters.max_depth(), ", got ", plaintext.depth));
  }
  if (plaintext.basis != value::ModulusBasis::kQ) {
    return absl::InvalidArgumentError(absl::StrCat("plaintext.basis: expected Q, got ",
                                                   std::string(value::ToString(plaintext.basis)),
                                                   "; encode it modulo Q alone"));
  }
  const std::vector<int64_t> prime_ids =
      parameters.ActivePrimeIds(plaintext.depth, /*with_p=*/false);
  const std::vector<int64_t> shape = {static_cast<int64_t>(prime_ids.size()),
                                      parameters.ring_degree()};
  if (plaintext.data.shape() != shape || plaintext.data.dtype() != value::DType::kUint64 ||
      !plaintext.data.is_contiguous()) {
    return absl::InvalidArgumentError(
        absl::StrCat("plaintext.data: expected contiguous uint64 ", internal::ListOf(shape),
                     " at depth ", plaintext.depth, ", got ",
                     internal::ListOf(plaintext.data.shape()), "; decode batches item by item"));
  }
  if (!plaintext.data.placement().is_host()) {
    return absl::InvalidArgumentError(absl::StrCat("plaintext.data: expected host memory, got ",
                                                   plaintext.data.placement().ToString()));
  }
  const size_t n = static_cast<size_t>(parameters.ring_degree());
  const uint64_t* words = plaintext.data.data_as<uint64_t>();
  std::vector<uint64_t> residues(words, words + prime_ids.size() * n);
  if (plaintext.domain == value::PolynomialDomain::kNtt) {
    for (size_t l = 0; l < prime_ids.size(); ++l) {
      InverseNttOnHost(*context_, prime_ids[l], std::span(residues).subspan(l * n, n));
    }
  }
  Reconstruction reconstruct(context_->basis(), prime_ids);
  std::vector<double> coefficients(n);
  for (size_t i = 0; i < n; ++i) {
    coefficients[i] =
        static_cast<double>(reconstruct([&](size_t l) { return residues[l * n + i]; }) /
                            static_cast<long double>(plaintext.scale));
  }
  return tables_->transform.ToSlots(coefficients);
}

}  // namespace cipherd::ckks

// Works on tiles of coefficients, so that the digits y_i of a tile stay in the first-level cache
// while every target prime reads them.
#include <algorithm>
#include <array>
#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/basis_conversion_body.h"
#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::host {
namespace {

using ring::BasisConversionTables;

// Every N is a multiple; 64 primes make 8 KiB of digits.
constexpr int kTile = 16;

template <class A>
void ConvertTile(const RingTables& ring, const BasisConversionTables& tables, int64_t outer,
                 int64_t begin, const ConstPolyView& in, const PolyView& out) {
  std::array<std::array<uint64_t, kTile>, kMaxLimbs> digits;
  std::array<double, kTile> quotient = {};
  for (int i = 0; i < tables.source_count; ++i) {
    const auto m = ArithmeticTables<A>::Modulus(ring.primes[tables.source_primes[i]]);
    const uint64_t* x = LimbOf(in, outer, i, ring.log_n) + begin;
    for (int k = 0; k < kTile; ++k) {
      const auto y = ConversionDigit<A>(A::FromWord(x[k]), tables, i, m);
      AddToQuotient<A>(y, tables, i, quotient[k]);
      digits[i][k] = A::ToWord(y);
    }
  }
  std::array<uint64_t, kTile> overflow;
  for (int k = 0; k < kTile; ++k) overflow[k] = ConversionOverflow(quotient[k]);
  for (int j = 0; j < tables.target_count; ++j) {
    const auto m = ArithmeticTables<A>::Modulus(ring.primes[tables.target_primes[j]]);
    uint64_t* z = LimbOf(out, outer, j, ring.log_n) + begin;
    for (int k = 0; k < kTile; ++k) {
      z[k] = A::ToWord(
          ConversionTarget<A>([&](int i) { return digits[i][k]; }, overflow[k], tables, j, m));
    }
  }
}

}  // namespace

template <class A>
absl::Status BasisConversionLaunchers<A>::Convert(const RingTables& ring,
                                                  const BasisConversionTables& tables,
                                                  ConstPolyView in, PolyView out, Stream& stream) {
  return Launch("convert_basis", stream, [=] {
    for (int64_t outer = 0; outer < out.outer_count; ++outer) {
      for (int64_t begin = 0; begin < int64_t{1} << ring.log_n; begin += kTile) {
        ConvertTile<A>(ring, tables, outer, begin, in, out);
      }
    }
  });
}

template struct BasisConversionLaunchers<math::IntegerArithmetic>;
template struct BasisConversionLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::host

// The vectorised loops over one limb against the integer ones, bit for bit, on every kind of
// processor that this one can stand for.
#include "core/kernels/host/limb_kernels.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/basis_conversion_body.h"
#include "core/kernels/entry_body.h"
#include "core/kernels/host/limb_ntt.h"
#include "core/kernels/key_inner_product_body.h"
#include "core/math/integer_arithmetic.h"
#include "core/ring/basis_conversion.h"
#include "core/ring/primes.h"
#include "core/ring/rns_basis.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::kernels::host {
namespace {

using Integer = math::IntegerArithmetic;
using Words = std::vector<uint64_t>;

// Tables of a ring in memory of this process.
class HostTables {
 public:
  HostTables(int log_n, const std::vector<int>& bits) {
    const auto primes = ring::GeneratePrimes(log_n, bits).value();
    basis_ = std::make_unique<ring::RnsBasis>(ring::RnsBasis::Create(log_n, primes).value());
    block_.resize(basis_->image().bytes() / sizeof(uint64_t) + 1);
    basis_->image().WriteAt(block_.data(), reinterpret_cast<uint8_t*>(block_.data()));
    tables_ = basis_->TablesAt(block_.data());
  }

  const ring::RnsBasis& basis() const { return *basis_; }
  const ring::RingTables& tables() const { return tables_; }
  const ring::PrimeConstants& prime(int row) const { return tables_.primes[row]; }
  int64_t n() const { return int64_t{1} << tables_.log_n; }

 private:
  std::unique_ptr<ring::RnsBasis> basis_;
  Words block_;
  ring::RingTables tables_;
};

// Each instance switches off what is faster than its own kind.
class LimbKernelsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    hwy::DisableTargets(GetParam() == "avx2" ? HWY_AVX3 : 0);
    vectors_ = FindLimbKernels();
    if (vectors_ == nullptr || vectors_->name != GetParam()) {
      GTEST_SKIP() << "this processor has no " << GetParam();
    }
  }
  void TearDown() override { hwy::DisableTargets(0); }

  // Random residues, then the edges: zero, q - 1, and both at random.
  std::vector<Words> Fills(uint64_t q, int64_t n) {
    std::vector<Words> fills(4, Words(n));
    for (uint64_t& word : fills[0]) word = random_() % q;
    for (uint64_t& word : fills[2]) word = q - 1;
    for (uint64_t& word : fills[3]) word = random_() % 2 * (q - 1);
    return fills;
  }

  const LimbKernels* vectors_ = nullptr;
  std::mt19937_64 random_{1};
};

TEST_P(LimbKernelsTest, TransformsEqualTheIntegerOnes) {
  for (int log_n = kMinVectorLogN; log_n <= 16; ++log_n) {
    const HostTables ring(log_n, {50, 50, 40, 30});
    for (int row = 0; row < 4; ++row) {
      for (const Words& in : Fills(ring.prime(row).q, ring.n())) {
        Words expected(ring.n()), got(ring.n());
        ForwardNttOfLimb(ring.prime(row), log_n, in.data(), expected.data());
        vectors_->forward_ntt(ring.prime(row), log_n, in.data(), got.data());
        ASSERT_EQ(got, expected) << "forward, log N = " << log_n << ", row " << row;
        InverseNttOfLimb(ring.prime(row), log_n, in.data(), expected.data());
        got = in;
        vectors_->inverse_ntt(ring.prime(row), log_n, got.data(), got.data());
        ASSERT_EQ(got, expected) << "inverse, log N = " << log_n << ", row " << row;
      }
    }
  }
}

TEST_P(LimbKernelsTest, EntriesEqualTheIntegerOnes) {
  const HostTables ring(kMinVectorLogN, {50, 49, 40, 30});
  const int64_t n = ring.n();
  for (int row = 0; row < 4; ++row) {
    const ring::PrimeConstants& prime = ring.prime(row);
    const uint64_t q = prime.q;
    const auto m = ArithmeticTables<Integer>::Modulus(prime);
    const auto fills = Fills(q, n);
    for (const Words& a : fills) {
      for (const Words& b : fills) {
        Words got(n), expected(n);
        const auto check = [&](const char* what, const auto& entry) {
          for (int64_t i = 0; i < n; ++i) expected[i] = entry(i);
          ASSERT_EQ(got, expected) << what << ", row " << row;
        };
        vectors_->add(q, n, a.data(), b.data(), got.data());
        check("add", [&](int64_t i) { return Integer::Add(a[i], b[i], m); });
        vectors_->subtract(q, n, a.data(), b.data(), got.data());
        check("subtract", [&](int64_t i) { return Integer::Subtract(a[i], b[i], m); });
        vectors_->multiply(q, n, a.data(), b.data(), got.data());
        check("multiply", [&](int64_t i) { return Integer::Multiply(a[i], b[i], m); });
        got = a;
        vectors_->multiply_add(q, n, a.data(), b.data(), got.data());
        check("multiply_add",
              [&](int64_t i) { return Integer::Add(Integer::Multiply(a[i], b[i], m), a[i], m); });
        for (uint64_t scalar : {uint64_t{0}, uint64_t{1}, q / 2, q - 1}) {
          vectors_->multiply_scalar(q, n, scalar, a.data(), got.data());
          check("multiply_scalar", [&](int64_t i) { return Integer::Multiply(a[i], scalar, m); });
          vectors_->subtract_scale(q, n, scalar, a.data(), b.data(), got.data());
          check("subtract_scale", [&](int64_t i) {
            return Integer::Multiply(Integer::Subtract(a[i], b[i], m), scalar, m);
          });
        }
        Words out0(n), out1(n), out2(n);
        vectors_->tensor_product(
            q, n, {a.data(), b.data(), b.data(), a.data(), out0.data(), out1.data(), out2.data()});
        for (int64_t i = 0; i < n; ++i) {
          const auto words = TensorProductEntry<Integer>(a[i], b[i], b[i], a[i], m);
          ASSERT_EQ(out0[i], words.out0);
          ASSERT_EQ(out1[i], words.out1);
          ASSERT_EQ(out2[i], words.out2);
        }
      }
    }
  }
}

TEST_P(LimbKernelsTest, KeyInnerProductsEqualTheIntegerOnes) {
  const HostTables ring(kMinVectorLogN, {50, 40});
  const int64_t n = ring.n();
  std::vector<uint32_t> sources(n);
  for (int64_t i = 0; i < n; ++i) sources[i] = static_cast<uint32_t>(n - 1 - i);
  for (int row = 0; row < 2; ++row) {
    const ring::PrimeConstants& prime = ring.prime(row);
    const auto m = ArithmeticTables<Integer>::Modulus(prime);
    for (int digit_count : {1, 2, 3, 4, 7, kMaxDigits}) {
      for (int fill = 0; fill < 4; ++fill) {
        Words digits, key;
        for (int d = 0; d < digit_count; ++d) {
          const auto a = Fills(prime.q, n), b = Fills(prime.q, 2 * n);
          digits.insert(digits.end(), a[fill].begin(), a[fill].end());
          key.insert(key.end(), b[fill].begin(), b[fill].end());
        }
        for (const bool permutes : {false, true}) {
          Words out0(n), out1(n);
          KeyProductOperands operands = {.digit_count = digit_count,
                                         .digits = digits.data(),
                                         .digit_stride = n,
                                         .key = {},
                                         .component_stride = n,
                                         .sources = permutes ? sources.data() : nullptr,
                                         .out0 = out0.data(),
                                         .out1 = out1.data()};
          for (int d = 0; d < digit_count; ++d) operands.key[d] = key.data() + d * 2 * n;
          vectors_->key_inner_product(prime.q, n, operands);
          for (int64_t i = 0; i < n; ++i) {
            KeyInnerProduct<Integer> sum;
            for (int d = 0; d < digit_count; ++d) {
              sum.Add(digits[d * n + (permutes ? sources[i] : i)], operands.key[d][i],
                      operands.key[d][n + i]);
            }
            ASSERT_EQ(out0[i], sum.Component0(m)) << digit_count << " digits, fill " << fill;
            ASSERT_EQ(out1[i], sum.Component1(m)) << digit_count << " digits, fill " << fill;
          }
        }
      }
    }
  }
}

TEST_P(LimbKernelsTest, BasisConversionsEqualTheIntegerOnes) {
  std::vector<int> bits(64, 50);
  bits.insert(bits.end(), {61, 40, 30, 50});
  const HostTables ring(kMinVectorLogN, bits);
  const int64_t n = ring.n();
  for (int source_count : {1, 2, 3, 8, 60}) {
    std::vector<uint16_t> source(source_count);
    for (int i = 0; i < source_count; ++i) source[i] = static_cast<uint16_t>(i);
    const std::vector<uint16_t> target = {64, 65, 66, 67};
    ASSERT_OK_AND_ASSIGN(const ring::BasisConversion conversion,
                         ring::BasisConversion::Create(ring.basis(), source, target));
    Words block(conversion.image().bytes() / sizeof(uint64_t) + 1);
    conversion.image().WriteAt(block.data(), reinterpret_cast<uint8_t*>(block.data()));
    const ring::BasisConversionTables tables = conversion.TablesAt(block.data());
    for (int fill = 0; fill < 4; ++fill) {
      Words in, out(target.size() * n);
      for (uint16_t row : source) {
        const auto fills = Fills(ring.prime(row).q, n);
        in.insert(in.end(), fills[fill].begin(), fills[fill].end());
      }
      vectors_->convert_basis(ring.tables(), tables, in.data(), out.data());
      for (int64_t k = 0; k < n; ++k) {
        Words digits(source_count);
        double quotient = 0;
        for (int i = 0; i < source_count; ++i) {
          const auto m = ArithmeticTables<Integer>::Modulus(ring.prime(source[i]));
          digits[i] = ConversionDigit<Integer>(in[i * n + k], tables, i, m, quotient);
        }
        for (size_t j = 0; j < target.size(); ++j) {
          const auto m = ArithmeticTables<Integer>::Modulus(ring.prime(target[j]));
          ASSERT_EQ(out[j * n + k], ConversionTarget<Integer>([&](int i) { return digits[i]; },
                                                              ConversionOverflow(quotient), tables,
                                                              static_cast<int>(j), m))
              << source_count << " primes, target " << j << ", fill " << fill;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Processors, LimbKernelsTest, ::testing::Values("avx2", "avx512"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cipherd::kernels::host

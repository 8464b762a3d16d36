// Loops over one limb on doubles against those on integers, bit for bit: word by word, and on
// vectors of every kind of processor that this one can stand for.
#include "core/kernels/host/limb_kernels.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"
#include "core/math/mulhi.h"
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
    if (GetParam() == "fma") {
      tested_ = &ScalarLimbKernels<math::FmaArithmetic>();
      return;
    }
    hwy::DisableTargets(GetParam() == "avx2" ? HWY_AVX3 : 0);
    tested_ = FindVectorLimbKernels();
    if (tested_ == nullptr || tested_->name != GetParam()) {
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

  const LimbKernels* tested_ = nullptr;
  const LimbKernels& integer_ = ScalarLimbKernels<Integer>();
  std::mt19937_64 random_{1};
};

TEST_P(LimbKernelsTest, TransformsEqualTheIntegerOnes) {
  for (int log_n = kMinVectorLogN; log_n <= 16; ++log_n) {
    const HostTables ring(log_n, {50, 50, 40, 30});
    for (int row = 0; row < 4; ++row) {
      for (const Words& in : Fills(ring.prime(row).q, ring.n())) {
        Words expected(ring.n()), got(ring.n());
        integer_.forward_ntt(ring.prime(row), log_n, in.data(), expected.data());
        tested_->forward_ntt(ring.prime(row), log_n, in.data(), got.data());
        ASSERT_EQ(got, expected) << "forward, log N = " << log_n << ", row " << row;
        integer_.inverse_ntt(ring.prime(row), log_n, in.data(), expected.data());
        got = in;
        tested_->inverse_ntt(ring.prime(row), log_n, got.data(), got.data());
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
    const auto fills = Fills(q, n);
    for (const Words& a : fills) {
      for (const Words& b : fills) {
        // What a loop makes of a and b, starting with b in its output.
        const auto same = [&](const char* what, const auto& run) {
          Words got = b, expected = b;
          run(*tested_, got);
          run(integer_, expected);
          ASSERT_EQ(got, expected) << what << ", row " << row;
        };
        same("add", [&](const LimbKernels& kernels, Words& out) {
          kernels.add(prime, n, a.data(), b.data(), out.data());
        });
        same("subtract", [&](const LimbKernels& kernels, Words& out) {
          kernels.subtract(prime, n, a.data(), b.data(), out.data());
        });
        same("multiply", [&](const LimbKernels& kernels, Words& out) {
          kernels.multiply(prime, n, a.data(), b.data(), out.data());
        });
        same("negate", [&](const LimbKernels& kernels, Words& out) {
          kernels.negate(prime, n, out.data(), out.data());
        });
        same("multiply_add", [&](const LimbKernels& kernels, Words& out) {
          kernels.multiply_add(prime, n, a.data(), b.data(), out.data());
        });
        for (uint64_t scalar : {uint64_t{0}, uint64_t{1}, q / 2, q - 1}) {
          const auto shoup = static_cast<uint64_t>((math::uint128_t{scalar} << 64) / q);
          same("multiply_scalar", [&](const LimbKernels& kernels, Words& out) {
            kernels.multiply_scalar(prime, n, scalar, shoup, a.data(), out.data());
          });
          same("subtract_scale", [&](const LimbKernels& kernels, Words& out) {
            kernels.subtract_scale(prime, n, scalar, shoup, a.data(), b.data(), out.data());
          });
        }
        for (int component = 0; component < 3; ++component) {
          same("tensor_product", [&](const LimbKernels& kernels, Words& out) {
            Words other(n), another(n);
            uint64_t* to[3];
            to[component] = out.data();
            to[(component + 1) % 3] = other.data();
            to[(component + 2) % 3] = another.data();
            kernels.tensor_product(prime, n,
                                   {a.data(), b.data(), b.data(), a.data(), to[0], to[1], to[2]});
          });
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
                                         .digits = {},
                                         .key = {},
                                         .component_stride = n,
                                         .sources = permutes ? sources.data() : nullptr,
                                         .out0 = out0.data(),
                                         .out1 = out1.data()};
          for (int d = 0; d < digit_count; ++d) {
            operands.digits[d] = digits.data() + d * n;
            operands.key[d] = key.data() + d * 2 * n;
          }
          tested_->key_inner_product(prime, n, operands);
          Words expected0(n), expected1(n);
          operands.out0 = expected0.data();
          operands.out1 = expected1.data();
          integer_.key_inner_product(prime, n, operands);
          ASSERT_EQ(out0, expected0) << digit_count << " digits, fill " << fill;
          ASSERT_EQ(out1, expected1) << digit_count << " digits, fill " << fill;
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
    // One word at a time, doubles are for targets below 2^50 too.
    std::vector<uint16_t> target = {65, 66, 67};
    if (GetParam() != "fma") target.push_back(64);
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
      tested_->convert_basis(ring.tables(), tables, 0, n, in.data(), out.data());
      Words expected(out.size());
      integer_.convert_basis(ring.tables(), tables, 0, n, in.data(), expected.data());
      ASSERT_EQ(out, expected) << source_count << " primes, fill " << fill;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Processors, LimbKernelsTest, ::testing::Values("fma", "avx2", "avx512"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cipherd::kernels::host

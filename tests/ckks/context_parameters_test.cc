#include "core/ckks/context_parameters.h"

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/ckks/context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::ckks {
namespace {

using ::cipherd::testing::SmallParameters;
using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ring degree 16, primes 1 mod 32, two groups, digits that are not neighbours.
ContextParameters TinyParameters() {
  ContextParameters parameters;
  parameters.log_n = 4;
  parameters.q_primes = {193, 257, 353};
  parameters.p_primes = {577, 641};
  parameters.rescale_groups = {1, 1};
  parameters.digits = {{0, 2}, {1}};
  parameters.default_scale = 1024;
  return parameters;
}

// Computed by a separate program from the description of CanonicalBytes. A change needs a migration
// note.
TEST(ContextParametersTest, ContextIdIsGolden) {
  EXPECT_EQ(TinyParameters().CanonicalBytes().size(), 132u);
  EXPECT_EQ(TinyParameters().ContextId(),
            "17ae84675a2445fad65cff793f509dc74b97254cb4f070ac1ffe4eee8aa3b25e");
}

TEST(ContextParametersTest, ContextIdDependsOnEveryField) {
  std::set<std::string> ids = {TinyParameters().ContextId()};
  const std::vector<std::function<void(ContextParameters&)>> changes = {
      [](auto& p) { p.log_n = 5; },
      [](auto& p) { std::swap(p.q_primes[0], p.q_primes[1]); },
      [](auto& p) { std::swap(p.p_primes[0], p.p_primes[1]); },
      [](auto& p) { p.q_primes.push_back(p.p_primes[0]), p.p_primes.erase(p.p_primes.begin()); },
      [](auto& p) { p.rescale_groups = {2}; },
      [](auto& p) { p.rescale_groups = {1}; },
      [](auto& p) {
        p.digits = {{0}, {1, 2}};
      },
      [](auto& p) {
        p.digits = {{1}, {0, 2}};
      },
      [](auto& p) { p.galois_generator = 3; },
      [](auto& p) { p.default_scale = std::nextafter(1024.0, 2048.0); },
  };
  for (const auto& change : changes) {
    ContextParameters parameters = TinyParameters();
    change(parameters);
    ids.insert(parameters.ContextId());
  }
  EXPECT_EQ(ids.size(), changes.size() + 1);
}

TEST(ContextParametersTest, DepthsDropGroupsFromTheFront) {
  ContextParameters parameters = SmallParameters();
  parameters.rescale_groups = {2, 1};
  EXPECT_EQ(parameters.max_depth(), 2);
  EXPECT_THAT(parameters.ActivePrimeIds(0, false), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(parameters.ActivePrimeIds(1, false), ElementsAre(2, 3));
  EXPECT_THAT(parameters.ActivePrimeIds(2, true), ElementsAre(3, 4, 5));
  EXPECT_EQ(parameters.active_q_count(1), 2);
  EXPECT_EQ(parameters.RescaleDivisor(0), static_cast<double>(parameters.q_primes[0]) *
                                              static_cast<double>(parameters.q_primes[1]));
  EXPECT_EQ(parameters.RescaleDivisor(1), static_cast<double>(parameters.q_primes[2]));
}

struct Fault {
  std::string name;
  std::function<void(ContextParameters&)> change;
  std::string message;
};

TEST(ContextParametersTest, FaultsAreNamed) {
  const std::vector<Fault> faults = {
      {"log_n below", [](auto& p) { p.log_n = 3; }, "log_n: expected 4 to 17, got 3"},
      {"log_n above", [](auto& p) { p.log_n = 18; }, "log_n: expected 4 to 17, got 18"},
      {"no q", [](auto& p) { p.q_primes.clear(); }, "q_primes: expected at least 1, got 0"},
      {"no p", [](auto& p) { p.p_primes.clear(); }, "p_primes: expected at least 1, got 0"},
      {"composite", [](auto& p) { p.q_primes[1] = 33 * 97; }, "q_primes[1]: "},
      {"not 1 mod 2N", [](auto& p) { p.p_primes[1] = 643; }, "p_primes[1]: "},
      {"twice", [](auto& p) { p.p_primes[0] = 193; }, "p_primes[0]: expected distinct primes"},
      {"too many", [](auto& p) { p.q_primes.assign(63, 193); }, "at most 64 together, got 65"},
      {"empty group", [](auto& p) { p.rescale_groups[1] = 0; },
       "rescale_groups[1]: expected at least 1, got 0"},
      {"no base prime",
       [](auto& p) {
         p.rescale_groups = {1, 2};
       },
       "a sum below the number of q_primes (3), got 3"},
      {"no digits", [](auto& p) { p.digits.clear(); }, "digits: expected at least 1"},
      {"empty digit", [](auto& p) { p.digits.push_back({}); },
       "digits[2]: expected at least one prime id"},
      {"digit id",
       [](auto& p) {
         p.digits = {{0, 1, 2, 3}};
       },
       "digits[0][3]: expected a prime id of Q below 3, got 3"},
      {"digit order",
       [](auto& p) {
         p.digits[0] = {2, 0};
       },
       "digits[0][1]: expected ascending prime ids, got 0 after 2"},
      {"digits overlap",
       [](auto& p) {
         p.digits = {{0, 2}, {1, 2}};
       },
       "digits[1][1]: prime id 2 is in digit 0 already"},
      {"digits miss one",
       [](auto& p) {
         p.digits = {{0}, {1}};
       },
       "digits: prime id 2 is in none"},
      {"digit too large",
       [](auto& p) {
         p.digits = {{0, 1, 2}};
       },
       "digits[0]: expected a product below that of p_primes"},
      {"generator", [](auto& p) { p.galois_generator = 7; }, "galois_generator: "},
      {"scale", [](auto& p) { p.default_scale = 1; },
       "default_scale: expected a finite number above 1"},
      {"infinite scale", [](auto& p) { p.default_scale = std::numeric_limits<double>::infinity(); },
       "default_scale: "},
      {"NaN scale", [](auto& p) { p.default_scale = std::nan(""); }, "default_scale: "},
  };
  EXPECT_OK(TinyParameters().Validate(SecurityPolicy::kAllowInsecure));
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    ContextParameters parameters = TinyParameters();
    fault.change(parameters);
    EXPECT_THAT(parameters.Validate(SecurityPolicy::kAllowInsecure),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(fault.message)));
    EXPECT_THAT(Context::Create(parameters, SecurityPolicy::kAllowInsecure),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

// eprint 2024/463, table 5.2: one context just within each bound, one just above it.
TEST(ContextParametersTest, SecurityBoundHoldsForEveryDegree) {
  const std::vector<std::pair<int, int>> bounds = {{12, 106}, {13, 214},  {14, 430},
                                                   {15, 868}, {16, 1747}, {17, 3523}};
  for (const auto& [log_n, most] : bounds) {
    SCOPED_TRACE(log_n);
    EXPECT_EQ(MaxSecureLogQp(log_n), most);
    ContextRequest request;
    request.log_n = log_n;
    // A base prime and P primes of equal size, as many as fit: log2(QP) is a little below their
    // sum.
    request.base_prime_bits = request.p_prime_bits = most / (most / 61 + 2);
    request.p_prime_count = most / request.p_prime_bits - 1;
    ASSERT_OK_AND_ASSIGN(const ContextParameters within,
                         MakeContextParameters(request, SecurityPolicy::k128BitClassical));
    EXPECT_LE(within.log_qp(), most);
    request.p_prime_count += 1;
    EXPECT_THAT(MakeContextParameters(request, SecurityPolicy::k128BitClassical),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("log2(QP): expected at most ", most))));
    EXPECT_OK(MakeContextParameters(request, SecurityPolicy::kAllowInsecure));
  }
  EXPECT_EQ(MaxSecureLogQp(11), 0);
  EXPECT_THAT(TinyParameters().Validate(SecurityPolicy::k128BitClassical),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at log_n 4")));
}

TEST(ContextParametersTest, RequestsChooseDistinctPrimesAndConsecutiveDigits) {
  ContextRequest request;
  request.log_n = 14;
  request.base_prime_bits = 60;
  request.depth_prime_bits = 60;
  request.max_depth = 3;
  request.p_prime_bits = 60;
  request.p_prime_count = 2;
  request.digit_count = 2;
  ASSERT_OK_AND_ASSIGN(const ContextParameters parameters,
                       MakeContextParameters(request, SecurityPolicy::k128BitClassical));
  EXPECT_THAT(parameters.digits, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(parameters.rescale_groups, ElementsAre(1, 1, 1));
  EXPECT_EQ(parameters.default_scale, std::ldexp(1.0, 60));
  std::set<uint64_t> primes(parameters.q_primes.begin(), parameters.q_primes.end());
  primes.insert(parameters.p_primes.begin(), parameters.p_primes.end());
  EXPECT_EQ(primes.size(), 6u);
  // Deterministic.
  EXPECT_EQ(*MakeContextParameters(request, SecurityPolicy::k128BitClassical), parameters);

  request.digit_count = 5;
  EXPECT_THAT(
      MakeContextParameters(request, SecurityPolicy::k128BitClassical),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("digit_count: expected 1 to 4")));
}

TEST(ContextParametersTest, FmaRequestsAreSecureWithEveryPrimeBelowTwoToTheFifty) {
  for (int log_n = 13; log_n <= 16; ++log_n) {
    SCOPED_TRACE(log_n);
    ASSERT_OK_AND_ASSIGN(const ContextRequest request, FmaContextRequest(log_n));
    ASSERT_OK_AND_ASSIGN(const ContextParameters parameters,
                         MakeContextParameters(request, SecurityPolicy::k128BitClassical));
    EXPECT_EQ(parameters.log_n, log_n);
    EXPECT_GE(parameters.max_depth(), 2);
    for (const auto* primes : {&parameters.q_primes, &parameters.p_primes}) {
      for (uint64_t q : *primes) EXPECT_LT(q, uint64_t{1} << 50);
    }
  }
  for (int log_n : {12, 17}) {
    EXPECT_THAT(FmaContextRequest(log_n),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected 13 to 16")));
  }
}

TEST(ContextParametersTest, RotationElementsArePowersOfTheGenerator) {
  const ContextParameters parameters = SmallParameters();
  EXPECT_EQ(parameters.RotationElement(0), 1u);
  EXPECT_EQ(parameters.RotationElement(2), 25u);
  EXPECT_EQ(parameters.RotationElement(parameters.slot_count() + 2), 25u);
  EXPECT_EQ(5 * parameters.RotationElement(-1) % (2 * parameters.ring_degree()), 1u);
  EXPECT_EQ(parameters.ConjugationElement(), 2 * parameters.ring_degree() - 1);
}

}  // namespace
}  // namespace cipherd::ckks

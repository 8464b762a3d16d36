// MakeContextParameters: choosing the primes of a generated context.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/context_parameters.h"
#include "core/ring/primes.h"

namespace cipherd::ckks {
namespace {

// `count` primes of `bits` bits, none of them in `taken`, which they join.
absl::StatusOr<std::vector<uint64_t>> TakePrimes(int log_n, int bits, int count,
                                                 ring::PrimePlacement placement,
                                                 std::vector<uint64_t>& taken) {
  const std::vector<int> sizes(count + taken.size(), bits);
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<uint64_t> candidates,
                           ring::GeneratePrimes(log_n, sizes, placement));
  std::vector<uint64_t> primes;
  for (uint64_t q : candidates) {
    if (static_cast<int>(primes.size()) == count) break;
    if (std::find(taken.begin(), taken.end(), q) == taken.end()) primes.push_back(q);
  }
  taken.insert(taken.end(), primes.begin(), primes.end());
  return primes;
}

}  // namespace

absl::StatusOr<ContextRequest> FmaContextRequest(int log_n) {
  struct Row {
    int depth_prime_bits;
    int max_depth;
    int p_prime_count;
    int digit_count;
  };
  constexpr int kFirstLogN = 13;
  constexpr Row kRows[] = {
      {45, 2, 1, 3},   // 2^13: log Q 139, log QP 188; each prime a digit
      {47, 6, 2, 4},   // 2^14: log Q 331, log QP 429; digits of two primes
      {45, 13, 4, 4},  // 2^15: log Q 634, log QP 830; digits of four primes
      {45, 23, 8, 3},  // 2^16: log Q 1084, log QP 1476; digits of eight primes
  };
  if (log_n < kFirstLogN || log_n >= kFirstLogN + static_cast<int>(std::size(kRows))) {
    return absl::InvalidArgumentError(absl::StrCat("log_n: expected 13 to 16, got ", log_n));
  }
  const Row& row = kRows[log_n - kFirstLogN];
  return ContextRequest{.log_n = log_n,
                        .base_prime_bits = 49,
                        .depth_prime_bits = row.depth_prime_bits,
                        .max_depth = row.max_depth,
                        .p_prime_bits = 49,
                        .p_prime_count = row.p_prime_count,
                        .digit_count = row.digit_count};
}

absl::StatusOr<ContextParameters> MakeContextParameters(const ContextRequest& request,
                                                        SecurityPolicy policy) {
  if (request.max_depth < 0 || request.p_prime_count < 1 || request.max_depth > 62 ||
      request.p_prime_count > 63) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_depth and p_prime_count: expected 0 to 62 and 1 to 63, got ",
                     request.max_depth, " and ", request.p_prime_count));
  }
  if (request.digit_count < 1 || request.digit_count > request.max_depth + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("digit_count: expected 1 to ", request.max_depth + 1,
                     " (the number of Q primes), got ", request.digit_count));
  }
  ContextParameters parameters;
  parameters.log_n = request.log_n;
  parameters.default_scale = request.default_scale != 0 ? request.default_scale
                                                        : std::ldexp(1.0, request.depth_prime_bits);

  // P first: of equal sizes it gets the largest primes, so that a digit of as many primes of Q as P
  // has stays below P's product.
  std::vector<uint64_t> taken;
  CIPHERD_ASSIGN_OR_RETURN(parameters.p_primes,
                           TakePrimes(request.log_n, request.p_prime_bits, request.p_prime_count,
                                      ring::PrimePlacement::kBelow, taken));
  CIPHERD_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> base,
      TakePrimes(request.log_n, request.base_prime_bits, 1, ring::PrimePlacement::kBelow, taken));
  CIPHERD_ASSIGN_OR_RETURN(parameters.q_primes,
                           TakePrimes(request.log_n, request.depth_prime_bits, request.max_depth,
                                      ring::PrimePlacement::kAround, taken));
  parameters.q_primes.push_back(base[0]);
  parameters.rescale_groups.assign(request.max_depth, 1);

  // Sizes of consecutive digits differ by at most one; the larger ones come first, away from the
  // base prime, which is the largest.
  const int q_count = parameters.q_count();
  int id = 0;
  for (int d = 0; d < request.digit_count; ++d) {
    const int size = q_count / request.digit_count + (d < q_count % request.digit_count ? 1 : 0);
    std::vector<int32_t>& digit = parameters.digits.emplace_back();
    for (int i = 0; i < size; ++i) digit.push_back(id++);
  }
  CIPHERD_RETURN_IF_ERROR(parameters.Validate(policy));
  return parameters;
}

}  // namespace cipherd::ckks

#include "core/ckks/context_parameters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/refusal.h"
#include "core/base/sha256.h"
#include "core/ring/galois.h"
#include "core/ring/primes.h"

namespace cipherd::ckks {
namespace {

constexpr int kMaxPrimes = 64;

using base::Refuse;

absl::Status ValidatePrimes(const char* name, const std::vector<uint64_t>& primes, int log_n,
                            std::set<uint64_t>& seen) {
  for (size_t i = 0; i < primes.size(); ++i) {
    const std::string field = absl::StrCat(name, "[", i, "]");
    if (absl::Status status = base::At(field, ring::ValidatePrime(primes[i], log_n));
        !status.ok()) {
      return status;
    }
    if (!seen.insert(primes[i]).second) {
      return Refuse(field, ": expected distinct primes, got ", primes[i], " twice");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateDigits(const ContextParameters& parameters) {
  if (parameters.digits.empty()) return Refuse("digits: expected at least 1, got 0");
  std::vector<int> digit_of(parameters.q_primes.size(), -1);
  // Sums of logarithms: products of distinct primes that are equal to within 2^-50 would need
  // primes which agree in as many bits.
  long double log_p = 0;
  for (uint64_t p : parameters.p_primes) log_p += std::log2(static_cast<long double>(p));
  for (size_t d = 0; d < parameters.digits.size(); ++d) {
    const std::vector<int32_t>& ids = parameters.digits[d];
    if (ids.empty()) return Refuse("digits[", d, "]: expected at least one prime id, got none");
    long double log_digit = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= parameters.q_count()) {
        return Refuse("digits[", d, "][", i, "]: expected a prime id of Q below ",
                      parameters.q_count(), ", got ", ids[i]);
      }
      if (i > 0 && ids[i] <= ids[i - 1]) {
        return Refuse("digits[", d, "][", i, "]: expected ascending prime ids, got ", ids[i],
                      " after ", ids[i - 1]);
      }
      if (digit_of[ids[i]] >= 0) {
        return Refuse("digits[", d, "][", i, "]: prime id ", ids[i], " is in digit ",
                      digit_of[ids[i]], " already");
      }
      digit_of[ids[i]] = static_cast<int>(d);
      log_digit += std::log2(static_cast<long double>(parameters.q_primes[ids[i]]));
    }
    if (log_digit >= log_p) {
      return Refuse("digits[", d, "]: expected a product below that of p_primes (2^",
                    static_cast<double>(log_p), "), got 2^", static_cast<double>(log_digit),
                    "; use smaller digits or more p_primes");
    }
  }
  for (size_t i = 0; i < digit_of.size(); ++i) {
    if (digit_of[i] < 0) return Refuse("digits: prime id ", i, " is in none");
  }
  return absl::OkStatus();
}

// Little-endian writer of CanonicalBytes.
class ByteWriter {
 public:
  void Text(std::string_view text) {
    U32(static_cast<uint32_t>(text.size()));
    for (char c : text) bytes_.push_back(static_cast<uint8_t>(c));
  }
  void U32(uint32_t word) { Little(word, 4); }
  void U64(uint64_t word) { Little(word, 8); }
  std::vector<uint8_t> Take() { return std::move(bytes_); }

 private:
  void Little(uint64_t word, int count) {
    for (int i = 0; i < count; ++i) bytes_.push_back(static_cast<uint8_t>(word >> (8 * i)));
  }
  std::vector<uint8_t> bytes_;
};

}  // namespace

int ContextParameters::dropped_count(int depth) const {
  int count = 0;
  for (int i = 0; i < depth; ++i) count += rescale_groups[i];
  return count;
}

std::vector<int64_t> ContextParameters::ActivePrimeIds(int depth, bool with_p) const {
  std::vector<int64_t> ids;
  const int end = with_p ? q_count() + p_count() : q_count();
  for (int id = dropped_count(depth); id < end; ++id) ids.push_back(id);
  return ids;
}

double ContextParameters::RescaleDivisor(int depth) const {
  double product = 1;
  for (int i = dropped_count(depth); i < dropped_count(depth + 1); ++i) {
    product *= static_cast<double>(q_primes[i]);
  }
  return product;
}

uint32_t ContextParameters::RotationElement(int64_t step) const {
  return ring::RotationElement(step, galois_generator, log_n);
}

double ContextParameters::log_q(int depth) const {
  double log = 0;
  for (int id = dropped_count(depth); id < q_count(); ++id) {
    log += std::log2(static_cast<double>(q_primes[id]));
  }
  return log;
}

double ContextParameters::log_qp() const {
  double log = log_q(0);
  for (uint64_t p : p_primes) log += std::log2(static_cast<double>(p));
  return log;
}

absl::Status ContextParameters::Validate(SecurityPolicy policy) const {
  if (log_n < ring::kMinLogN || log_n > ring::kMaxLogN) {
    return Refuse("log_n: expected ", ring::kMinLogN, " to ", ring::kMaxLogN, ", got ", log_n);
  }
  if (q_primes.empty()) return Refuse("q_primes: expected at least 1, got 0");
  if (p_primes.empty()) return Refuse("p_primes: expected at least 1, got 0");
  if (q_primes.size() + p_primes.size() > kMaxPrimes) {
    return Refuse("q_primes and p_primes: expected at most ", kMaxPrimes, " together, got ",
                  q_primes.size() + p_primes.size());
  }
  std::set<uint64_t> seen;
  if (absl::Status s = ValidatePrimes("q_primes", q_primes, log_n, seen); !s.ok()) return s;
  if (absl::Status s = ValidatePrimes("p_primes", p_primes, log_n, seen); !s.ok()) return s;

  int64_t dropped = 0;
  for (size_t i = 0; i < rescale_groups.size(); ++i) {
    if (rescale_groups[i] < 1) {
      return Refuse("rescale_groups[", i, "]: expected at least 1, got ", rescale_groups[i]);
    }
    dropped += rescale_groups[i];
  }
  if (dropped >= q_count()) {
    return Refuse("rescale_groups: expected a sum below the number of q_primes (", q_count(),
                  "), got ", dropped);
  }
  if (absl::Status s = ValidateDigits(*this); !s.ok()) return s;
  if (absl::Status s =
          base::At("galois_generator", ring::ValidateGenerator(galois_generator, log_n));
      !s.ok()) {
    return s;
  }
  if (!std::isfinite(default_scale) || default_scale <= 1) {
    return Refuse("default_scale: expected a finite number above 1, got ", default_scale);
  }
  if (secret_distribution != SecretDistribution::kUniformTernary) {
    return Refuse("secret_distribution: expected uniform ternary (0), got ",
                  static_cast<int>(secret_distribution));
  }
  if (policy == SecurityPolicy::k128BitClassical && log_qp() > MaxSecureLogQp(log_n)) {
    return Refuse("log2(QP): expected at most ", MaxSecureLogQp(log_n),
                  " for 128-bit security at log_n ", log_n, ", got ", log_qp());
  }
  return absl::OkStatus();
}

std::vector<uint8_t> ContextParameters::CanonicalBytes() const {
  ByteWriter writer;
  writer.Text("cipherd.ckks.context");
  writer.U32(1);
  writer.U32(static_cast<uint32_t>(log_n));
  writer.U32(static_cast<uint32_t>(q_primes.size()));
  for (uint64_t q : q_primes) writer.U64(q);
  writer.U32(static_cast<uint32_t>(p_primes.size()));
  for (uint64_t p : p_primes) writer.U64(p);
  writer.U32(static_cast<uint32_t>(rescale_groups.size()));
  for (int32_t size : rescale_groups) writer.U32(static_cast<uint32_t>(size));
  writer.U32(static_cast<uint32_t>(digits.size()));
  for (const std::vector<int32_t>& digit : digits) {
    writer.U32(static_cast<uint32_t>(digit.size()));
    for (int32_t id : digit) writer.U32(static_cast<uint32_t>(id));
  }
  writer.U32(galois_generator);
  writer.U64(std::bit_cast<uint64_t>(default_scale));
  writer.U32(static_cast<uint32_t>(secret_distribution));
  return writer.Take();
}

std::string ContextParameters::ContextId() const {
  return base::ToHex(base::Sha256Of(CanonicalBytes()));
}

int MaxSecureLogQp(int log_n) {
  switch (log_n) {
    case 12:
      return 106;
    case 13:
      return 214;
    case 14:
      return 430;
    case 15:
      return 868;
    case 16:
      return 1747;
    case 17:
      return 3523;
    default:
      return 0;
  }
}

}  // namespace cipherd::ckks

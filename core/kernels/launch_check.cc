#include "core/kernels/launch_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/ring/primes.h"

namespace cipherd::kernels {
namespace {

constexpr int64_t kWordBytes = sizeof(uint64_t);
// Keeps byte counts far inside 64 bits.
constexpr int64_t kMaxOuterStride = int64_t{1} << 40;

}  // namespace

bool LaunchCheck::Extent::operator==(const Extent& other) const {
  return address == other.address && outer_count == other.outer_count &&
         piece_bytes == other.piece_bytes &&
         (outer_count == 1 || stride_bytes == other.stride_bytes);
}

LaunchCheck::LaunchCheck(const char* op, const ring::RingTables& ring, Arithmetic arithmetic)
    : op_(op), log_n_(ring.log_n), prime_count_(ring.prime_count) {
  RequireRange("ring.log_n", ring::kMinLogN, ring::kMaxLogN, ring.log_n);
  RequireRange("ring.prime_count", 1, 1 << 16, ring.prime_count);
  Require(arithmetic != Arithmetic::kFma || ring.all_fma, "ring.all_fma",
          "1 (primes below 2^50) for arithmetic on doubles", ring.all_fma);
  if (status_.ok()) {
    Read("ring.primes", ring.primes, prime_count_ * int64_t{sizeof(ring::PrimeConstants)});
  }
}

void LaunchCheck::Limbs(const LimbPrimes& limbs) {
  RequireRange("limbs.count", 1, kMaxLimbs, limbs.count);
  for (int l = 0; status_.ok() && l < limbs.count; ++l) {
    RequireRange("limbs.prime", 0, prime_count_ - 1, limbs.prime[l]);
  }
}

void LaunchCheck::Output(const char* name, const PolyView& view, int limb_count) {
  output_ = CheckView(name, view, limb_count);
  if (status_.ok()) AddAccess(output_.address, output_.bytes(), /*is_write=*/true);
}

void LaunchCheck::Input(const char* name, const ConstPolyView& view, int limb_count,
                        int64_t outer_count, Overlap overlap) {
  WholeInput(name, view, limb_count, view.outer_count == 1 ? 1 : outer_count, overlap);
}

void LaunchCheck::WholeInput(const char* name, const ConstPolyView& view, int limb_count,
                             int64_t outer_count, Overlap overlap) {
  const Extent input = CheckView(name, view, limb_count);
  if (view.outer_count != outer_count) {
    Require(false, name, absl::StrCat(outer_count, " polynomials"), view.outer_count);
  }
  if (!status_.ok()) return;
  if (!Disjoint(input, output_) && !(overlap == Overlap::kInPlace && input == output_)) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat(op_, ": ", name, ": overlaps ", output_.name,
                     overlap == Overlap::kInPlace ? " without being the same polynomials" : ""));
    return;
  }
  AddAccess(input.address, input.bytes(), /*is_write=*/false);
}

void LaunchCheck::Scratch(const char* name, const PolyView& view, int limb_count,
                          int64_t outer_count) {
  const Extent scratch = CheckView(name, view, limb_count);
  Require(view.outer_count == outer_count, name, absl::StrCat(outer_count, " polynomials"),
          view.outer_count);
  if (!status_.ok()) return;
  if (!Disjoint(scratch, output_)) {
    status_ =
        absl::InvalidArgumentError(absl::StrCat(op_, ": ", name, ": overlaps ", output_.name));
    return;
  }
  AddAccess(scratch.address, scratch.bytes(), /*is_write=*/true);
}

void LaunchCheck::Read(const char* name, const void* address, int64_t bytes) {
  const auto value = reinterpret_cast<uintptr_t>(address);
  Require(value != 0, name, "an address", 0);
  Require(value % kWordBytes == 0, name, "an address aligned to 8 bytes, remainder 0",
          static_cast<int64_t>(value % kWordBytes));
  if (status_.ok()) AddAccess(value, bytes, /*is_write=*/false);
}

void LaunchCheck::Require(bool condition, const char* name, std::string_view expected,
                          int64_t actual) {
  if (!status_.ok() || condition) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat(op_, ": ", name, ": expected ", std::string(expected), ", got ", actual));
}

void LaunchCheck::RequireRange(const char* name, int64_t minimum, int64_t maximum, int64_t actual) {
  if (!status_.ok() || (actual >= minimum && actual <= maximum)) return;
  Require(false, name, absl::StrCat(minimum, " to ", maximum), actual);
}

void LaunchCheck::GaloisElement(uint32_t element) {
  RequireRange("galois_element", 1, (int64_t{2} << log_n_) - 1, element);
  Require(element % 2 == 1, "galois_element", "an odd number", element);
}

absl::Status LaunchCheck::Finish(runtime::Stream& stream) {
  if (!status_.ok()) return status_;
  return stream.DeclareAccess(std::span(accesses_.data(), access_count_));
}

LaunchCheck::Extent LaunchCheck::CheckView(const char* name, const ConstPolyView& view,
                                           int limb_count) {
  if (!status_.ok()) return {};
  const auto address = reinterpret_cast<uintptr_t>(view.data);
  const int64_t piece_bytes = (int64_t{limb_count} << log_n_) * kWordBytes;
  Require(address != 0, name, "an address", 0);
  Require(address % kWordBytes == 0, name, "an address aligned to 8 bytes, remainder 0",
          static_cast<int64_t>(address % kWordBytes));
  if (view.outer_count < 1 || view.outer_count > kMaxOuterCount) {
    Require(false, name, absl::StrCat("1 to ", kMaxOuterCount, " polynomials"), view.outer_count);
  }
  if (view.outer_count > 1 &&
      (view.outer_stride < piece_bytes / kWordBytes || view.outer_stride > kMaxOuterStride)) {
    Require(false, name,
            absl::StrCat("an outer_stride of ", piece_bytes / kWordBytes, " to ", kMaxOuterStride,
                         " words"),
            view.outer_stride);
  }
  // What was refused need not fit the arithmetic.
  if (!status_.ok()) return {};
  return {name, address, view.outer_count,
          view.outer_count > 1 ? view.outer_stride * kWordBytes : 0, piece_bytes};
}

bool LaunchCheck::Disjoint(const Extent& a, const Extent& b) {
  if (a.address + a.bytes() <= b.address || b.address + b.bytes() <= a.address) return true;
  // They may still interleave: pieces of b that lie in the gaps of a's stride.
  if (a.outer_count > 1 && b.outer_count > 1 && a.stride_bytes != b.stride_bytes) return false;
  const int64_t stride = a.outer_count > 1 ? a.stride_bytes : b.stride_bytes;
  if (stride == 0) return false;
  int64_t offset = static_cast<int64_t>(b.address - a.address) % stride;
  if (offset < 0) offset += stride;
  return offset >= a.piece_bytes && offset + b.piece_bytes <= stride;
}

void LaunchCheck::AddAccess(uintptr_t address, int64_t bytes, bool is_write) {
  accesses_[access_count_++] = {reinterpret_cast<const void*>(address), static_cast<size_t>(bytes),
                                is_write};
}

}  // namespace cipherd::kernels

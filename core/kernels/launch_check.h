// The checks that every launch passes before it reaches a device, and what it tells a capture.
//
//   LaunchCheck check("binary", ring, Arithmetic::kInteger);
//   check.Limbs(limbs);
//   check.Output("out", out, limbs.count);
//   check.Input("a", a, limbs.count, out.outer_count, Overlap::kInPlace);
//   CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
//
// Keeps the first fault; later calls then do nothing. Messages read
// `binary: a.outer_count: expected 1 or 4, got 3`. Nothing that an address points to is read: it
// may be memory of a device. Used by one thread, for one launch.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "core/kernels/kernel_table.h"
#include "core/ring/ring_tables.h"
#include "core/runtime/stream.h"

namespace cipherd::kernels {

// Polynomials of one operand: the range of a launch grid's third dimension.
inline constexpr int64_t kMaxOuterCount = 65535;

// How an input may lie to the output of the launch.
enum class Overlap : uint8_t {
  kDisjoint,
  kInPlace,  // disjoint, or exactly the output: same address, polynomials and stride
};

class LaunchCheck {
 public:
  // `op` is a literal, as all names below are.
  LaunchCheck(const char* op, const ring::RingTables& ring, Arithmetic arithmetic);

  // 1 to kMaxLimbs limbs, each of a prime that the ring has.
  void Limbs(const LimbPrimes& limbs);

  // The operand that the launch writes: at least one polynomial of `limb_count` limbs. Comes before
  // inputs.
  void Output(const char* name, const PolyView& view, int limb_count);
  // An operand of `outer_count` polynomials, or of one which is broadcast over them.
  void Input(const char* name, const ConstPolyView& view, int limb_count, int64_t outer_count,
             Overlap overlap);
  // An operand of exactly `outer_count` polynomials.
  void WholeInput(const char* name, const ConstPolyView& view, int limb_count, int64_t outer_count,
                  Overlap overlap);
  // Memory of `outer_count` polynomials that the launch writes before it reads it, apart from the
  // output.
  void Scratch(const char* name, const PolyView& view, int limb_count, int64_t outer_count);
  // Other memory that the launch reads.
  void Read(const char* name, const void* address, int64_t bytes);

  void Require(bool condition, const char* name, std::string_view expected, int64_t actual);
  void RequireRange(const char* name, int64_t minimum, int64_t maximum, int64_t actual);
  // Odd, in [1, 2N).
  void GaloisElement(uint32_t element);

  // Returns the first fault, or declares all memory that was named to `stream`.
  absl::Status Finish(runtime::Stream& stream);

 private:
  // One operand: outer_count pieces of piece_bytes, stride_bytes apart.
  struct Extent {
    const char* name = nullptr;
    uintptr_t address = 0;
    int64_t outer_count = 0;
    int64_t stride_bytes = 0;
    int64_t piece_bytes = 0;

    int64_t bytes() const { return (outer_count - 1) * stride_bytes + piece_bytes; }
    bool operator==(const Extent& other) const;
  };

  Extent CheckView(const char* name, const ConstPolyView& view, int limb_count);
  static bool Disjoint(const Extent& a, const Extent& b);
  void AddAccess(uintptr_t address, int64_t bytes, bool is_write);

  // Those of rotation_sums are the most.
  static constexpr int kMaxAccesses = kMaxSumRotations * (kMaxRotationSums + 1) + 16;

  const char* op_;
  int log_n_;
  int prime_count_;
  absl::Status status_;
  Extent output_;
  int access_count_ = 0;
  std::array<runtime::MemoryAccess, kMaxAccesses> accesses_;
};

}  // namespace cipherd::kernels

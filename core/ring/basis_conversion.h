// Constants of a fast basis conversion between primes of one basis: owner of what
// BasisConversionTables (ring_tables.h) points to.
//
//   CIPHERD_ASSIGN_OR_RETURN(BasisConversion mod_up, BasisConversion::Create(basis, digit_rows,
//   other_rows)); mod_up.image().WriteAt(block->data(), staging);    // then copy image().bytes()
//   to the device, and mod_up.TablesAt(block->data());                    // these are the tables
//   for its kernels
//
// Move-only, immutable, thread-safe. It does not refer to the basis after it was made.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "core/ring/relocatable_image.h"
#include "core/ring/ring_tables.h"
#include "core/ring/rns_basis.h"

namespace cipherd::ring {

class BasisConversion {
 public:
  // Primes on either side. So many products of residues fit a sum of 128 bits.
  static constexpr size_t kMaxPrimesPerSide = 64;

  // `source` and `target` are rows of `basis`. InvalidArgument, naming the side and the entry,
  // where one has no row or more than kMaxPrimesPerSide, or a row that the basis lacks or that
  // comes twice. A row may be on both sides.
  static absl::StatusOr<BasisConversion> Create(const RnsBasis& basis,
                                                std::span<const uint16_t> source,
                                                std::span<const uint16_t> target);

  const RelocatableImage& image() const { return image_; }
  // Tables in host memory.
  BasisConversionTables tables() const { return TablesAt(image_.data()); }
  // Tables of the image that was placed at `base`.
  BasisConversionTables TablesAt(const void* base) const;

 private:
  struct Offsets;
  BasisConversion(const RnsBasis& basis, std::span<const uint16_t> source,
                  std::span<const uint16_t> target);

  int source_count_;
  int target_count_;
  RelocatableImage image_;
};

}  // namespace cipherd::ring

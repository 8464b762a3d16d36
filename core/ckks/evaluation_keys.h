// Which evaluation keys an evaluation needs, and where a launch finds them.
//
// A captured graph bakes addresses, yet tenants differ in their keys only. So launches read each
// key through a slot of a small table in device memory, one address per key in the order of a
// KeyLayout; binding another key set overwrites the table (a few hundred bytes), and no key moves.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/value/exact_value.h"
#include "core/value/tensor.h"

namespace cipherd::ckks {

// Names one evaluation key of a key set.
struct KeyId {
  value::ValueType type =
      value::ValueType::kRelinearizationKey;  // or kRotationKey, kConjugationKey
  int64_t rotation_step =
      0;  // in [1, S) for a rotation key: slot j receives slot (j + step) mod S; else 0

  static KeyId Relinearization() { return {}; }
  static KeyId Conjugation() { return {value::ValueType::kConjugationKey, 0}; }
  // `step` of any sign, taken modulo `slot_count`.
  static KeyId Rotation(int64_t step, int64_t slot_count);

  auto operator<=>(const KeyId&) const = default;
  // "relinearization", "rotation(64)", "conjugation".
  std::string ToString() const;
};
inline std::ostream& operator<<(std::ostream& out, const KeyId& id) { return out << id.ToString(); }

// The keys of an evaluation in a fixed order: sorted, without duplicates. Slot i holds the key
// ids()[i].
class KeyLayout {
 public:
  KeyLayout() = default;
  explicit KeyLayout(std::vector<KeyId> ids);  // sorts, drops duplicates

  const std::vector<KeyId>& ids() const { return ids_; }
  int size() const { return static_cast<int>(ids_.size()); }
  // FailedPrecondition naming the key where the layout lacks it.
  absl::StatusOr<int> SlotOf(const KeyId& id) const;

 private:
  std::vector<KeyId> ids_;
};

// A key layout and the device table of addresses that belongs to it: uint64 [max(1, size)] on the
// device of the evaluator. The keys themselves ([digit, 2, limb, N], NTT domain, basis QP, standard
// residues, depth 0) are kept alive by the caller until the work that reads them is done.
struct KeyTable {
  KeyLayout layout;
  value::Tensor addresses;
};

}  // namespace cipherd::ckks

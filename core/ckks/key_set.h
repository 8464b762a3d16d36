// Evaluation keys of one owner: checking them, moving them to a device, binding them to a key
// table.
//
//   ASSIGN_OR_RETURN(EvaluationKey key, EvaluationKey::FromValue(value, "keys[0]", parameters,
//   id)); ASSIGN_OR_RETURN(EvaluationKey resident, UploadKey(key, stream)); KeySet keys;
//   keys.emplace(resident.id, resident); ASSIGN_OR_RETURN(KeyTable table, MakeKeyTable(layout,
//   keys, stream));
//
// A serving process keeps one table at a fixed address and overwrites it with KeyAddresses() of the
// key set whose turn it is, through a pinned buffer of its own. Tables do not own keys.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/context_parameters.h"
#include "core/ckks/evaluation_keys.h"
#include "core/runtime/stream.h"
#include "core/value/exact_value.h"
#include "core/value/tensor.h"

namespace cipherd::ckks {

// A relinearization, rotation or conjugation key: for key digit d and component c ∈ {0: b, 1: a},
//   b_d = -a_d · s + e_d + P · F_d · s',  F_d = 1 modulo the primes of digit d, 0 modulo the others
//   of Q,
// where s' is s^2, s(X^g) of the rotation, or s(X^-1) (Han, Ki, "Better Bootstrapping for
// Approximate Homomorphic Encryption", eprint 2019/688, section 3). Invariant: data is contiguous
// uint64 [digit, 2, |Q| + |P|, N], NTT domain, standard residues.
struct EvaluationKey {
  KeyId id;
  value::Tensor data;

  // InvalidArgument naming the field (relative to `path`), expected and actual where `value` is not
  // a lawful key of the context. Residues are not looked at.
  static absl::StatusOr<EvaluationKey> FromValue(const value::ExactValue& value,
                                                 std::string_view path,
                                                 const ContextParameters& parameters,
                                                 std::string_view context_id);
  value::ExactValue ToValue(const ContextParameters& parameters, std::string_view context_id) const;
};

// Keys by id; tensors of one residency.
using KeySet = std::map<KeyId, EvaluationKey>;

// Bytes of the tensor of one key of a context.
int64_t EvaluationKeyBytes(const ContextParameters& parameters);

// Enqueues a copy of `key` into new memory of the stream's device. Does not synchronise; `key` must
// stay until the copy is done.
absl::StatusOr<EvaluationKey> UploadKey(const EvaluationKey& key, runtime::Stream& stream);

// Device addresses of the keys of `layout`, in its order: the words of its table (one zero where
// the layout is empty). FailedPrecondition naming the first key that `keys` lacks.
absl::StatusOr<std::vector<uint64_t>> KeyAddresses(const KeyLayout& layout, const KeySet& keys);

// Allocates a table on the stream's device, fills it with the addresses of `keys` (which are on
// that device) and waits for the copy.
absl::StatusOr<KeyTable> MakeKeyTable(const KeyLayout& layout, const KeySet& keys,
                                      runtime::Stream& stream);

}  // namespace cipherd::ckks

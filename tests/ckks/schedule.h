// One call of every operation of the evaluator, by name: for properties that all of them have.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/evaluation_keys.h"
#include "tests/ckks/ckks_fixture.h"

namespace cipherd::testing {

// The keys that RunEveryOperation needs.
std::vector<ckks::KeyId> ScheduleKeys(int64_t slot_count);

// Results by operation, of two ciphertexts (two components, NTT domain, depth 0, equal scales) and
// plaintexts of that depth and scale over Q and over QP.
absl::StatusOr<std::map<std::string, ckks::Ciphertext>> RunEveryOperation(
    Party& party, const ckks::Ciphertext& a, const ckks::Ciphertext& b, const ckks::Plaintext& p,
    const ckks::Plaintext& p_over_qp);

}  // namespace cipherd::testing

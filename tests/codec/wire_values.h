// Small lawful values of every type, their wire form, and what tests ask of refusals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/value.pb.h"
#include "core/ckks/context_parameters.h"
#include "core/ckks/evaluation_keys.h"
#include "core/value/exact_value.h"
#include "core/value/value_tree.h"
#include "gmock/gmock.h"
#include "proto/codec/error_detail.h"
#include "proto/codec/known_context.h"
#include "proto/codec/payload_source.h"
#include "proto/codec/tree_admission.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {

// N = 16; Q of four primes, of which three are dropped one by one; two P primes; two digits.
codec::KnownContextPtr SmallContext();
// The same but for another default scale.
codec::KnownContextPtr OtherContext();

// Contiguous host tensors. Residues depend on position and prime only, and reach from 0 to q - 1.
value::Tensor ResidueTensor(const std::vector<int64_t>& shape, const std::vector<uint64_t>& primes);
value::Tensor CountingTensor(value::DType dtype, const std::vector<int64_t>& shape);

value::ExactValue MakeCiphertext(const codec::KnownContext& context, int depth,
                                 int64_t components = 2, const std::vector<int64_t>& batch = {});
value::ExactValue MakePlaintext(const codec::KnownContext& context,
                                value::PlaintextRepresentation representation);
value::ExactValue MakePublicKey(const codec::KnownContext& context);
// An evaluation key; `salt` changes its payload.
value::ExactValue MakeKey(const codec::KnownContext& context, const ckks::KeyId& id,
                          uint64_t salt = 0);

// All bytes that are left of a payload.
std::string TakeAll(codec::PayloadSource payload);
// The bytes of a tree's tensors, in order.
std::string PayloadOf(const value::ValueTree& tree);

// The wire form of a value, which must be encodable.
v1::ExactValue Describe(const value::ExactValue& value);
v1::ValueTree Describe(const value::ValueTree& tree);

// Accepts every type of value, of SmallContext, and bare tensors.
codec::TreeExpectation AcceptEverything();

MATCHER_P3(IsRefusal, code, reason, path,
           "is a refusal with code " + absl::StatusCodeToString(code) + ", reason " +
               v1::ErrorReason_Name(reason) + " and path " + std::string(path)) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "whose status is " << std::string(status.ToString());
  const auto detail = codec::GetErrorDetail(status);
  if (!detail.has_value()) return false;
  *result_listener << ", reason " << v1::ErrorReason_Name(detail->reason()) << ", path "
                   << detail->path();
  return status.code() == code && detail->reason() == reason && detail->path() == path &&
         std::string(status.message()).rfind(std::string(path) + ": ", 0) == 0;
}

}  // namespace cipherd::testing

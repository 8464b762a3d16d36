// The bytes of the wire format, pinned. What is hashed here is stored by clients, named by ids and
// spoken by other libraries: a change of any constant below breaks them, and needs a migration note
// in CHANGELOG.md and a new version number (proto/WIRE_FORMAT.md, "Versions"). The constants come
// from derive_wire_hashes.py beside this file, which implements the format a second time.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/sha256.h"
#include "core/ckks/context_parameters.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/key_set.h"
#include "gtest/gtest.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/key_set_id.h"
#include "proto/codec/known_context.h"
#include "proto/codec/tree_encoder.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

constexpr size_t kContextBytes = 128;
constexpr char kContextId[] = "472c2eb7eaccb9dcf780bf41bb1efe1ff2869aa9c3748e23e875c16242de31e8";
constexpr char kDescriptionSha256[] =
    "331d9f6451992e80adab8fc9eee5ea6f29d7d6a6671bfb96aa0bd6995bf9ccd9";
constexpr char kPayloadSha256[] =
    "7593b66d638a66ff72bfbf25ab0145fe121281869e0a2303191162d8163be103";
constexpr char kKeySetId[] = "12a199495be47732cd67fb3f2acd8ccb0547cfda1711fc4d8290a569382960df";

std::string HashOf(const std::string& bytes) {
  base::Sha256 hash;
  hash.Update(bytes.data(), bytes.size());
  return base::ToHex(hash.Finish());
}

KnownContextPtr GoldenContext() {
  ckks::ContextParameters parameters;
  parameters.log_n = 4;
  parameters.q_primes = {97, 193, 257};
  parameters.p_primes = {353};
  parameters.rescale_groups = {1, 1};
  parameters.digits = {{0}, {1}, {2}};
  parameters.galois_generator = 5;
  parameters.default_scale = 16;
  return *KnownContext::Create(parameters, ckks::SecurityPolicy::kAllowInsecure);
}

// Residue i is function(i) modulo the prime of its limb.
value::Tensor Residues(std::vector<int64_t> shape, const std::vector<uint64_t>& primes,
                       const std::function<uint64_t(uint64_t)>& function) {
  value::Tensor tensor = *value::Tensor::AllocateHost(value::DType::kUint64, std::move(shape));
  for (uint64_t i = 0; i < static_cast<uint64_t>(tensor.element_count()); ++i) {
    tensor.data_as<uint64_t>()[i] = function(i) % primes[i / 16 % primes.size()];
  }
  return tensor;
}

value::ExactValue GoldenCiphertext() {
  const KnownContextPtr context = GoldenContext();
  value::ExactValue value;
  value.type = value::ValueType::kCiphertext;
  value.context_id = context->id();
  value.metadata.depth = 1;
  value.metadata.scale = 24.0;
  value.metadata.prime_ids = std::vector<int64_t>{1, 2};
  value.metadata.domain = value::PolynomialDomain::kNtt;
  value.metadata.basis = value::ModulusBasis::kQ;
  value.metadata.residue_representation = value::ResidueRepresentation::kStandard;
  value.tensors.emplace_back(
      "data", Residues({2, 2, 16}, {193, 257}, [](uint64_t i) { return i * i + 7 * i; }));
  return value;
}

TEST(WireGoldenTest, ContextBytesAndId) {
  EXPECT_EQ(GoldenContext()->parameters().CanonicalBytes().size(), kContextBytes);
  EXPECT_EQ(GoldenContext()->id(), kContextId) << "see the head of this file";
}

TEST(WireGoldenTest, CiphertextDescriptionAndPayload) {
  v1::ExactValue description;
  ASSERT_OK_AND_ASSIGN(PayloadSource payload,
                       EncodeValue(GoldenCiphertext(), "value", &description));
  std::string bytes;
  payload.AppendTo(payload.remaining_bytes(), &bytes);
  EXPECT_EQ(HashOf(description.SerializeAsString()), kDescriptionSha256)
      << "see the head of this file\n"
      << description.DebugString();
  EXPECT_EQ(HashOf(bytes), kPayloadSha256) << "see the head of this file";
}

TEST(WireGoldenTest, KeySetId) {
  const KnownContextPtr context = GoldenContext();
  const std::vector<ckks::KeyId> ids = {ckks::KeyId::Relinearization(), ckks::KeyId::Rotation(1, 8),
                                        ckks::KeyId::Conjugation()};
  KeySetIdBuilder builder(context->id_bytes());
  for (uint64_t k = 0; k < ids.size(); ++k) {
    const ckks::EvaluationKey key = {
        .id = ids[k], .data = Residues({3, 2, 4, 16}, context->primes(), [k](uint64_t i) {
                        return (3 + 2 * k) * i + 1 + k;
                      })};
    const value::ExactValue value = key.ToValue(context->parameters(), context->id());
    ASSERT_OK_AND_ASSIGN(const base::Sha256Digest digest, PayloadDigest(value, "key"));
    ASSERT_TRUE(builder.Add(ids[k], digest));
  }
  EXPECT_EQ(base::ToHex(builder.Finish()), kKeySetId) << "see the head of this file";
}

}  // namespace
}  // namespace cipherd::codec

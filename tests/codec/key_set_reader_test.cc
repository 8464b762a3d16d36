#include "proto/codec/key_set_reader.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/ckks/key_set.h"
#include "gtest/gtest.h"
#include "proto/codec/tree_encoder.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::MakeCiphertext;
using ::cipherd::testing::MakeKey;
using ::cipherd::testing::OtherContext;
using ::cipherd::testing::PayloadOf;
using ::cipherd::testing::SmallContext;
using ::cipherd::testing::StatusIs;
using ckks::KeyId;
using value::ExactValue;
using value::ValueTree;
using Messages = std::vector<v1::PutKeysRequest>;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_VALUE;
constexpr auto kProtocol = v1::ERROR_REASON_PROTOCOL;
constexpr auto kLimit = v1::ERROR_REASON_LIMIT_EXCEEDED;
constexpr uint64_t kKeyBytes = 2 * 2 * 6 * 16 * 8;

std::vector<ExactValue> ThreeKeys() {
  const KnownContext& context = *SmallContext();
  return {MakeKey(context, KeyId::Rotation(3, 8), 1), MakeKey(context, KeyId::Conjugation(), 2),
          MakeKey(context, KeyId::Relinearization(), 3)};
}

v1::KeySetHeader HeaderOf(size_t key_count) {
  v1::KeySetHeader header;
  header.set_context_id(SmallContext()->id_bytes());
  header.set_key_count(static_cast<uint32_t>(key_count));
  header.set_total_bytes(key_count * kKeyBytes);
  return header;
}

// What follows the header.
Messages MessagesOf(const std::vector<ExactValue>& keys, uint64_t chunk_bytes) {
  Messages messages;
  for (const ExactValue& key : keys) {
    absl::StatusOr<PayloadSource> payload =
        EncodeValue(key, "key", messages.emplace_back().mutable_key());
    EXPECT_OK(payload);
    while (payload->remaining_bytes() > 0) {
      payload->TakeInto(chunk_bytes, messages.emplace_back().mutable_chunk());
    }
  }
  return messages;
}

absl::StatusOr<KeySet> Receive(const v1::KeySetHeader& header, const Messages& messages) {
  const std::vector<KnownContextPtr> contexts = {OtherContext(), SmallContext()};
  CIPHERD_ASSIGN_OR_RETURN(KeySetReader reader,
                           KeySetReader::Create(header, contexts, WireLimits()));
  for (const v1::PutKeysRequest& message : messages) {
    CIPHERD_RETURN_IF_ERROR(reader.Read(message, PageableTensors()));
  }
  return std::move(reader).Finish();
}

absl::StatusOr<KeySet> Receive(const std::vector<ExactValue>& keys, uint64_t chunk_bytes = 1000) {
  return Receive(HeaderOf(keys.size()), MessagesOf(keys, chunk_bytes));
}

TEST(KeySetReaderTest, KeysComeBackSortedWithTheirPayload) {
  const std::vector<ExactValue> keys = ThreeKeys();
  ASSERT_OK_AND_ASSIGN(const KeySet set, Receive(keys));
  EXPECT_EQ(set.context_id, SmallContext()->id());
  EXPECT_EQ(set.payload_bytes, 3 * kKeyBytes);
  ASSERT_EQ(set.keys.size(), 3u);
  EXPECT_EQ(set.keys[0].id, KeyId::Relinearization());
  EXPECT_EQ(set.keys[1].id, KeyId::Rotation(3, 8));
  EXPECT_EQ(set.keys[2].id, KeyId::Conjugation());
  const size_t sent_at[] = {2, 0, 1};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(PayloadOf(ValueTree::Value(set.keys[i].value)),
              PayloadOf(ValueTree::Value(keys[sent_at[i]])));
    EXPECT_EQ(set.keys[i].value.metadata, keys[sent_at[i]].metadata);
    EXPECT_OK(ckks::EvaluationKey::FromValue(set.keys[i].value, "key", SmallContext()->parameters(),
                                             SmallContext()->id()));
  }
}

TEST(KeySetIdTest, DependsOnContentAloneNotOnOrderOrChunks) {
  std::vector<ExactValue> keys = ThreeKeys();
  ASSERT_OK_AND_ASSIGN(const KeySet first, Receive(keys));
  std::reverse(keys.begin(), keys.end());
  for (const uint64_t chunk_bytes : {1, 7, 1024, 4096}) {
    ASSERT_OK_AND_ASSIGN(const KeySet other, Receive(keys, chunk_bytes));
    EXPECT_EQ(other.id, first.id);
  }
  // What a client computes before it sends.
  KeySetIdBuilder builder(SmallContext()->id_bytes());
  for (const ExactValue& key : keys) {
    ASSERT_OK_AND_ASSIGN(const KeyId id, KeyIdOf(key, "key"));
    ASSERT_OK_AND_ASSIGN(const base::Sha256Digest digest, PayloadDigest(key, "key"));
    EXPECT_TRUE(builder.Add(id, digest));
    EXPECT_FALSE(builder.Add(id, digest));
  }
  EXPECT_EQ(base::ToHex(builder.Finish()), first.id);
}

TEST(KeySetIdTest, ChangesWithEveryPartOfTheContent) {
  const KnownContext& context = *SmallContext();
  const std::vector<ExactValue> keys = ThreeKeys();
  ASSERT_OK_AND_ASSIGN(const KeySet whole, Receive(keys));
  ASSERT_OK_AND_ASSIGN(const KeySet fewer, Receive({keys[0], keys[1]}));
  EXPECT_NE(fewer.id, whole.id);
  ASSERT_OK_AND_ASSIGN(const KeySet other_bits,
                       Receive({MakeKey(context, KeyId::Rotation(3, 8), 9), keys[1], keys[2]}));
  EXPECT_NE(other_bits.id, whole.id);
  ASSERT_OK_AND_ASSIGN(const KeySet other_step,
                       Receive({MakeKey(context, KeyId::Rotation(2, 8), 1), keys[1], keys[2]}));
  EXPECT_NE(other_step.id, whole.id);
  // The same bits as another kind of key, and under another context.
  const base::Sha256Digest digest = {};
  KeySetIdBuilder a(context.id_bytes());
  KeySetIdBuilder b(context.id_bytes());
  KeySetIdBuilder c(OtherContext()->id_bytes());
  a.Add(KeyId::Relinearization(), digest);
  b.Add(KeyId::Conjugation(), digest);
  c.Add(KeyId::Relinearization(), digest);
  EXPECT_NE(a.Finish(), b.Finish());
  EXPECT_NE(a.Finish(), c.Finish());
}

TEST(KeySetReaderTest, EachWrongHeaderIsNamed) {
  struct Case {
    const char* path;
    v1::ErrorReason reason;
    void (*change)(v1::KeySetHeader&);
  };
  const Case cases[] = {
      {"header.total_bytes", kLimit, [](auto& h) { h.set_total_bytes((uint64_t{16} << 30) + 1); }},
      {"header.key_count", kLimit, [](auto& h) { h.set_key_count(4097); }},
      {"header.key_count", kMalformed, [](auto& h) { h.set_key_count(0); }},
      {"header.context_id", v1::ERROR_REASON_WRONG_CONTEXT,
       [](auto& h) { h.set_context_id(std::string(32, 'x')); }},
      {"header.context_id", v1::ERROR_REASON_WRONG_CONTEXT, [](auto& h) { h.clear_context_id(); }},
      {"header.total_bytes", kMalformed, [](auto& h) { h.set_total_bytes(3 * kKeyBytes - 1); }},
      {"header.total_bytes", kMalformed, [](auto& h) { h.set_key_count(4); }},
  };
  for (const Case& c : cases) {
    v1::KeySetHeader header = HeaderOf(3);
    c.change(header);
    EXPECT_THAT(Receive(header, {}), IsRefusal(kInvalid, c.reason, c.path));
  }
}

TEST(KeySetReaderTest, EachWrongStreamIsNamed) {
  struct Case {
    const char* name;
    const char* path;
    v1::ErrorReason reason;
    std::function<void(Messages&)> change;  // of three keys of two chunks each
  };
  const Case cases[] = {
      {"early end", "keys[2]", kMalformed, [](Messages& m) { m.pop_back(); }},
      {"no key", "keys[0]", kMalformed, [](Messages& m) { m.clear(); }},
      {"a key left out", "keys[2]", kMalformed, [](Messages& m) { m.resize(6); }},
      {"chunk first", "keys[0]", kProtocol, [](Messages& m) { m.erase(m.begin()); }},
      {"key within key", "keys[0]", kProtocol, [](Messages& m) { m.erase(m.begin() + 2); }},
      {"chunk too many", "keys[1]", kProtocol, [](Messages& m) { m.insert(m.begin() + 3, m[1]); }},
      {"surplus bytes", "keys[0].payload", kMalformed,
       [](Messages& m) { m[2].mutable_chunk()->push_back('x'); }},
      {"empty chunk", "keys[0].chunk", kProtocol, [](Messages& m) { m[1].set_chunk(""); }},
      {"empty message", "keys[0]", kProtocol, [](Messages& m) { m[1].Clear(); }},
      {"header again", "header", kProtocol, [](Messages& m) { m[3].mutable_header(); }},
      {"one key more", "keys[3]", kProtocol, [](Messages& m) { m.push_back(m[0]); }},
      {"key twice", "keys[1]", kMalformed, [](Messages& m) { m[3] = m[0]; }},
      {"ciphertext", "keys[1].type", v1::ERROR_REASON_SIGNATURE_MISMATCH,
       [](Messages& m) { m[3].mutable_key()->set_type(v1::VALUE_TYPE_CIPHERTEXT); }},
      {"secret key", "keys[1].type", v1::ERROR_REASON_SECRET_KEY_REFUSED,
       [](Messages& m) {
         m[3].mutable_key()->Clear();
         m[3].mutable_key()->set_type(v1::VALUE_TYPE_SECRET_KEY);
       }},
      {"secret key within key", "keys[0].type", v1::ERROR_REASON_SECRET_KEY_REFUSED,
       [](Messages& m) { m[1].mutable_key()->set_type(v1::VALUE_TYPE_SECRET_KEY); }},
      {"key of another known context", "keys[1].context_id", v1::ERROR_REASON_WRONG_CONTEXT,
       [](Messages& m) { m[3].mutable_key()->set_context_id(OtherContext()->id_bytes()); }},
      {"residue", "keys[1].data[row 0]", kMalformed,
       [](Messages& m) { m[4].mutable_chunk()->replace(0, 8, 8, '\x7f'); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Messages messages = MessagesOf(ThreeKeys(), kKeyBytes / 2);
    ASSERT_EQ(messages.size(), 9u);
    c.change(messages);
    EXPECT_THAT(Receive(HeaderOf(3), messages), IsRefusal(kInvalid, c.reason, c.path));
  }
}

TEST(KeySetReaderTest, ChunksAboveTheLimitAreRefused) {
  WireLimits limits;
  limits.max_chunk_bytes = 100;
  const std::vector<KnownContextPtr> contexts = {SmallContext()};
  ASSERT_OK_AND_ASSIGN(KeySetReader reader, KeySetReader::Create(HeaderOf(1), contexts, limits));
  const Messages messages = MessagesOf({ThreeKeys()[0]}, 101);
  ASSERT_OK(reader.Read(messages[0], PageableTensors()));
  EXPECT_THAT(reader.Read(messages[1], PageableTensors()),
              IsRefusal(kInvalid, kLimit, "keys[0].chunk"));
}

TEST(KeySetReaderTest, TheFirstErrorStays) {
  const std::vector<KnownContextPtr> contexts = {SmallContext()};
  ASSERT_OK_AND_ASSIGN(KeySetReader reader,
                       KeySetReader::Create(HeaderOf(1), contexts, WireLimits()));
  const Messages messages = MessagesOf({ThreeKeys()[0]}, 4096);
  ASSERT_THAT(reader.Read(messages[1], PageableTensors()),
              IsRefusal(kInvalid, kProtocol, "keys[0]"));
  for (const v1::PutKeysRequest& message : messages) {
    EXPECT_THAT(reader.Read(message, PageableTensors()), IsRefusal(kInvalid, kProtocol, "keys[0]"));
  }
  EXPECT_THAT(std::move(reader).Finish(), IsRefusal(kInvalid, kProtocol, "keys[0]"));
}

TEST(KeySetReaderTest, MemoryIsAskedForAfterAdmissionAndItsErrorIsPassedOn) {
  const std::vector<KnownContextPtr> contexts = {SmallContext()};
  ASSERT_OK_AND_ASSIGN(KeySetReader reader,
                       KeySetReader::Create(HeaderOf(1), contexts, WireLimits()));
  ASSERT_OK_AND_ASSIGN(KeySetReader rejecting,
                       KeySetReader::Create(HeaderOf(1), contexts, WireLimits()));
  int asked = 0;
  const TensorAllocator refuse = [&asked](const TensorPlan&) -> absl::StatusOr<value::Tensor> {
    ++asked;
    return absl::ResourceExhaustedError("full");
  };
  Messages messages = MessagesOf({ThreeKeys()[0]}, 4096);
  v1::ExactValue wrong = messages[0].key();
  wrong.mutable_metadata()->set_galois_element(2);
  EXPECT_THAT(rejecting.BeginKey(wrong, refuse),
              IsRefusal(kInvalid, kMalformed, "keys[0].galois_element"));
  EXPECT_EQ(asked, 0);
  EXPECT_THAT(reader.BeginKey(messages[0].key(), refuse),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(asked, 1);
}

TEST(KeyIdOfTest, NamesEvaluationKeysAlone) {
  ASSERT_OK_AND_ASSIGN(const KeyId id, KeyIdOf(ThreeKeys()[0], "key"));
  EXPECT_EQ(id, KeyId::Rotation(3, 8));
  ExactValue key = ThreeKeys()[0];
  key.metadata.rotation_step.reset();
  EXPECT_THAT(KeyIdOf(key, "key"), IsRefusal(kInvalid, kMalformed, "key.rotation_step"));
  EXPECT_THAT(KeyIdOf(MakeCiphertext(*SmallContext(), 0), "key"),
              IsRefusal(kInvalid, v1::ERROR_REASON_SIGNATURE_MISMATCH, "key.type"));
}

}  // namespace
}  // namespace cipherd::codec

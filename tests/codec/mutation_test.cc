// Serialised descriptions with every bit flipped, every byte replaced and every length cut: each
// either is refused cleanly or still means something lawful. Meant to run under AddressSanitizer
// and UBSan.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/execution/value_tree_signature.h"
#include "gtest/gtest.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/key_set_reader.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/program_codec.h"
#include "proto/codec/signature_codec.h"
#include "proto/codec/tree_admission.h"
#include "proto/codec/tree_encoder.h"
#include "tests/codec/mutants.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::AcceptEverything;
using ::cipherd::testing::CountingTensor;
using ::cipherd::testing::Describe;
using ::cipherd::testing::ForEachMutant;
using ::cipherd::testing::MakeCiphertext;
using ::cipherd::testing::MakeKey;
using ::cipherd::testing::MakePlaintext;
using ::cipherd::testing::SmallContext;
using execution::ValueTreeSignature;
using value::ValueTree;

// Protobuf logs strings that are no UTF-8, of which there are many here.
class MutationTest : public ::testing::Test {
  google::protobuf::LogSilencer silencer_;
};

// A refusal says why and where, in a message that starts with the place.
void ExpectCleanRefusal(const absl::Status& status) {
  const auto detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value()) << std::string(status.ToString());
  EXPECT_NE(detail->reason(), v1::ERROR_REASON_UNSPECIFIED);
  EXPECT_TRUE(status.code() == absl::StatusCode::kInvalidArgument ||
              status.code() == absl::StatusCode::kUnimplemented)
      << std::string(status.ToString());
}

std::vector<ValueTree> Trees() {
  const KnownContext& context = *SmallContext();
  return {
      ValueTree::Tuple({ValueTree::Value(MakeCiphertext(context, 1))}),
      ValueTree::Dict({{"k", ValueTree::Value(MakeKey(context, ckks::KeyId::Rotation(3, 8)))},
                       {"p", ValueTree::List({ValueTree::Value(MakePlaintext(
                                 context, value::PlaintextRepresentation::kSlots))})}}),
      ValueTree::Tuple({ValueTree::Leaf(CountingTensor(value::DType::kFloat32, {2, 3})),
                        ValueTree::Value(MakeKey(context, ckks::KeyId::Relinearization()))}),
  };
}

TEST_F(MutationTest, ATreeIsRefusedOrLawful) {
  for (const ValueTree& tree : Trees()) {
    int admitted_count = 0;
    int refused_count = 0;
    ForEachMutant(Describe(tree).SerializeAsString(), [&](const std::string& mutant) {
      v1::ValueTree message;
      if (!message.ParseFromString(mutant)) return;
      absl::StatusOr<AdmittedTree> admitted =
          AdmitTree(message, AcceptEverything(), WireLimits(), "mutant");
      if (!admitted.ok()) {
        ++refused_count;
        ExpectCleanRefusal(admitted.status());
        return;
      }
      // What was admitted says the same again when it is described again.
      ++admitted_count;
      ASSERT_LE(admitted->payload_bytes(), uint64_t{1} << 20);
      const v1::ValueTree again = Describe(admitted->skeleton());
      ASSERT_OK_AND_ASSIGN(const AdmittedTree second,
                           AdmitTree(again, AcceptEverything(), WireLimits(), "again"));
      ASSERT_OK_AND_ASSIGN(const ValueTreeSignature signature,
                           ValueTreeSignature::FromTree(admitted->skeleton()));
      ASSERT_OK(signature.Validate(second.skeleton()));
    });
    EXPECT_GT(refused_count, admitted_count);
    EXPECT_GT(admitted_count, 0);  // for one, another lawful scale or key
  }
}

TEST_F(MutationTest, ATreeUnderASignatureMeansTheSameOrIsRefused) {
  for (const ValueTree& tree : Trees()) {
    ASSERT_OK_AND_ASSIGN(const ValueTreeSignature signature, ValueTreeSignature::FromTree(tree));
    TreeExpectation expectation = AcceptEverything();
    expectation.signature = &signature;
    ForEachMutant(Describe(tree).SerializeAsString(), [&](const std::string& mutant) {
      v1::ValueTree message;
      if (!message.ParseFromString(mutant)) return;
      absl::StatusOr<AdmittedTree> admitted =
          AdmitTree(message, expectation, WireLimits(), "mutant");
      if (!admitted.ok()) return ExpectCleanRefusal(admitted.status());
      ASSERT_OK_AND_ASSIGN(const ValueTreeSignature meant,
                           ValueTreeSignature::FromTree(admitted->skeleton()));
      ASSERT_EQ(meant, signature);
    });
  }
}

TEST_F(MutationTest, AKeySetStreamIsRefusedOrLawful) {
  const std::vector<KnownContextPtr> contexts = {SmallContext()};
  const value::ExactValue key = MakeKey(*SmallContext(), ckks::KeyId::Rotation(3, 8));
  v1::KeySetHeader header;
  header.set_context_id(SmallContext()->id_bytes());
  header.set_key_count(1);
  header.set_total_bytes(static_cast<uint64_t>(key.tensors[0].second.bytes()));
  v1::PutKeysRequest request;
  ASSERT_OK_AND_ASSIGN(PayloadSource payload, EncodeValue(key, "key", request.mutable_key()));
  v1::PutKeysRequest chunk;
  payload.TakeInto(payload.remaining_bytes(), chunk.mutable_chunk());

  ForEachMutant(header.SerializeAsString(), [&](const std::string& mutant) {
    v1::KeySetHeader message;
    if (!message.ParseFromString(mutant)) return;
    absl::StatusOr<KeySetReader> reader = KeySetReader::Create(message, contexts, WireLimits());
    if (!reader.ok()) return ExpectCleanRefusal(reader.status());
    ASSERT_EQ(reader->total_bytes(), header.total_bytes());
  });
  ForEachMutant(request.SerializeAsString(), [&](const std::string& mutant) {
    v1::PutKeysRequest message;
    if (!message.ParseFromString(mutant)) return;
    ASSERT_OK_AND_ASSIGN(KeySetReader reader, KeySetReader::Create(header, contexts, WireLimits()));
    absl::Status status = reader.Read(message, PageableTensors());
    if (status.ok()) status = reader.Read(chunk, PageableTensors());
    if (!status.ok()) return ExpectCleanRefusal(status);
    ASSERT_OK(std::move(reader).Finish());
  });
}

TEST_F(MutationTest, ASignatureIsRefusedOrLawful) {
  for (const ValueTree& tree : Trees()) {
    ASSERT_OK_AND_ASSIGN(const ValueTreeSignature signature, ValueTreeSignature::FromTree(tree));
    v1::ValueTreeSignature encoded;
    ASSERT_OK(EncodeSignature(signature, "signature", &encoded));
    ForEachMutant(encoded.SerializeAsString(), [&](const std::string& mutant) {
      v1::ValueTreeSignature message;
      if (!message.ParseFromString(mutant)) return;
      const absl::StatusOr<ValueTreeSignature> decoded =
          DecodeSignature(message, WireLimits(), "mutant");
      if (!decoded.ok()) return ExpectCleanRefusal(decoded.status());
      v1::ValueTreeSignature again;
      ASSERT_OK(EncodeSignature(*decoded, "again", &again));
      ASSERT_OK_AND_ASSIGN(const ValueTreeSignature second,
                           DecodeSignature(again, WireLimits(), "again"));
      ASSERT_EQ(second, *decoded);
    });
  }
}

TEST_F(MutationTest, AContextIsRefusedOrLawful) {
  v1::ContextParameters encoded;
  EncodeContext(SmallContext()->parameters(), &encoded);
  constexpr auto kPolicy = ckks::SecurityPolicy::kAllowInsecure;
  ForEachMutant(encoded.SerializeAsString(), [&](const std::string& mutant) {
    v1::ContextParameters message;
    if (!message.ParseFromString(mutant)) return;
    const absl::StatusOr<ckks::ContextParameters> decoded =
        DecodeContext(message, kPolicy, "mutant");
    if (!decoded.ok()) return ExpectCleanRefusal(decoded.status());
    ASSERT_OK(decoded->Validate(kPolicy));
  });
}

TEST_F(MutationTest, ATextOfAProgramIsRefusedOrPrintsAgain) {
  programs::ProgramSpec spec;
  spec.name = "p";
  spec.context = SmallContext()->parameters();
  spec.inputs = {
      {.name = "x", .depth = 1, .scale = 2.5, .layout = {2, 1, 4, 2}, .description = ""}};
  spec.operations = {{.name = "y",
                      .kind = programs::OperationKind::kLinearTransform,
                      .a = "x",
                      .constant = "w",
                      .expansion = {2, true},
                      .offsets = "o"}};
  spec.outputs = {{.name = "z", .edge = "y", .layout = {}, .description = ""}};
  ASSERT_OK_AND_ASSIGN(const std::string text, PrintProgramText(spec));
  ForEachMutant(text, [&](const std::string& mutant) {
    const absl::StatusOr<programs::ProgramSpec> parsed = ParseProgramText(mutant, "mutant");
    if (!parsed.ok()) return ExpectCleanRefusal(parsed.status());
    ASSERT_OK(PrintProgramText(*parsed));
  });
}

}  // namespace
}  // namespace cipherd::codec

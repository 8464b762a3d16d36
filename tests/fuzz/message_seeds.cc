// Seeds of targets that read messages.
#include <string>
#include <utility>
#include <vector>

#include "cipherd/v1/evaluation.pb.h"
#include "cipherd/v1/status_details.pb.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "proto/codec/program_codec.h"
#include "proto/codec/signature_codec.h"
#include "proto/codec/tree_encoder.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/codec/wire_values.h"
#include "tests/fuzz/key_set_seed.h"
#include "tests/fuzz/message_bytes.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/service_program.h"
#include "tests/inference/infer_exchange.h"

namespace cipherd::fuzz {
namespace {

using testing::MakeCiphertext;
using testing::MakeKey;
using testing::MakePlaintext;
using testing::SmallContext;
using value::PlaintextRepresentation;
using value::ValueTree;

std::vector<std::pair<std::string, ValueTree>> Trees() {
  const codec::KnownContext& context = *SmallContext();
  std::vector<ValueTree> plaintexts;
  for (const PlaintextRepresentation representation :
       {PlaintextRepresentation::kSlots, PlaintextRepresentation::kIntegerCoefficients,
        PlaintextRepresentation::kApproximateCoefficients, PlaintextRepresentation::kRns}) {
    plaintexts.push_back(ValueTree::Value(MakePlaintext(context, representation)));
  }
  return {
      {"ciphertext", ValueTree::Tuple({ValueTree::Value(MakeCiphertext(context, 1))})},
      {"batch", ValueTree::List({ValueTree::Value(MakeCiphertext(context, 3, 3, {2}))})},
      {"plaintexts", ValueTree::List(std::move(plaintexts))},
      {"keys",
       ValueTree::Dict({{"k", ValueTree::Value(MakeKey(context, ckks::KeyId::Rotation(3, 8)))},
                        {"c", ValueTree::Value(MakeKey(context, ckks::KeyId::Conjugation()))},
                        {"p", ValueTree::Value(testing::MakePublicKey(context))}})},
      {"tensors",
       ValueTree::Tuple({ValueTree::Leaf(testing::CountingTensor(value::DType::kFloat32, {2, 3})),
                         ValueTree::List({}),
                         ValueTree::Value(MakeKey(context, ckks::KeyId::Relinearization()))})},
  };
}

// Every kind of operation, of the constants that the target has.
programs::ProgramSpec EveryKind() {
  using programs::OperationKind;
  programs::ProgramSpec spec;
  spec.name = "every_kind";
  spec.context = SmallContext()->parameters();
  spec.inputs = {{.name = "x", .layout = {.element_count = 8}}, {.name = "y"}};
  spec.operations = {
      {.name = "o1", .kind = OperationKind::kSubtract, .a = "x", .b = "y"},
      {.name = "o2", .kind = OperationKind::kMultiply, .a = "o1", .b = "x"},
      {.name = "o3", .kind = OperationKind::kRelinearize, .a = "o2"},
      {.name = "o4", .kind = OperationKind::kRescale, .a = "o3"},
      {.name = "o5",
       .kind = OperationKind::kLinearTransform,
       .a = "o4",
       .constant = "w",
       .offsets = "o"},
      {.name = "o6", .kind = OperationKind::kRescale, .a = "o5"},
      {.name = "o7", .kind = OperationKind::kMultiplyPlain, .a = "o6", .constant = "b"},
      {.name = "o8", .kind = OperationKind::kRescale, .a = "o7"},
      {.name = "o9", .kind = OperationKind::kConjugate, .a = "o8"},
      {.name = "o10", .kind = OperationKind::kRotate, .a = "o9", .step = -3},
      {.name = "o11", .kind = OperationKind::kAddPlain, .a = "o10", .constant = "b"},
      {.name = "o12", .kind = OperationKind::kSubtractPlain, .a = "o11", .constant = "b"},
      {.name = "o13", .kind = OperationKind::kNegate, .a = "o12"},
      {.name = "o14", .kind = OperationKind::kDropToDepth, .a = "x", .depth = 2},
      {.name = "o15", .kind = OperationKind::kSquare, .a = "o14"},
      {.name = "o16", .kind = OperationKind::kRelinearize, .a = "o15"},
  };
  spec.outputs = {{.name = "u", .edge = "o13"}, {.name = "v", .edge = "o16"}};
  return spec;
}

void AddTreeSeeds(const SeedSink& add) {
  for (const auto& [name, tree] : Trees()) {
    v1::EvaluateRequest request;
    codec::PayloadSource payload =
        codec::EncodeTree(tree, "inputs", request.mutable_header()->mutable_inputs()).value();
    payload.TakeInto(payload.total_bytes(), request.mutable_payload());
    add("tree", name, request.SerializeAsString());
    v1::ValueTreeSignature signature;
    EXPECT_OK(codec::EncodeSignature(execution::ValueTreeSignature::FromTree(tree).value(),
                                     "signature", &signature));
    add("signature", name, signature.SerializeAsString());
  }
}

void AddStatusSeeds(const SeedSink& add) {
  const absl::Status refusal = codec::Refuse(v1::ERROR_REASON_WRONG_CONTEXT, "inputs[0]", "other");
  add("status", "refusal", ToGrpcStatus(refusal).error_details());
  const absl::Status overload = codec::WithRetryInfo(
      codec::WithErrorDetail(absl::ResourceExhaustedError("full"), v1::ERROR_REASON_OVERLOADED, ""),
      absl::Milliseconds(250));
  add("status", "retry", ToGrpcStatus(overload).error_details());
}

}  // namespace

void AddMessageSeeds(const SeedSink& add) {
  for (const auto& [name, context] :
       {std::pair("small", SmallContext()), std::pair("other", testing::OtherContext())}) {
    v1::ContextParameters message;
    codec::EncodeContext(context->parameters(), &message);
    add("context", name, message.SerializeAsString());
  }
  AddTreeSeeds(add);
  AddStatusSeeds(add);

  std::string key_set;
  for (const v1::PutKeysRequest& message : KeySetMessages()) {
    AppendPiece(message.SerializeAsString(), key_set);
  }
  add("key_set", "two_keys", key_set);

  add("program", "square_sum", codec::EncodeProgram(ServiceProgram())->SerializeAsString());
  add("program", "every_kind", codec::EncodeProgram(EveryKind())->SerializeAsString());
  add("program_description", "square_sum", ServiceProgramDescription().SerializeAsString());
  add("inference", "request", testing::InferExchange().request.SerializeAsString());

  v1::ServerInfo info;
  info.set_version("1");
  codec::EncodeLimits(codec::WireLimits(), info.mutable_limits());
  add("server_info", "limits", info.SerializeAsString());
}

}  // namespace cipherd::fuzz

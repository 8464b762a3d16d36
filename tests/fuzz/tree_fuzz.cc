// Values and their payload, as they come with an evaluation and its result.
#include <algorithm>
#include <utility>

#include "cipherd/v1/evaluation.pb.h"
#include "core/execution/value_tree_signature.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/tree_admission.h"
#include "tests/codec/wire_values.h"
#include "tests/fuzz/codec_refusal.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {
namespace {

using execution::ValueTreeSignature;

// What was admitted says the same again when it is described again.
void RequireStable(const value::ValueTree& tree) {
  const auto again = codec::AdmitTree(testing::Describe(tree), testing::AcceptEverything(),
                                      codec::WireLimits(), "again");
  Require(again.ok(), "what was admitted is admitted again");
  const auto signature = ValueTreeSignature::FromTree(tree);
  Require(signature.ok() && signature->Validate(again->skeleton()).ok(),
          "and has the same signature");
}

}  // namespace

bool Decode(std::string_view bytes) {
  const auto message = ParseMessage<v1::EvaluateRequest>(bytes);
  if (!message.has_value()) return false;
  const std::string_view payload = message->payload();
  codec::TreeExpectation expectation = testing::AcceptEverything();
  expectation.actual_payload_bytes = payload.size();
  auto admitted =
      codec::AdmitTree(message->header().inputs(), expectation, codec::WireLimits(), "inputs");
  if (!admitted.ok()) return RefusedByCodec(admitted.status());
  Require(admitted->payload_bytes() == payload.size(),
          "the payload is as large as it is said to be");
  RequireStable(admitted->skeleton());

  auto reader = codec::PayloadReader::Allocate(*std::move(admitted), codec::PageableTensors());
  Require(reader.ok(), "tensors fit the plan");
  // In pieces that neither tensors nor residues begin with.
  constexpr size_t kPieceBytes = 333;
  for (size_t at = 0; at < payload.size(); at += kPieceBytes) {
    Require(reader->Write(payload.substr(at, kPieceBytes)).ok(), "a payload of its size is read");
    const auto child = reader->CompletedChild(0);
    if (!child.ok()) return RefusedByCodec(child.status());
  }
  const auto tree = std::move(*reader).Finish();
  if (!tree.ok()) return RefusedByCodec(tree.status());
  Require(testing::PayloadOf(*tree) == payload, "a payload is read as it is");
  return true;
}

}  // namespace cipherd::fuzz

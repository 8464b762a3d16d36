// What leaves by tree_encoder.h arrives by tree_admission.h and payload_reader.h as it was.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/execution/value_tree_signature.h"
#include "core/runtime/device.h"
#include "gtest/gtest.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/tree_admission.h"
#include "proto/codec/tree_encoder.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::AcceptEverything;
using ::cipherd::testing::CountingTensor;
using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::MakeCiphertext;
using ::cipherd::testing::MakeKey;
using ::cipherd::testing::MakePlaintext;
using ::cipherd::testing::MakePublicKey;
using ::cipherd::testing::PayloadOf;
using ::cipherd::testing::SmallContext;
using ::cipherd::testing::StatusIs;
using ::cipherd::testing::TakeAll;
using execution::ValueTreeSignature;
using value::DType;
using value::ExactValue;
using value::PlaintextRepresentation;
using value::Tensor;
using value::ValueTree;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Sent {
  std::string description;
  std::string payload;
};

absl::StatusOr<Sent> Send(const ValueTree& tree) {
  v1::ValueTree message;
  CIPHERD_ASSIGN_OR_RETURN(PayloadSource payload, EncodeTree(tree, "sent", &message));
  return Sent{message.SerializeAsString(), TakeAll(std::move(payload))};
}

absl::StatusOr<AdmittedTree> Admit(const Sent& sent, TreeExpectation expectation) {
  v1::ValueTree message;
  if (!message.ParseFromString(sent.description)) return absl::InternalError("does not parse");
  return AdmitTree(message, expectation, WireLimits(), "received");
}

absl::StatusOr<ValueTree> Receive(const Sent& sent) {
  CIPHERD_ASSIGN_OR_RETURN(AdmittedTree admitted, Admit(sent, AcceptEverything()));
  CIPHERD_ASSIGN_OR_RETURN(PayloadReader reader,
                           PayloadReader::Allocate(std::move(admitted), PageableTensors()));
  CIPHERD_RETURN_IF_ERROR(reader.Write(sent.payload));
  return std::move(reader).Finish();
}

ValueTree ThroughTheWire(const ValueTree& tree) {
  absl::StatusOr<Sent> sent = Send(tree);
  EXPECT_OK(sent);
  absl::StatusOr<ValueTree> received = Receive(*sent);
  EXPECT_OK(received);
  return received.ok() ? *received : ValueTree::None();
}

void ExpectSame(const ValueTree& actual, const ValueTree& expected) {
  ASSERT_OK_AND_ASSIGN(const ValueTreeSignature signature, ValueTreeSignature::FromTree(expected));
  EXPECT_OK(signature.Validate(actual));
  EXPECT_EQ(PayloadOf(actual), PayloadOf(expected));
}

TEST(RoundTripTest, EveryTypeOfValue) {
  const KnownContext& context = *SmallContext();
  std::vector<ExactValue> values = {
      MakeCiphertext(context, 0),
      MakeCiphertext(context, 3, 3),
      MakeCiphertext(context, 1, 2, {2, 3}),
      MakePlaintext(context, PlaintextRepresentation::kSlots),
      MakePlaintext(context, PlaintextRepresentation::kIntegerCoefficients),
      MakePlaintext(context, PlaintextRepresentation::kApproximateCoefficients),
      MakePlaintext(context, PlaintextRepresentation::kRns),
      MakePublicKey(context),
      MakeKey(context, ckks::KeyId::Relinearization()),
      MakeKey(context, ckks::KeyId::Rotation(3, 8)),
      MakeKey(context, ckks::KeyId::Conjugation()),
      MakeKey(context, {value::ValueType::kKeySwitchKey, 0}),
  };
  values.push_back(values[0]);
  values.back().metadata.domain = value::PolynomialDomain::kCoefficient;
  values.push_back(values[0]);
  values.back().tensors[0].second.set_requires_grad(true);
  for (const ExactValue& value : values) {
    SCOPED_TRACE(value::ToString(value.type));
    const ValueTree tree = ValueTree::Value(value);
    ExpectSame(ThroughTheWire(tree), tree);
  }
}

TEST(RoundTripTest, EveryDtypeOfABareTensor) {
  for (const DType dtype : {DType::kUint8, DType::kInt32, DType::kUint32, DType::kInt64,
                            DType::kUint64, DType::kFloat32, DType::kFloat64, DType::kComplex128}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{}, {7}, {2, 3, 5}, {0}, {3, 0, 2}}) {
      SCOPED_TRACE(value::ToString(dtype));
      const ValueTree tree = ValueTree::Leaf(CountingTensor(dtype, shape));
      ExpectSame(ThroughTheWire(tree), tree);
    }
  }
}

TEST(RoundTripTest, ContainersKeepTheirKindKeysAndOrder) {
  const KnownContext& context = *SmallContext();
  const ValueTree tree = ValueTree::Tuple(
      {ValueTree::Value(MakeCiphertext(context, 0)), ValueTree::List({}),
       ValueTree::Dict({{"z", ValueTree::Leaf(CountingTensor(DType::kUint8, {5}))},
                        {"a key: with signs", ValueTree::Tuple({})},
                        {"m", ValueTree::List({ValueTree::Value(MakeCiphertext(context, 2)),
                                               ValueTree::Dict({})})}})});
  const ValueTree received = ThroughTheWire(tree);
  ExpectSame(received, tree);
  EXPECT_EQ(received[2].keys(), (std::vector<std::string>{"z", "a key: with signs", "m"}));
}

TEST(RoundTripTest, TheScaleKeepsEveryBit) {
  ExactValue value = MakeCiphertext(*SmallContext(), 0);
  value.metadata.scale = 1073741823.9999999;
  const ValueTree tree = ValueTree::Value(value);
  ExpectSame(ThroughTheWire(tree), tree);
}

TEST(RoundTripTest, PinnedMemoryAndLeasedMemoryAreFilledInPlace) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> device, runtime::OpenDevice("cpu", {}));
  const ValueTree tree = ValueTree::Tuple({ValueTree::Value(MakeCiphertext(*SmallContext(), 0)),
                                           ValueTree::Value(MakeCiphertext(*SmallContext(), 1))});
  ASSERT_OK_AND_ASSIGN(const Sent sent, Send(tree));

  ASSERT_OK_AND_ASSIGN(AdmittedTree first, Admit(sent, AcceptEverything()));
  ASSERT_OK_AND_ASSIGN(PayloadReader allocated,
                       PayloadReader::Allocate(std::move(first), PinnedTensors(*device)));
  ASSERT_OK(allocated.Write(sent.payload));
  ASSERT_OK_AND_ASSIGN(const ValueTree lease, std::move(allocated).Finish());
  for (const Tensor* tensor : value::TensorsOf(lease)) EXPECT_TRUE(tensor->is_pinned());
  ExpectSame(lease, tree);

  // Another request over the same lease, at the same addresses.
  ExactValue other = MakeCiphertext(*SmallContext(), 0);
  other.metadata.scale = 4096;
  other.tensors[0].second.data_as<uint64_t>()[5] = 77;
  const ValueTree second_tree = ValueTree::Tuple({ValueTree::Value(other), tree[1]});
  ASSERT_OK_AND_ASSIGN(const Sent second_sent, Send(second_tree));
  ASSERT_OK_AND_ASSIGN(AdmittedTree second, Admit(second_sent, AcceptEverything()));
  ASSERT_OK_AND_ASSIGN(PayloadReader reader, PayloadReader::Into(std::move(second), lease));
  ASSERT_OK(reader.Write(second_sent.payload));
  ASSERT_OK_AND_ASSIGN(const ValueTree received, std::move(reader).Finish());
  ExpectSame(received, second_tree);
  const std::vector<const Tensor*> leased = value::TensorsOf(lease);
  const std::vector<const Tensor*> filled = value::TensorsOf(received);
  for (size_t i = 0; i < leased.size(); ++i) EXPECT_EQ(leased[i]->data(), filled[i]->data());
}

TEST(RoundTripTest, MemoryThatDoesNotFitThePlanIsAFaultOfTheCaller) {
  const ValueTree tree = ValueTree::Value(MakeCiphertext(*SmallContext(), 0));
  ASSERT_OK_AND_ASSIGN(const Sent sent, Send(tree));
  auto admit = [&] { return *Admit(sent, AcceptEverything()); };
  const auto kInternal = absl::StatusCode::kInternal;
  EXPECT_THAT(PayloadReader::Into(admit(), ValueTree::Value(MakeCiphertext(*SmallContext(), 1))),
              StatusIs(kInternal));
  EXPECT_THAT(PayloadReader::Into(admit(), ValueTree::Tuple({tree, tree})), StatusIs(kInternal));
  EXPECT_THAT(PayloadReader::Into(admit(), admit().skeleton()), StatusIs(kInternal));
  EXPECT_THAT(PayloadReader::Allocate(admit(),
                                      [](const TensorPlan& plan) {
                                        return Tensor::AllocateHost(DType::kInt64, plan.shape);
                                      }),
              StatusIs(kInternal));
  EXPECT_THAT(PayloadReader::Allocate(admit(),
                                      [](const TensorPlan&) -> absl::StatusOr<Tensor> {
                                        return absl::ResourceExhaustedError("full");
                                      }),
              StatusIs(absl::StatusCode::kResourceExhausted, "full"));
}

TEST(RoundTripTest, AnExpectedSignatureAdmitsItsTreeAndNamesTheFirstDifference) {
  const ValueTree tree = ValueTree::Tuple({ValueTree::Value(MakeCiphertext(*SmallContext(), 1))});
  ASSERT_OK_AND_ASSIGN(const ValueTreeSignature signature, ValueTreeSignature::FromTree(tree));
  TreeExpectation expectation = AcceptEverything();
  expectation.signature = &signature;
  ASSERT_OK_AND_ASSIGN(const Sent sent, Send(tree));
  EXPECT_OK(Admit(sent, expectation));

  const auto refuses = [&](const ValueTree& other, const char* path) {
    absl::StatusOr<Sent> other_sent = Send(other);
    ASSERT_OK(other_sent);
    EXPECT_THAT(Admit(*other_sent, expectation),
                IsRefusal(kInvalid, v1::ERROR_REASON_SIGNATURE_MISMATCH, path));
  };
  refuses(ValueTree::Tuple({ValueTree::Value(MakeCiphertext(*SmallContext(), 2))}),
          "received[0].depth");
  refuses(ValueTree::Tuple({ValueTree::Value(MakeCiphertext(*SmallContext(), 1, 3))}),
          "received[0].data.shape");
  refuses(ValueTree::List({ValueTree::Value(MakeCiphertext(*SmallContext(), 1))}), "received");
  refuses(ValueTree::Tuple({tree[0], tree[0]}), "received.length");
  ExactValue rescaled = MakeCiphertext(*SmallContext(), 1);
  *rescaled.metadata.scale += 0.5;
  refuses(ValueTree::Tuple({ValueTree::Value(rescaled)}), "received[0].scale");
}

TEST(RoundTripTest, WhatCannotTravelIsRefusedByTheSender) {
  v1::ValueTree out;
  const auto refuses = [&out](const ValueTree& tree, v1::ErrorReason reason, const char* path) {
    EXPECT_THAT(EncodeTree(tree, "sent", &out), IsRefusal(kInvalid, reason, path));
  };
  constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_VALUE;
  refuses(ValueTree::None(), kMalformed, "sent");
  refuses(ValueTree::List({ValueTree::Opaque("int")}), kMalformed, "sent[0]");

  ExactValue secret = MakeCiphertext(*SmallContext(), 0);
  secret.type = value::ValueType::kSecretKey;
  refuses(ValueTree::Dict({{"k", ValueTree::Value(secret)}}), v1::ERROR_REASON_SECRET_KEY_REFUSED,
          "sent['k'].type");

  ExactValue nameless = MakeCiphertext(*SmallContext(), 0);
  nameless.context_id = "not an id";
  refuses(ValueTree::Value(nameless), kMalformed, "sent.context_id");

  ASSERT_OK_AND_ASSIGN(runtime::StoragePtr storage, runtime::AllocatePageable(64));
  ASSERT_OK_AND_ASSIGN(Tensor strided,
                       Tensor::FromStorage(storage, 0, DType::kUint64, {2, 2}, {1, 2}));
  refuses(ValueTree::Leaf(strided), kMalformed, "sent.strides");

  ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> device, runtime::OpenDevice("cpu", {}));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Stream> stream, device->CreateStream("test"));
  ASSERT_OK_AND_ASSIGN(Tensor on_device, Tensor::AllocateOn(*stream, DType::kUint64, {2}));
  refuses(ValueTree::Leaf(on_device), kMalformed, "sent");
}

}  // namespace
}  // namespace cipherd::codec

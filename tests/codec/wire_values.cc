#include "tests/codec/wire_values.h"

#include <cstring>
#include <utility>

#include "core/value/tensor.h"
#include "proto/codec/tree_encoder.h"

namespace cipherd::testing {
namespace {

using codec::KnownContext;
using codec::KnownContextPtr;
using value::ExactValue;
using value::Tensor;
using value::ValueType;

ckks::ContextParameters SmallParameters() {
  return *ckks::MakeContextParameters({.log_n = 4,
                                       .base_prime_bits = 40,
                                       .depth_prime_bits = 30,
                                       .max_depth = 3,
                                       .p_prime_bits = 45,
                                       .p_prime_count = 2,
                                       .digit_count = 2},
                                      ckks::SecurityPolicy::kAllowInsecure);
}

KnownContextPtr Known(ckks::ContextParameters parameters) {
  return *KnownContext::Create(std::move(parameters), ckks::SecurityPolicy::kAllowInsecure);
}

// A fixed function of `x` that looks random (the finaliser of SplitMix64).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::vector<uint64_t> PrimesOf(const KnownContext& context, const std::vector<int64_t>& ids) {
  std::vector<uint64_t> primes;
  for (int64_t id : ids) primes.push_back(context.primes()[static_cast<size_t>(id)]);
  return primes;
}

ExactValue ResidueValue(const KnownContext& context, ValueType type,
                        const std::vector<int64_t>& leading, std::vector<int64_t> prime_ids,
                        value::ModulusBasis basis) {
  std::vector<int64_t> shape = leading;
  shape.push_back(static_cast<int64_t>(prime_ids.size()));
  shape.push_back(context.parameters().ring_degree());
  ExactValue value;
  value.type = type;
  value.context_id = context.id();
  value.metadata.domain = value::PolynomialDomain::kNtt;
  value.metadata.basis = basis;
  value.metadata.residue_representation = value::ResidueRepresentation::kStandard;
  value.tensors.emplace_back("data", ResidueTensor(shape, PrimesOf(context, prime_ids)));
  value.metadata.prime_ids = std::move(prime_ids);
  return value;
}

}  // namespace

KnownContextPtr SmallContext() {
  static const KnownContextPtr& context = *new KnownContextPtr(Known(SmallParameters()));
  return context;
}

KnownContextPtr OtherContext() {
  ckks::ContextParameters parameters = SmallParameters();
  parameters.default_scale *= 2;
  static const KnownContextPtr& context = *new KnownContextPtr(Known(parameters));
  return context;
}

Tensor ResidueTensor(const std::vector<int64_t>& shape, const std::vector<uint64_t>& primes) {
  Tensor tensor = *Tensor::AllocateHost(value::DType::kUint64, shape);
  const auto ring_degree = static_cast<uint64_t>(shape.back());
  auto* residues = tensor.data_as<uint64_t>();
  for (uint64_t i = 0; i < static_cast<uint64_t>(tensor.element_count()); ++i) {
    const uint64_t prime = primes[i / ring_degree % primes.size()];
    const uint64_t position = i % ring_degree;
    residues[i] = position == 0 ? 0 : position == 1 ? prime - 1 : Mix(i) % prime;
  }
  return tensor;
}

Tensor CountingTensor(value::DType dtype, const std::vector<int64_t>& shape) {
  Tensor tensor = *Tensor::AllocateHost(dtype, shape);
  auto* bytes = tensor.data_as<uint8_t>();
  for (int64_t i = 0; i < tensor.bytes(); ++i) {
    bytes[i] = static_cast<uint8_t>(Mix(static_cast<uint64_t>(i)));
  }
  return tensor;
}

ExactValue MakeCiphertext(const KnownContext& context, int depth, int64_t components,
                          const std::vector<int64_t>& batch) {
  std::vector<int64_t> leading = {components};
  leading.insert(leading.end(), batch.begin(), batch.end());
  ExactValue value =
      ResidueValue(context, ValueType::kCiphertext, leading,
                   context.parameters().ActivePrimeIds(depth, false), value::ModulusBasis::kQ);
  value.metadata.depth = depth;
  value.metadata.scale = context.parameters().default_scale;
  return value;
}

ExactValue MakePlaintext(const KnownContext& context,
                         value::PlaintextRepresentation representation) {
  const int64_t ring_degree = context.parameters().ring_degree();
  ExactValue value;
  if (representation == value::PlaintextRepresentation::kRns) {
    value = ResidueValue(context, ValueType::kPlaintext, {},
                         context.parameters().ActivePrimeIds(1, false), value::ModulusBasis::kQ);
    value.metadata.depth = 1;
    value.metadata.domain = value::PolynomialDomain::kCoefficient;
  }
  value.type = ValueType::kPlaintext;
  value.context_id = context.id();
  value.metadata.plaintext_representation = representation;
  if (representation != value::PlaintextRepresentation::kSlots) value.metadata.scale = 1024.5;
  switch (representation) {
    case value::PlaintextRepresentation::kSlots:
      value.tensors.emplace_back("data", CountingTensor(value::DType::kComplex128, {3, 5}));
      break;
    case value::PlaintextRepresentation::kIntegerCoefficients:
      value.tensors.emplace_back("data", CountingTensor(value::DType::kInt64, {ring_degree}));
      break;
    case value::PlaintextRepresentation::kApproximateCoefficients:
      value.tensors.emplace_back("data", CountingTensor(value::DType::kFloat64, {2, ring_degree}));
      break;
    case value::PlaintextRepresentation::kRns:
      break;
  }
  return value;
}

ExactValue MakePublicKey(const KnownContext& context) {
  return ResidueValue(context, ValueType::kPublicKey, {2},
                      context.parameters().ActivePrimeIds(0, false), value::ModulusBasis::kQ);
}

ExactValue MakeKey(const KnownContext& context, const ckks::KeyId& id, uint64_t salt) {
  const ckks::ContextParameters& parameters = context.parameters();
  const auto digits = static_cast<int64_t>(parameters.digits.size());
  ExactValue key = ResidueValue(context, id.type, {digits, 2}, parameters.ActivePrimeIds(0, true),
                                value::ModulusBasis::kQP);
  key.metadata.digit_count = digits;
  if (id.type == ValueType::kRotationKey) {
    key.metadata.rotation_step = id.rotation_step;
    key.metadata.galois_element = parameters.RotationElement(id.rotation_step);
  }
  if (id.type == ValueType::kConjugationKey) {
    key.metadata.galois_element = parameters.ConjugationElement();
  }
  key.tensors[0].second.data_as<uint64_t>()[2] = salt;
  return key;
}

std::string TakeAll(codec::PayloadSource payload) {
  std::string bytes;
  payload.AppendTo(payload.remaining_bytes(), &bytes);
  return bytes;
}

std::string PayloadOf(const value::ValueTree& tree) {
  std::string bytes;
  for (const Tensor* tensor : value::TensorsOf(tree)) {
    if (tensor->bytes() == 0) continue;
    bytes.append(tensor->data_as<const char>(), static_cast<size_t>(tensor->bytes()));
  }
  return bytes;
}

v1::ExactValue Describe(const ExactValue& value) {
  v1::ExactValue message;
  const absl::Status status = codec::EncodeValue(value, "value", &message).status();
  EXPECT_OK(status);
  return message;
}

v1::ValueTree Describe(const value::ValueTree& tree) {
  v1::ValueTree message;
  const absl::Status status = codec::EncodeTree(tree, "value", &message).status();
  EXPECT_OK(status);
  return message;
}

codec::TreeExpectation AcceptEverything() {
  static const std::vector<KnownContextPtr>& contexts =
      *new std::vector<KnownContextPtr>{SmallContext()};
  return {.contexts = contexts,
          .types = {ValueType::kCiphertext, ValueType::kPlaintext, ValueType::kCompressedPlaintext,
                    ValueType::kPublicKey, ValueType::kRelinearizationKey, ValueType::kRotationKey,
                    ValueType::kConjugationKey, ValueType::kKeySwitchKey},
          .bare_tensors = true,
          .max_payload_bytes = uint64_t{1} << 20};
}

}  // namespace cipherd::testing

#include "core/programs/interpreter.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/execution/cuda_graph_program.h"
#include "core/value/tensor_copy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/programs/plain_interpreter.h"
#include "tests/programs/spec_builder.h"
#include "tests/programs/test_client.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::programs {
namespace {

using ::cipherd::testing::StatusIs;
using execution::CudaGraphProgram;
using ::testing::Each;
using ::testing::HasSubstr;
using Kind = OperationKind;

// A program in which every kind of operation feeds an output of its own.
SpecBuilder EveryOperation() {
  SpecBuilder b(SmallContext());
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> numbers(16);
  for (double& number : numbers) number = uniform(random);
  std::vector<float> diagonals(7 * 64);
  for (float& number : diagonals) number = static_cast<float>(uniform(random));
  b.Constant("numbers", Slots(numbers))
      .Constant("diagonals", HostTensor(value::DType::kFloat32, {7, 64}, diagonals))
      .Constant("offsets", Offsets({0, 127, 5, 16, 40, 21, 1}));
  b.Input("x").Input("y").Input("late", /*depth=*/2, /*scale=*/std::ldexp(1.0, 38));

  b.Add({.name = "sum", .kind = Kind::kAdd, .a = "x", .b = "y"}).Output("sum");
  b.Add({.name = "difference", .kind = Kind::kSubtract, .a = "x", .b = "y"}).Output("difference");
  b.Add({.name = "negative", .kind = Kind::kNegate, .a = "late"}).Output("negative");
  b.Add({.name = "plus", .kind = Kind::kAddPlain, .a = "x", .constant = "numbers"}).Output("plus");
  b.Add({.name = "minus",
         .kind = Kind::kSubtractPlain,
         .a = "late",
         .constant = "numbers",
         .expansion = {.repeat = 2, .tile = true}})
      .Output("minus");

  b.Add({.name = "xy", .kind = Kind::kMultiply, .a = "x", .b = "y"});
  b.Add({.name = "xx", .kind = Kind::kSquare, .a = "x"});
  // Three components: summed, rescaled and dropped before they are relinearized.
  b.Add({.name = "long_sum", .kind = Kind::kAdd, .a = "xy", .b = "xx"});
  b.Add({.name = "long_rescaled", .kind = Kind::kRescale, .a = "long_sum"});
  b.Add({.name = "long_dropped", .kind = Kind::kDropToDepth, .a = "long_rescaled", .depth = 3});
  b.Add({.name = "product", .kind = Kind::kRelinearize, .a = "long_dropped"}).Output("product");

  b.Add({.name = "turned", .kind = Kind::kRotate, .a = "sum", .step = -3}).Output("turned");
  b.Add({.name = "still", .kind = Kind::kRotate, .a = "sum", .step = 128}).Output("still");
  b.Add({.name = "mirrored", .kind = Kind::kConjugate, .a = "sum"}).Output("mirrored");

  b.Add({.name = "weighted_wide",
         .kind = Kind::kMultiplyPlain,
         .a = "difference",
         .constant = "numbers",
         .expansion = {.repeat = 8, .tile = false}});
  b.Add({.name = "weighted", .kind = Kind::kRescale, .a = "weighted_wide"}).Output("weighted");
  b.Add({.name = "transformed_wide",
         .kind = Kind::kLinearTransform,
         .a = "weighted",
         .constant = "diagonals",
         .expansion = {.repeat = 2, .tile = false},
         .offsets = "offsets"});
  b.Add({.name = "transformed", .kind = Kind::kRescale, .a = "transformed_wide"})
      .Output("transformed");

  // Scales that meet only because they are stated: sum of two depths.
  const double q0 = static_cast<double>(b.spec().context.q_primes[0]);
  const double q1 = static_cast<double>(b.spec().context.q_primes[1]);
  const double scale = std::ldexp(1.0, 40);
  const double once = scale * scale / q0;
  const double twice = once * once / q1;
  b.Constant("one", Slots({1}));
  b.Add({.name = "xy_short", .kind = Kind::kRelinearize, .a = "xy"});
  b.Add({.name = "xy_once", .kind = Kind::kRescale, .a = "xy_short"});
  b.Add({.name = "xy_wide",
         .kind = Kind::kMultiplyPlain,
         .a = "xy_once",
         .constant = "one",
         .expansion = {.repeat = 1, .tile = true},
         .result_scale = once * once});
  b.Add({.name = "xy_twice", .kind = Kind::kRescale, .a = "xy_wide", .result_scale = twice});
  b.Add({.name = "x_late", .kind = Kind::kDropToDepth, .a = "x", .depth = 1});
  b.Add({.name = "x_wide",
         .kind = Kind::kLinearTransform,
         .a = "x_late",
         .constant = "diagonals",
         .expansion = {.repeat = 2, .tile = false},
         .offsets = "offsets",
         .result_scale = twice * q1});
  b.Add({.name = "x_twice", .kind = Kind::kRescale, .a = "x_wide", .result_scale = twice});
  b.Add({.name = "met", .kind = Kind::kAdd, .a = "xy_twice", .b = "x_twice"}).Output("met");
  return b;
}

std::map<std::string, ComplexSlots> RandomInputs(const ProgramSpec& spec, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::map<std::string, ComplexSlots> inputs;
  for (const ProgramInput& input : spec.inputs) {
    ComplexSlots& slots = inputs[input.name];
    for (int64_t j = 0; j < spec.context.slot_count(); ++j) {
      slots.push_back({uniform(random), uniform(random)});
    }
  }
  return inputs;
}

double MaxDifference(const ComplexSlots& a, const ComplexSlots& b) {
  double max = a.size() == b.size() ? 0 : INFINITY;
  for (size_t j = 0; j < std::min(a.size(), b.size()); ++j) {
    max = std::max(max, std::abs(a[j] - b[j]));
  }
  return max;
}

// For every slot of every output of the small programs here. Errors of coefficients are taken as
// independent; a slot is the sum of N = 2^8 of them by numbers of magnitude 1, so of 2^4 times
// their standard deviation. Fresh: 3.19, so 2^5.7 a slot. Rounding by a rescale or a key switch:
// 1/sqrt(12) in each component, the second times s: 0.29 · sqrt(1 + 2N/3) = 3.8, so 2^5.9 a slot;
// with a third one times s^2 (coefficients of deviation 2/3 · sqrt(N)) 0.29 · 171, so 2^9.6 a slot.
// Key switching itself, N · 2^80 · 3.19 / P, is below one. Slots are below 1.5 in magnitude,
// constants below 1:
//   product: fresh errors by 1.5, four times, 2^8.3, and 2^9.6 of rounding: below 2^10.1;
//   transform: weighted 2^6.9, a rotation 2^5.9, together below 2^7.5, seven times: below 2^10.3.
// Eight deviations of that over the scale of 2^40: 2^-26.7. At 2^38 stand fresh errors only:
// 2^-29.3.
constexpr double kTolerance = 1.0 / (1 << 26);

class InterpreterTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, cipherd::testing::OpenTestDevice(GetParam()));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream("compute"));
  }

  void Bind(const SpecBuilder& builder) {
    ASSERT_OK_AND_ASSIGN(program_, CheckProgram(builder.Build(), builder.constants(),
                                                ckks::SecurityPolicy::kAllowInsecure));
    ASSERT_OK_AND_ASSIGN(device_context_,
                         ckks::DeviceContext::Create(program_->context, *device_, *stream_));
    ASSERT_OK_AND_ASSIGN(placeholder_, PlaceholderKey::Make(*device_context_, *stream_));
    ASSERT_OK_AND_ASSIGN(interpreter_, Interpreter::Make(program_, *device_context_, *stream_));
    ASSERT_OK_AND_ASSIGN(function_, interpreter_->MakeFunction());
  }

  absl::StatusOr<std::unique_ptr<CudaGraphProgram>> Capture() {
    CIPHERD_ASSIGN_OR_RETURN(std::vector<value::ValueTree> examples,
                             interpreter_->ExampleInputs(*placeholder_, *stream_));
    return CudaGraphProgram::Capture(function_, std::move(examples));
  }

  void ExpectPlain(const std::map<std::string, ComplexSlots>& inputs,
                   const std::map<std::string, ComplexSlots>& outputs) {
    const auto plain = EvaluatePlain(program_->spec, *program_->constants, inputs);
    for (const ProgramOutput& output : program_->spec.outputs) {
      EXPECT_LT(MaxDifference(outputs.at(output.name), plain.at(output.edge)), kTolerance)
          << output.name;
    }
  }

  // The words of every output.
  absl::StatusOr<std::vector<std::vector<uint64_t>>> Words(const value::ValueTree& outputs) {
    std::vector<std::vector<uint64_t>> words;
    for (const value::ValueTree& output : outputs.children()) {
      CIPHERD_ASSIGN_OR_RETURN(
          const value::Tensor tensor,
          value::CopyToHost(*output.exact_value().FindTensor("data"), *stream_));
      const uint64_t* data = tensor.data_as<uint64_t>();
      words.emplace_back(data, data + tensor.element_count());
    }
    return words;
  }

  // In the order of their release, last to first.
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Stream> stream_;
  std::shared_ptr<const CheckedProgram> program_;
  std::unique_ptr<ckks::DeviceContext> device_context_;
  std::shared_ptr<const PlaceholderKey> placeholder_;
  std::shared_ptr<const Interpreter> interpreter_;
  execution::ProgramFunction function_;
};

TEST_P(InterpreterTest, EveryOperationDecryptsToThePlainResult) {
  ASSERT_NO_FATAL_FAILURE(Bind(EveryOperation()));
  ASSERT_OK_AND_ASSIGN(auto client, TestClient::Make(program_, 1, *stream_));
  const auto inputs = RandomInputs(program_->spec, 1);
  ASSERT_OK_AND_ASSIGN(const auto encrypted, client->Encrypt(inputs));
  ASSERT_OK_AND_ASSIGN(const value::ValueTree outputs, function_(encrypted, *stream_));
  ASSERT_OK_AND_ASSIGN(const auto decrypted, client->Decrypt(outputs));
  ExpectPlain(inputs, decrypted);
}

TEST_P(InterpreterTest, AReplayEqualsTheEagerEvaluationBitForBit) {
  ASSERT_NO_FATAL_FAILURE(Bind(EveryOperation()));
  ASSERT_OK_AND_ASSIGN(const auto captured, Capture());
  ASSERT_OK_AND_ASSIGN(auto client, TestClient::Make(program_, 1, *stream_));
  for (uint64_t seed : {1, 2}) {
    const auto inputs = RandomInputs(program_->spec, seed);
    ASSERT_OK_AND_ASSIGN(const auto encrypted, client->Encrypt(inputs));
    ASSERT_OK_AND_ASSIGN(const value::ValueTree eager, function_(encrypted, *stream_));
    ASSERT_OK_AND_ASSIGN(const auto eager_words, Words(eager));
    ASSERT_OK_AND_ASSIGN(const value::ValueTree replayed, captured->Replay(encrypted, *stream_));
    ASSERT_OK_AND_ASSIGN(const auto replayed_words, Words(replayed));
    EXPECT_EQ(eager_words, replayed_words);
    ASSERT_OK_AND_ASSIGN(const auto decrypted, client->Decrypt(replayed));
    ExpectPlain(inputs, decrypted);
  }
}

TEST_P(InterpreterTest, AnOutputCanBeReadOnceItsEventSaysSo) {
  ASSERT_NO_FATAL_FAILURE(Bind(EveryOperation()));
  const size_t output_count = program_->spec.outputs.size();
  execution::OutputEvents events;
  for (size_t i = 0; i < output_count; ++i) {
    ASSERT_OK_AND_ASSIGN(events.emplace_back(), device_->CreateEvent());
  }
  ASSERT_OK_AND_ASSIGN(auto function, interpreter_->MakeFunction(events));
  ASSERT_OK_AND_ASSIGN(auto examples, interpreter_->ExampleInputs(*placeholder_, *stream_));
  ASSERT_OK_AND_ASSIGN(const auto captured, CudaGraphProgram::Capture(function, examples));
  ASSERT_OK_AND_ASSIGN(auto client, TestClient::Make(program_, 1, *stream_));
  ASSERT_OK_AND_ASSIGN(auto replaying, device_->CreateStream("replaying"));
  for (uint64_t seed : {1, 2, 3}) {
    ASSERT_OK_AND_ASSIGN(const auto encrypted, client->Encrypt(RandomInputs(program_->spec, seed)));
    ASSERT_OK_AND_ASSIGN(const value::ValueTree eager, function_(encrypted, *stream_));
    ASSERT_OK_AND_ASSIGN(const auto eager_words, Words(eager));
    ASSERT_OK_AND_ASSIGN(const value::ValueTree replayed, captured->Replay(encrypted, *replaying));
    for (size_t i = 0; i < output_count; ++i) {
      ASSERT_OK(stream_->Wait(*events[i]));
      ASSERT_OK_AND_ASSIGN(const auto words, Words(value::ValueTree::Tuple({replayed[i]})));
      EXPECT_EQ(words[0], eager_words[i]) << program_->spec.outputs[i].name;
    }
    ASSERT_OK(replaying->Synchronize());
  }
  events.pop_back();
  EXPECT_THAT(interpreter_->MakeFunction(events).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("output_events")));
}

TEST_P(InterpreterTest, AnotherTableBindsAnotherTenantsKeysToTheSameGraph) {
  ASSERT_NO_FATAL_FAILURE(Bind(EveryOperation()));
  ASSERT_OK_AND_ASSIGN(const auto captured, Capture());
  ASSERT_OK_AND_ASSIGN(auto first, TestClient::Make(program_, 1, *stream_));
  ASSERT_OK_AND_ASSIGN(auto second, TestClient::Make(program_, 2, *stream_));
  const auto inputs = RandomInputs(program_->spec, 3);
  for (TestClient* client : {first.get(), second.get(), first.get()}) {
    ASSERT_OK_AND_ASSIGN(const auto encrypted, client->Encrypt(inputs));
    ASSERT_OK_AND_ASSIGN(const value::ValueTree outputs, captured->Replay(encrypted, *stream_));
    ASSERT_OK_AND_ASSIGN(const auto decrypted, client->Decrypt(outputs));
    ExpectPlain(inputs, decrypted);
  }
  // The table is what tells them apart: with the other's, what keys make decrypts to noise.
  ASSERT_OK_AND_ASSIGN(auto mixed, first->Encrypt(inputs));
  ASSERT_OK_AND_ASSIGN(const auto others, second->Encrypt(inputs));
  mixed.back() = others.back();
  ASSERT_OK_AND_ASSIGN(const value::ValueTree outputs, captured->Replay(mixed, *stream_));
  ASSERT_OK_AND_ASSIGN(const auto decrypted, first->Decrypt(outputs));
  const auto plain = EvaluatePlain(program_->spec, *program_->constants, inputs);
  EXPECT_GT(MaxDifference(decrypted.at("turned"), plain.at("turned")), 1);
  EXPECT_LT(MaxDifference(decrypted.at("sum"), plain.at("sum")), kTolerance);
}

// Both block until work on any stream can read what they made.
TEST_P(InterpreterTest, ExamplesAndPlaceholderAreReadableFromAnotherStream) {
  ASSERT_NO_FATAL_FAILURE(Bind(EveryOperation()));
  ASSERT_OK_AND_ASSIGN(const auto other, device_->CreateStream("other"));
  // What the allocator gives out is not zero by chance.
  {
    ASSERT_OK_AND_ASSIGN(const value::Tensor dirt,
                         value::Tensor::AllocateOn(*stream_, value::DType::kUint64, {1 << 15}));
    ASSERT_OK(stream_->FillAsync(dirt.data(), 0xab, dirt.bytes()));
    ASSERT_OK(stream_->Synchronize());
  }
  ASSERT_OK_AND_ASSIGN(const auto placeholder, PlaceholderKey::Make(*device_context_, *stream_));
  ASSERT_OK_AND_ASSIGN(
      const auto key_words,
      cipherd::testing::Download<uint64_t>(reinterpret_cast<const void*>(placeholder->address()),
                                           placeholder->bytes() / 8, *other));
  EXPECT_EQ(key_words.size(), 2u * 2 * 6 * 256);
  EXPECT_THAT(key_words, Each(0));

  ASSERT_OK_AND_ASSIGN(const auto examples, interpreter_->ExampleInputs(*placeholder, *stream_));
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const value::Tensor zero,
                         value::CopyToHost(*examples[i].exact_value().FindTensor("data"), *other));
    EXPECT_THAT(std::span(zero.data_as<uint64_t>(), zero.element_count()), Each(0)) << i;
  }
  ASSERT_OK_AND_ASSIGN(const value::Tensor table, value::CopyToHost(examples[3].tensor(), *other));
  EXPECT_THAT(std::span(table.data_as<uint64_t>(), table.element_count()),
              Each(placeholder->address()));
}

TEST_P(InterpreterTest, EdgesAreFreedAfterTheirLastReader) {
  SpecBuilder builder(SmallContext());
  builder.Input("x");
  std::string edge = "x";
  for (int i = 0; i < 40; ++i) {
    const std::string next = absl::StrCat("n", i);
    builder.Add({.name = next, .kind = Kind::kNegate, .a = edge});
    edge = next;
  }
  builder.Output(edge);
  ASSERT_NO_FATAL_FAILURE(Bind(builder));
  ASSERT_OK_AND_ASSIGN(const auto inputs, interpreter_->ExampleInputs(*placeholder_, *stream_));
  const size_t before = device_->device_memory_stats().peak_allocated_bytes;
  ASSERT_OK_AND_ASSIGN(const value::ValueTree outputs, function_(inputs, *stream_));
  ASSERT_OK(stream_->Synchronize());
  const size_t growth = device_->device_memory_stats().peak_allocated_bytes - before;
  EXPECT_LE(growth, static_cast<size_t>(3 * program_->input_bytes()));
}

TEST_P(InterpreterTest, ConstantsAreResidentOnce) {
  ASSERT_NO_FATAL_FAILURE(Bind(EveryOperation()));
  // Limbs: plus 4, minus 2 (depth 2), weighted 4, one 3 (depth 1), twice seven diagonals of 3 and
  // those of P.
  ASSERT_TRUE(program_->plans.at("transformed_wide").hoists_twice());
  const int p_count = program_->spec.context.p_count();
  EXPECT_EQ(interpreter_->constant_bytes(), (4 + 2 + 4 + 3 + 2 * 7 * (3 + p_count)) * 256 * 8);
}

TEST_P(InterpreterTest, InputsInAnotherStateAreRefusedByName) {
  ASSERT_NO_FATAL_FAILURE(Bind(EveryOperation()));
  ASSERT_OK_AND_ASSIGN(const auto good, interpreter_->ExampleInputs(*placeholder_, *stream_));
  const auto refusal = [&](const std::vector<value::ValueTree>& inputs) {
    return function_(inputs, *stream_).status();
  };
  ASSERT_OK(refusal(good));

  std::vector<value::ValueTree> inputs = good;
  inputs.pop_back();
  EXPECT_THAT(refusal(inputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs: expected 3 ciphertexts and a key table, got 3 values")));
  inputs = good;
  std::swap(inputs[1], inputs[3]);
  EXPECT_THAT(refusal(inputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs[1] ('y'): expected a ciphertext, got a tensor")));
  inputs = good;
  inputs[1] = good[2];
  EXPECT_THAT(refusal(inputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs[1] ('y'): expected 2 components of scale 2^40 at depth 0, "
                                 "got 2 components of scale 2^38 at depth 2")));
  inputs = good;
  value::ExactValue coefficients = good[0].exact_value();
  coefficients.metadata.domain = value::PolynomialDomain::kCoefficient;
  inputs[0] = value::ValueTree::Value(coefficients);
  EXPECT_THAT(refusal(inputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs[0] ('x').domain: expected ntt, got coefficient")));
  inputs = good;
  ASSERT_OK_AND_ASSIGN(value::Tensor short_table,
                       value::Tensor::AllocateOn(*stream_, value::DType::kUint64, {1}));
  inputs[3] = value::ValueTree::Leaf(std::move(short_table));
  EXPECT_THAT(refusal(inputs), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("key table: expected a contiguous uint64")));
}

TEST_P(InterpreterTest, AnotherContextIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Bind(EveryOperation()));
  ckks::ContextParameters other = SmallContext();
  other.default_scale *= 2;
  ASSERT_OK_AND_ASSIGN(const auto other_context,
                       ckks::Context::Create(other, ckks::SecurityPolicy::kAllowInsecure));
  ASSERT_OK_AND_ASSIGN(const auto tables,
                       ckks::DeviceContext::Create(other_context, *device_, *stream_));
  EXPECT_THAT(Interpreter::Make(program_, *tables, *stream_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device_context: expected context " + program_->context->id())));
  ASSERT_OK_AND_ASSIGN(const auto foreign, PlaceholderKey::Make(*tables, *stream_));
  EXPECT_THAT(interpreter_->ExampleInputs(*foreign, *stream_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("placeholder")));
}

INSTANTIATE_TEST_SUITE_P(Devices, InterpreterTest,
                         ::testing::ValuesIn(cipherd::testing::DevicesUnderTest()),
                         cipherd::testing::DeviceParamName);

}  // namespace
}  // namespace cipherd::programs

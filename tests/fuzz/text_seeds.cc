// Seeds of targets that read text.
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "proto/codec/model_codec.h"
#include "proto/codec/program_codec.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/service_program.h"

namespace cipherd::fuzz {
namespace {

value::Tensor Numbers(std::vector<int64_t> shape) {
  value::Tensor tensor = *value::Tensor::AllocateHost(value::DType::kFloat64, std::move(shape));
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.data_as<double>()[i] = 0.25 * static_cast<double>(i) - 1;
  }
  return tensor;
}

value::Tensor Indices() {
  value::Tensor tensor = *value::Tensor::AllocateHost(value::DType::kInt64, {2});
  tensor.data_as<int64_t>()[0] = 1;
  tensor.data_as<int64_t>()[1] = 0;
  return tensor;
}

// Every kind of operation, with its constants.
planning::Model EveryKind() {
  using planning::ModelKind;
  planning::Model model;
  model.name = "every_kind";
  model.inputs = {{"x", {1, 4, 4}, 0, 1, "pixels"}, {"y", {3}, -3, 2}};
  model.operations = {
      {.name = "o1",
       .kind = ModelKind::kConv2d,
       .a = "x",
       .weight = "kernel",
       .strides = {1, 2},
       .pads = {1, 1, 1, 1}},
      {.name = "o2",
       .kind = ModelKind::kAveragePool2d,
       .a = "o1",
       .strides = {2, 2},
       .kernel = {2, 2},
       .count_include_pad = true},
      {.name = "o3", .kind = ModelKind::kReshape, .a = "o2", .shape = {-1}},
      {.name = "o4", .kind = ModelKind::kLinear, .a = "o3", .weight = "w", .bias = "b"},
      {.name = "o5", .kind = ModelKind::kSquare, .a = "o4"},
      {.name = "o6", .kind = ModelKind::kMultiply, .a = "o5", .b = "y"},
      {.name = "o7", .kind = ModelKind::kAdd, .a = "o6", .b = "y"},
      {.name = "o8", .kind = ModelKind::kSubtract, .a = "o7", .b = "o4"},
      {.name = "o9", .kind = ModelKind::kNegate, .a = "o8"},
      {.name = "o10", .kind = ModelKind::kAddConstant, .a = "o9", .constant = "b"},
      {.name = "o11", .kind = ModelKind::kMultiplyConstant, .a = "o10", .constant = "b"},
      {.name = "o12",
       .kind = ModelKind::kPolynomial,
       .a = "o11",
       .polynomial = {planning::PolynomialBasis::kChebyshev, {0.1, 0, -2.5e-9}, -8, 4.25}},
      {.name = "o13", .kind = ModelKind::kSelect, .a = "o12", .indices = "i"},
      {.name = "o14", .kind = ModelKind::kSum, .a = "o13", .axes = {-1}, .keep_axes = true},
  };
  model.outputs = {{"score", "o14"}};
  model.constants.emplace("kernel", Numbers({1, 1, 3, 3}));
  model.constants.emplace("w", Numbers({3, 2}));
  model.constants.emplace("b", Numbers({3}));
  model.constants.emplace("i", Indices());
  return model;
}

std::string ContentOf(const char* path) {
  std::ifstream file(path);
  Require(file.good(), path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

void AddTextSeeds(const SeedSink& add) {
  add("program_text", "square_sum", codec::PrintProgramText(ServiceProgram()).value());
  add("program_text", "fashion_mlp",
      ContentOf(CIPHERD_SOURCE_DIR "/deploy/programs/fashion_mlp/program.textproto"));

  const v1::Model model = codec::EncodeModel(EveryKind()).value();
  std::string text;
  Require(google::protobuf::TextFormat::PrintToString(model, &text), "a model has a text form");
  add("model_text", "every_kind", text);
  std::string json;
  Require(google::protobuf::util::MessageToJsonString(model, &json).ok(), "and one in JSON");
  add("model_json", "every_kind", json);

  add("serving", "every_field",
      "instances: 2 batch_sizes: [1, 4] max_batch_delay_seconds: 0.25 queue_capacity: 5 "
      "priority: -1 default_timeout_seconds: 10 longest_timeout_seconds: 20 warmup: 0 "
      "constant_memory_bytes: 4096");
  add("trace_context", "version_00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  add("trace_context", "later", "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what");
  const std::string claims =
      R"({"iss":"idp","sub":"alice","exp":2000.5,"nbf":0,"iat":1,"aud":["billing","cipherd"]})";
  add("token", "named_key",
      R"({"alg":"ES256","kid":"k1","typ":"JWT"})"
      "\n" +
          claims);
  add("token", "other_order",
      R"({"kid":"k1","more":{"a":[1,null]},"alg":"ES256"})"
      "\n"
      R"({"aud":"cipherd","sub":"auth0|5 \u0041","exp":1e300,"iss":"idp"})");
  add("vectors_csv", "two", "# a comment\n1.5, 2, -3e-2\n\n4,5,6\n");
  add("vectors_json", "two", "[[1.5, 2, -3e-2], [4]]");
  add("vectors_json", "one", "[1.5, 2, -0.03]");
}

}  // namespace cipherd::fuzz

// A program in binary form, and what checks its meaning.
#include <utility>
#include <vector>

#include "core/programs/program_checker.h"
#include "proto/codec/program_codec.h"
#include "tests/fuzz/codec_refusal.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {
namespace {

// Beyond it tables are computed for milliseconds, and nothing is done that is not done below.
constexpr int kMaxLogN = 6;

template <typename T>
value::Tensor Filled(value::DType dtype, std::vector<int64_t> shape, T first) {
  value::Tensor tensor = *value::Tensor::AllocateHost(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.data_as<T>()[i] = first + static_cast<T>(i);
  }
  return tensor;
}

programs::Constants SomeConstants() {
  return {{"w", Filled<float>(value::DType::kFloat32, {2, 8}, 0.5f)},
          {"b", Filled<double>(value::DType::kFloat64, {8}, -1.25)},
          {"o", Filled<int64_t>(value::DType::kInt64, {2}, 2)}};
}

}  // namespace

bool Decode(std::string_view bytes) {
  const auto message = ParseMessage<v1::Program>(bytes);
  if (!message.has_value()) return false;
  auto program = codec::DecodeProgram(*message, "program");
  if (!program.ok()) return RefusedByCodec(program.status());
  const auto again = codec::EncodeProgram(*program);
  Require(again.ok() && codec::DecodeProgram(*again, "again").ok(),
          "what was read is written and read");
  if (program->context.log_n > kMaxLogN) return false;
  const auto checked = programs::CheckProgram(*std::move(program), SomeConstants(),
                                              ckks::SecurityPolicy::kAllowInsecure);
  if (!checked.ok()) return Refused(checked.status());
  Require((*checked)->input_bytes() > 0 && (*checked)->output_bytes() > 0,
          "a program that can run takes and gives something");
  return true;
}

}  // namespace cipherd::fuzz

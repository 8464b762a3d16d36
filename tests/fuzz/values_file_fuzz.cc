// A client's file of encrypted values. The hash at its end is put there, so that all before it is
// read.
#include "client/files/values_file.h"
#include "core/execution/value_tree_signature.h"
#include "tests/codec/wire_values.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {
namespace {

using value::ValueTree;

client::ProgramDescription Expected() {
  client::ProgramDescription program;
  program.name = "p";
  program.known_context = testing::SmallContext();
  program.input_signature = *execution::ValueTreeSignature::FromTree(
      ValueTree::Tuple({ValueTree::Value(testing::MakeCiphertext(*program.known_context, 1))}));
  return program;
}

}  // namespace

bool Decode(std::string_view bytes) {
  SilenceProtobuf();
  static const auto& program = *new client::ProgramDescription(Expected());
  const std::string file = WithHash(bytes);
  const auto values =
      client::DecodeValuesFile({reinterpret_cast<const uint8_t*>(file.data()), file.size()},
                               "values", program, program.input_signature, codec::WireLimits());
  if (!values.ok()) return Refused(values.status());
  Require(program.input_signature.Validate(values->tree).ok(), "values are those of the program");
  return true;
}

}  // namespace cipherd::fuzz

// A program as a daemon describes it, before a client makes keys for it.
#include "client/program_description.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {
namespace {

// Beyond it tables are computed for milliseconds, and nothing is done that is not done below.
constexpr uint32_t kMaxLogN = 6;

}  // namespace

bool Decode(std::string_view bytes) {
  const auto message = ParseMessage<v1::GetProgramResponse>(bytes);
  if (!message.has_value() || message->context().log_n() > kMaxLogN) return false;
  const auto program =
      client::ProgramDescription::FromMessage(*message, ckks::SecurityPolicy::kAllowInsecure);
  if (!program.ok()) return Refused(program.status());
  Require((*program)->known_context->id() == (*program)->context->id(), "a context has one id");
  return true;
}

}  // namespace cipherd::fuzz

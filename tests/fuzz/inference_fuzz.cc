// A request of the Open Inference Protocol.
#include "tests/fuzz/codec_refusal.h"
#include "tests/fuzz/message_bytes.h"
#include "tests/inference/infer_exchange.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  static const auto& exchange = *new testing::InferExchange;
  const auto request = ParseMessage<inference::ModelInferRequest>(bytes);
  if (!request.has_value()) return false;
  const auto values = exchange.Receive(*request);
  if (!values.ok()) return RefusedByCodec(values.status());
  Require(exchange.signature.Validate(*values).ok(), "values are those of the program");
  return true;
}

}  // namespace cipherd::fuzz

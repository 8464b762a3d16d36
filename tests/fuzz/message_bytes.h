// Messages out of a target's bytes.
#pragma once

#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_target.h"

namespace cipherd::fuzz {

// Protobuf logs strings that are no UTF-8, of which there are many here.
inline void SilenceProtobuf() {
  [[maybe_unused]] static auto& silencer = *new google::protobuf::LogSilencer;
}

// Nothing where protobuf, whose reader is not ours to test, refuses them.
template <typename Message>
std::optional<Message> ParseMessage(std::string_view bytes) {
  SilenceProtobuf();
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  return message;
}

// Several messages in one input: each behind its length, 16 bits, little-endian. One that is longer
// than what is left is what is left, so that no input is without meaning.
class Pieces {
 public:
  explicit Pieces(std::string_view bytes) : rest_(bytes) {}

  bool is_empty() const { return rest_.size() < 2; }
  // Requires that it is not empty.
  std::string_view Next() {
    const size_t length = Byte(0) | size_t{Byte(1)} << 8;
    const std::string_view piece = rest_.substr(2, length);
    rest_.remove_prefix(2 + piece.size());
    return piece;
  }

 private:
  uint8_t Byte(size_t i) const { return static_cast<uint8_t>(rest_[i]); }

  std::string_view rest_;
};

// Adds a piece of at most 65535 bytes.
inline void AppendPiece(std::string_view piece, std::string& bytes) {
  Require(piece.size() <= UINT16_MAX, "a piece has its length in 16 bits");
  bytes.push_back(static_cast<char>(piece.size()));
  bytes.push_back(static_cast<char>(piece.size() >> 8));
  bytes += piece;
}

}  // namespace cipherd::fuzz

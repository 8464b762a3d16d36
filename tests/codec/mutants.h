// Bytes that are almost those of a lawful message.
#pragma once

#include <functional>
#include <string>

namespace cipherd::testing {

// Calls `receive` with `bytes` with every bit flipped, every byte replaced or left out, and every
// length cut.
inline void ForEachMutant(const std::string& bytes,
                          const std::function<void(const std::string& mutant)>& receive) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string mutant = bytes;
    for (int bit = 0; bit < 8; ++bit) {
      mutant[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      receive(mutant);
    }
    for (const char byte : {'\x00', '\x7f', '\x80', '\xff'}) {
      mutant[i] = byte;
      receive(mutant);
    }
    receive(bytes.substr(0, i));
    receive(bytes.substr(i));
    receive(bytes.substr(0, i) + bytes.substr(i + 1));
  }
}

}  // namespace cipherd::testing

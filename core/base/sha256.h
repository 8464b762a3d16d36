// SHA-256 (FIPS 180-4), by OpenSSL: content addresses and context ids.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace cipherd::base {

using Sha256Digest = std::array<uint8_t, 32>;

// Incremental hash of a byte stream. Not thread-safe. Update may be called any number of times,
// Finish once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::span<const uint8_t> bytes);
  void Update(const void* data, size_t size) {
    Update(std::span(static_cast<const uint8_t*>(data), size));
  }
  Sha256Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest Sha256Of(std::span<const uint8_t> bytes);

// 64 lower-case hexadecimal digits.
std::string ToHex(const Sha256Digest& digest);

}  // namespace cipherd::base

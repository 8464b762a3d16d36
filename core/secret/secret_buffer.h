// Memory for secrets: wiped before it is given back.
#pragma once

#include <openssl/crypto.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace cipherd::secret {

// An array of `T` (trivial) that is overwritten with zeros before its memory is released, also by a
// move assignment over it. Move-only: copies of a secret are made on purpose or not at all.
// `Allocator` is a parameter so that a test can look at what is given back.
template <typename T, typename Allocator = std::allocator<T>>
class SecretBuffer {
 public:
  SecretBuffer() = default;
  explicit SecretBuffer(size_t count) : words_(count) {}
  ~SecretBuffer() { Wipe(); }
  SecretBuffer(SecretBuffer&& other) noexcept : words_(std::move(other.words_)) {
    other.words_.clear();
  }
  SecretBuffer& operator=(SecretBuffer&& other) noexcept {
    if (this != &other) {
      Wipe();
      words_ = std::move(other.words_);
      other.words_.clear();
    }
    return *this;
  }

  size_t size() const { return words_.size(); }
  T* data() { return words_.data(); }
  const T* data() const { return words_.data(); }
  T& operator[](size_t i) { return words_[i]; }
  const T& operator[](size_t i) const { return words_[i]; }
  std::span<T> span() { return words_; }
  std::span<const T> span() const { return words_; }

 private:
  void Wipe() {
    if (!words_.empty()) OPENSSL_cleanse(words_.data(), words_.size() * sizeof(T));
  }
  std::vector<T, Allocator> words_;
};

}  // namespace cipherd::secret

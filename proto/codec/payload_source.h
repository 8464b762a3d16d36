// The payload of a tree as it leaves: the tensors' bytes, in order, without a copy.
//
//   PayloadSource source = ...;                       // tree_encoder.h
//   while (source.remaining_bytes() > 0) {
//     source.TakeInto(limits.max_chunk_bytes, message.mutable_chunk());
//     stream.Write(message);
//   }
//
// Ownership: shares the tensors' storage. Threading: one thread at a time. Cannot fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/value/tensor.h"

namespace cipherd::codec {

class PayloadSource {
 public:
  PayloadSource() = default;
  // Requires contiguous host tensors whose bytes do not change while this reads.
  explicit PayloadSource(std::vector<value::Tensor> tensors);

  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t remaining_bytes() const { return remaining_bytes_; }

  // The next min(max_bytes, remaining) bytes, across tensors, as pieces in order. The bytes live as
  // long as this source (or the tensors).
  std::vector<std::span<const uint8_t>> Take(uint64_t max_bytes);
  // The same, copied to the end of `chunk`.
  void AppendTo(uint64_t max_bytes, std::string* chunk);
  // The same, in place of what `chunk` held.
  void TakeInto(uint64_t max_bytes, std::string* chunk);

  // Starts again from the first byte, for a retry.
  void Rewind();

 private:
  std::vector<value::Tensor> tensors_;
  uint64_t total_bytes_ = 0;
  uint64_t remaining_bytes_ = 0;
  size_t tensor_index_ = 0;
  uint64_t offset_in_tensor_ = 0;
};

}  // namespace cipherd::codec

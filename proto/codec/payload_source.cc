#include "proto/codec/payload_source.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace cipherd::codec {

// The canonical encoding is little-endian and leaves as it is in memory.
static_assert(std::endian::native == std::endian::little);

PayloadSource::PayloadSource(std::vector<value::Tensor> tensors) : tensors_(std::move(tensors)) {
  for (const value::Tensor& tensor : tensors_) {
    total_bytes_ += static_cast<uint64_t>(tensor.bytes());
  }
  remaining_bytes_ = total_bytes_;
}

std::vector<std::span<const uint8_t>> PayloadSource::Take(uint64_t max_bytes) {
  std::vector<std::span<const uint8_t>> pieces;
  while (max_bytes > 0 && remaining_bytes_ > 0) {
    const value::Tensor& tensor = tensors_[tensor_index_];
    const uint64_t left = static_cast<uint64_t>(tensor.bytes()) - offset_in_tensor_;
    if (left == 0) {
      ++tensor_index_;
      offset_in_tensor_ = 0;
      continue;
    }
    const uint64_t count = std::min(max_bytes, left);
    pieces.emplace_back(tensor.data_as<const uint8_t>() + offset_in_tensor_, count);
    offset_in_tensor_ += count;
    max_bytes -= count;
    remaining_bytes_ -= count;
  }
  return pieces;
}

void PayloadSource::AppendTo(uint64_t max_bytes, std::string* chunk) {
  chunk->reserve(chunk->size() + std::min(max_bytes, remaining_bytes_));
  for (std::span<const uint8_t> piece : Take(max_bytes)) {
    chunk->append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
}

void PayloadSource::TakeInto(uint64_t max_bytes, std::string* chunk) {
  chunk->clear();
  AppendTo(max_bytes, chunk);
}

void PayloadSource::Rewind() {
  remaining_bytes_ = total_bytes_;
  tensor_index_ = 0;
  offset_in_tensor_ = 0;
}

}  // namespace cipherd::codec

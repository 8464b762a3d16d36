// A readable evaluation key that belongs to nobody: what a program is captured with.
//
// Warm-up, capture and first replay read keys before any tenant has sent one. A key of zeros has
// the right shape and lawful residues, and switches everything to zero. One is enough for all slots
// of all key tables of a context on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/ckks/device_context.h"
#include "core/runtime/stream.h"
#include "core/value/tensor.h"

namespace cipherd::programs {

// Immutable and thread-safe.
class PlaceholderKey {
 public:
  // Allocates and clears it on the device of `device_context`, over `stream`; blocks until it can
  // be read. ResourceExhausted where device memory runs out.
  static absl::StatusOr<std::shared_ptr<const PlaceholderKey>> Make(
      const ckks::DeviceContext& device_context, runtime::Stream& stream);

  const std::string& context_id() const { return context_id_; }
  runtime::Device& device() const { return *data_.placement().device; }
  int64_t bytes() const { return data_.bytes(); }
  // What a slot of a key table holds.
  uint64_t address() const { return reinterpret_cast<uint64_t>(data_.data()); }

 private:
  PlaceholderKey(std::string context_id, value::Tensor data)
      : context_id_(std::move(context_id)), data_(std::move(data)) {}

  const std::string context_id_;
  const value::Tensor data_;  // uint64 [words]
};

}  // namespace cipherd::programs

// A strided array of numbers in some memory.
//
// A Tensor is a view that shares ownership of its Storage: copying one copies no bytes. It knows
// its topology (shape, strides, dtype), and reaches where it lives through its storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/device.h"
#include "core/runtime/memory.h"

namespace cipherd::value {

enum class DType : uint8_t {
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat32,
  kFloat64,
  kComplex128
};
enum class Layout : uint8_t { kStrided };

// Bytes of one element.
int64_t ElementBytes(DType dtype);
// "uint64", "float64", ...
std::string_view ToString(DType dtype);
std::string_view ToString(Layout layout);
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << ToString(dtype); }

// Where a tensor is, or is to be. Host memory, pinned or not, is one place ("host"); each device is
// one.
struct Placement {
  runtime::Device* device = nullptr;  // null: host

  static Placement Host() { return {}; }
  static Placement On(runtime::Device& device) { return {&device}; }
  bool is_host() const { return device == nullptr; }
  bool operator==(const Placement&) const = default;
  // "host", "cpu:0", "cuda:1".
  std::string ToString() const;
};
inline std::ostream& operator<<(std::ostream& out, const Placement& placement) {
  return out << placement.ToString();
}

class Tensor {
 public:
  // An empty tensor: uint64, shape [0], no storage.
  Tensor() = default;

  // A view of `storage` starting `byte_offset` bytes in. InvalidArgument where shape and strides
  // differ in length, a dimension or stride is negative, the offset is not a multiple of the
  // element size, or the last element lies outside the storage.
  static absl::StatusOr<Tensor> FromStorage(runtime::StoragePtr storage, int64_t byte_offset,
                                            DType dtype, std::vector<int64_t> shape,
                                            std::vector<int64_t> strides);
  // The same, contiguous in row-major order.
  static absl::StatusOr<Tensor> FromStorage(runtime::StoragePtr storage, int64_t byte_offset,
                                            DType dtype, std::vector<int64_t> shape);

  // New contiguous uninitialised tensors: pageable host memory, pinned host memory of `device`, and
  // device memory for work on `stream`.
  static absl::StatusOr<Tensor> AllocateHost(DType dtype, std::vector<int64_t> shape);
  static absl::StatusOr<Tensor> AllocatePinned(runtime::Device& device, DType dtype,
                                               std::vector<int64_t> shape);
  static absl::StatusOr<Tensor> AllocateOn(runtime::Stream& stream, DType dtype,
                                           std::vector<int64_t> shape);

  DType dtype() const { return dtype_; }
  Layout layout() const { return Layout::kStrided; }
  const std::vector<int64_t>& shape() const { return shape_; }
  // In elements.
  const std::vector<int64_t>& strides() const { return strides_; }
  bool requires_grad() const { return requires_grad_; }
  void set_requires_grad(bool value) { requires_grad_ = value; }

  int64_t element_count() const;
  // element_count · element size.
  int64_t bytes() const { return element_count() * ElementBytes(dtype_); }
  // Row-major without gaps. A tensor without elements is contiguous.
  bool is_contiguous() const;
  // From the first byte of the first element to the last byte of the last one, gaps included; 0 for
  // a tensor without elements.
  int64_t extent_bytes() const;

  // Address of the first element; null for a tensor without bytes. Device memory must not be
  // dereferenced by host code.
  void* data() const;
  template <typename T>
  T* data_as() const {
    return static_cast<T*>(data());
  }
  const runtime::StoragePtr& storage() const { return storage_; }
  Placement placement() const;
  bool is_pinned() const;

 private:
  runtime::StoragePtr storage_;
  int64_t byte_offset_ = 0;
  DType dtype_ = DType::kUint64;
  std::vector<int64_t> shape_ = {0};
  std::vector<int64_t> strides_ = {1};
  bool requires_grad_ = false;
};

// Row-major strides of a contiguous tensor.
std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& shape);

}  // namespace cipherd::value

#include "core/programs/safetensors_writer.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace cipherd::programs {
namespace {

// "" for a dtype that constants do not have.
const char* TypeName(value::DType dtype) {
  switch (dtype) {
    case value::DType::kFloat64:
      return "F64";
    case value::DType::kFloat32:
      return "F32";
    case value::DType::kInt64:
      return "I64";
    case value::DType::kInt32:
      return "I32";
    default:
      return "";
  }
}

absl::Status CheckTensor(const std::string& name, const value::Tensor& tensor) {
  if (*TypeName(tensor.dtype()) == '\0') {
    return absl::InvalidArgumentError(
        absl::StrCat("constant '", name, "': expected float64, float32, int64 or int32, got ",
                     std::string(value::ToString(tensor.dtype()))));
  }
  if (!tensor.is_contiguous() || !tensor.placement().is_host()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "constant '", name, "': expected a contiguous tensor in host memory, got one ",
        tensor.is_contiguous() ? "" : "with gaps ", "in ", tensor.placement().ToString()));
  }
  return absl::OkStatus();
}

// Padded by blanks, so that the tensors begin at a multiple of 8 bytes.
std::string HeaderOf(const Constants& constants) {
  nlohmann::json header = nlohmann::json::object();
  int64_t offset = 0;
  for (const auto& [name, tensor] : constants) {
    header[name] = {{"dtype", TypeName(tensor.dtype())},
                    {"shape", tensor.shape()},
                    {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::span<const uint8_t> BytesOf(const void* data, size_t bytes) {
  return {static_cast<const uint8_t*>(data), bytes};
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, const Constants& constants) {
  for (const auto& [name, tensor] : constants) {
    CIPHERD_RETURN_IF_ERROR(CheckTensor(name, tensor));
  }
  CIPHERD_ASSIGN_OR_RETURN(base::AtomicFile file, base::AtomicFile::Create(path, 0644));
  const std::string header = HeaderOf(constants);
  std::array<uint8_t, 8> length;
  for (size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<uint8_t>(uint64_t{header.size()} >> (8 * i));
  }
  CIPHERD_RETURN_IF_ERROR(file.Write(length));
  CIPHERD_RETURN_IF_ERROR(file.Write(BytesOf(header.data(), header.size())));
  for (const auto& [name, tensor] : constants) {
    CIPHERD_RETURN_IF_ERROR(file.Write(BytesOf(tensor.data(), tensor.bytes())));
  }
  return std::move(file).Commit(base::AtomicFile::Existing::kReplace);
}

}  // namespace cipherd::programs

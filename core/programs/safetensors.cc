#include "core/programs/safetensors.h"

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/refusal.h"
#include "core/base/status_macros.h"
#include "core/programs/input_file.h"
#include "core/programs/safetensors_header.h"

namespace cipherd::programs {
namespace {

constexpr int64_t kPrefixBytes = 8;

// Words of a file are little-endian, as on every machine that this project builds for.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

}  // namespace

absl::StatusOr<Constants> ReadSafetensors(const std::string& path, int64_t max_bytes) {
  CIPHERD_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path, max_bytes));
  if (file.bytes() < kPrefixBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected at least ", kPrefixBytes, " bytes, got ", file.bytes()));
  }
  uint64_t header_bytes = 0;
  CIPHERD_RETURN_IF_ERROR(file.ReadAt(0, &header_bytes, kPrefixBytes));
  const uint64_t header_limit =
      static_cast<uint64_t>(std::min(kMaxSafetensorsHeaderBytes, file.bytes() - kPrefixBytes));
  if (header_bytes > header_limit) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": header length: expected at most ",
                                                   header_limit, " bytes, got ", header_bytes));
  }
  std::string header(header_bytes, '\0');
  CIPHERD_RETURN_IF_ERROR(file.ReadAt(kPrefixBytes, header.data(), header.size()));

  const int64_t data_begin = kPrefixBytes + static_cast<int64_t>(header_bytes);
  absl::StatusOr<std::vector<internal::SafetensorsEntry>> entries =
      internal::ParseSafetensorsHeader(header, file.bytes() - data_begin);
  if (!entries.ok()) return base::At(path, entries.status());

  Constants constants;
  for (internal::SafetensorsEntry& entry : *entries) {
    CIPHERD_ASSIGN_OR_RETURN(value::Tensor tensor,
                             value::Tensor::AllocateHost(entry.dtype, entry.shape));
    CIPHERD_RETURN_IF_ERROR(file.ReadAt(data_begin + entry.begin, tensor.data(), tensor.bytes()));
    constants.emplace(std::move(entry.name), std::move(tensor));
  }
  return constants;
}

}  // namespace cipherd::programs

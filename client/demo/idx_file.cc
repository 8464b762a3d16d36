#include "client/demo/idx_file.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"

namespace cipherd::client {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;
constexpr int kMaxDimensions = 4;

struct CloseGzFile {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

absl::Status Refused(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", what));
}

// At most 1 MiB at once.
bool ReadExactly(gzFile file, uint8_t* bytes, size_t count) {
  while (count > 0) {
    const int read = gzread(file, bytes, static_cast<unsigned>(count));
    if (read <= 0) return false;
    bytes += read;
    count -= static_cast<size_t>(read);
  }
  return true;
}

// Memory grows with what comes: a header may say that anything does.
bool AppendExactly(gzFile file, size_t count, std::vector<uint8_t>& bytes) {
  while (count > 0) {
    const size_t piece = std::min(count, size_t{1} << 20);
    bytes.resize(bytes.size() + piece);
    if (!ReadExactly(file, bytes.data() + bytes.size() - piece, piece)) return false;
    count -= piece;
  }
  return true;
}

}  // namespace

absl::StatusOr<IdxArray> ReadIdxFile(const std::string& path, int64_t max_items) {
  const std::unique_ptr<gzFile_s, CloseGzFile> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) return absl::NotFoundError(absl::StrCat("cannot open '", path, "'"));
  uint8_t head[4];
  if (!ReadExactly(file.get(), head, 4) || head[0] != 0 || head[1] != 0 || head[2] != 8) {
    return Refused(path, "is not an IDX file of unsigned bytes");
  }
  if (head[3] < 1 || head[3] > kMaxDimensions) {
    return Refused(
        path, absl::StrCat("expected 1 to ", kMaxDimensions, " dimensions, got ", int{head[3]}));
  }

  IdxArray array;
  for (int i = 0; i < head[3]; ++i) {
    uint8_t dimension[4];
    if (!ReadExactly(file.get(), dimension, 4)) return Refused(path, "ends within its header");
    array.shape.push_back(int64_t{dimension[0]} << 24 | dimension[1] << 16 | dimension[2] << 8 |
                          dimension[3]);
  }
  array.shape[0] = std::min(array.shape[0], max_items);
  const std::optional<int64_t> bytes = base::CheckedElementCount(array.shape);
  if (!bytes || *bytes < 1 || *bytes > kMaxBytes) {
    return Refused(path, absl::StrCat("expected 1 to ", kMaxBytes, " bytes of items, got ",
                                      bytes.value_or(-1)));
  }
  if (!AppendExactly(file.get(), static_cast<size_t>(*bytes), array.elements)) {
    return Refused(path, "ends early");
  }
  return array;
}

}  // namespace cipherd::client

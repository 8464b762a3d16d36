#include "client/files/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/files/file_writer.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

constexpr uint64_t kDigestBytes = 32;

std::string_view NameOf(files::FileHeader::ContentCase content) {
  switch (content) {
    case files::FileHeader::kSecretKey:
      return "a secret key";
    case files::FileHeader::kKeySet:
      return "evaluation keys";
    case files::FileHeader::kValues:
      return "encrypted values";
    case files::FileHeader::kProgram:
      return "a program";
    case files::FileHeader::CONTENT_NOT_SET:
      break;
  }
  return "unknown content";
}

}  // namespace

absl::Status FileReader::Damaged(std::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("'", path_, "': ", std::string(what)));
}

absl::StatusOr<FileReader> FileReader::Open(const std::string& path,
                                            files::FileHeader::ContentCase content,
                                            const Inspect& inspect) {
  FileReader reader(path, base::FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  if (!reader.fd_.is_open()) return base::ErrnoStatus("cannot open", path);
  const int fd = reader.fd_.get();
  if (inspect) CIPHERD_RETURN_IF_ERROR(inspect(fd));

  struct stat state = {};
  if (fstat(fd, &state) != 0) return base::ErrnoStatus("cannot look at", path);
  if (!S_ISREG(state.st_mode)) return reader.Damaged("is not a file of cipherctl");
  CIPHERD_RETURN_IF_ERROR(reader.Begin(static_cast<uint64_t>(state.st_size), content));
  return reader;
}

absl::StatusOr<FileReader> FileReader::FromBytes(std::span<const uint8_t> bytes,
                                                 const std::string& name,
                                                 files::FileHeader::ContentCase content) {
  FileReader reader(name, base::FileDescriptor());
  reader.bytes_ = bytes;
  CIPHERD_RETURN_IF_ERROR(reader.Begin(bytes.size(), content));
  return reader;
}

absl::Status FileReader::Begin(uint64_t total_bytes, files::FileHeader::ContentCase content) {
  if (total_bytes < sizeof(kFileMagic) + kDigestBytes) return Damaged("is not a file of cipherctl");
  remaining_bytes_ = total_bytes - kDigestBytes;
  return ReadHeader(content);
}

absl::Status FileReader::ReadHeader(files::FileHeader::ContentCase content) {
  uint8_t magic[sizeof(kFileMagic)];
  CIPHERD_RETURN_IF_ERROR(ReadBytes(magic));
  if (!std::equal(std::begin(magic), std::end(magic) - 1, std::begin(kFileMagic))) {
    return Damaged("is not a file of cipherctl");
  }
  if (magic[7] != kFileMagic[7]) {
    return Damaged(absl::StrCat("version: expected ", int{kFileMagic[7]}, ", got ", int{magic[7]}));
  }
  CIPHERD_RETURN_IF_ERROR(ReadMessage(&header_));
  if (header_.content_case() != content) {
    return Damaged(absl::StrCat("expected ", std::string(NameOf(content)), ", got ",
                                std::string(NameOf(header_.content_case()))));
  }
  return absl::OkStatus();
}

absl::Status FileReader::ReadRaw(std::span<uint8_t> bytes) {
  if (!fd_.is_open()) {
    if (bytes.size() > bytes_.size()) return Damaged("ends early");
    std::copy_n(bytes_.begin(), bytes.size(), bytes.begin());
    bytes_ = bytes_.subspan(bytes.size());
    return absl::OkStatus();
  }
  while (!bytes.empty()) {
    const ssize_t count = read(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::ErrnoStatus("cannot read", path_);
    if (count == 0) return Damaged("ends early");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status FileReader::ReadBytes(std::span<uint8_t> bytes) {
  if (bytes.size() > remaining_bytes_) return Damaged("ends early");
  CIPHERD_RETURN_IF_ERROR(ReadRaw(bytes));
  hash_.Update(bytes);
  remaining_bytes_ -= bytes.size();
  return absl::OkStatus();
}

absl::Status FileReader::ReadMessage(google::protobuf::MessageLite* message) {
  uint8_t prefix[4];
  CIPHERD_RETURN_IF_ERROR(ReadBytes(prefix));
  const uint64_t size =
      prefix[0] | uint64_t{prefix[1]} << 8 | uint64_t{prefix[2]} << 16 | uint64_t{prefix[3]} << 24;
  if (size > std::min(kMaxFileMessageBytes, remaining_bytes_)) {
    return Damaged("is damaged (the length of a message)");
  }
  std::string text(size, '\0');
  CIPHERD_RETURN_IF_ERROR(
      ReadBytes(std::span(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  if (!message->ParseFromString(text)) return Damaged("is damaged (a message)");
  return absl::OkStatus();
}

absl::Status FileReader::Finish() {
  if (remaining_bytes_ != 0)
    return Damaged(absl::StrCat("has ", remaining_bytes_, " bytes too many"));
  base::Sha256Digest stated;
  CIPHERD_RETURN_IF_ERROR(ReadRaw(stated));
  if (stated != hash_.Finish()) return Damaged("is damaged (its hash differs)");
  return absl::OkStatus();
}

}  // namespace cipherd::client

#include "client/files/file_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

std::span<const uint8_t> AsBytes(const std::string& text) {
  return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace

absl::StatusOr<FileWriter> FileWriter::Create(std::string path, mode_t mode,
                                              const files::FileHeader& header) {
  CIPHERD_ASSIGN_OR_RETURN(base::AtomicFile file, base::AtomicFile::Create(std::move(path), mode));
  FileWriter writer(std::move(file));
  CIPHERD_RETURN_IF_ERROR(writer.WriteHead(header));
  return writer;
}

absl::StatusOr<FileWriter> FileWriter::InMemory(const files::FileHeader& header) {
  FileWriter writer(std::nullopt);
  CIPHERD_RETURN_IF_ERROR(writer.WriteHead(header));
  return writer;
}

absl::Status FileWriter::WriteHead(const files::FileHeader& header) {
  CIPHERD_RETURN_IF_ERROR(WriteBytes(kFileMagic));
  return WriteMessage(header);
}

absl::Status FileWriter::WriteRaw(std::span<const uint8_t> bytes) {
  if (file_.has_value()) return file_->Write(bytes);
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return absl::OkStatus();
}

absl::Status FileWriter::WriteBytes(std::span<const uint8_t> bytes) {
  hash_.Update(bytes);
  return WriteRaw(bytes);
}

absl::Status FileWriter::WriteMessage(const google::protobuf::MessageLite& message) {
  const std::string text = message.SerializeAsString();
  if (text.size() > kMaxFileMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "file: expected a message of at most ", kMaxFileMessageBytes, " bytes, got ", text.size()));
  }
  const auto size = static_cast<uint32_t>(text.size());
  const uint8_t prefix[4] = {static_cast<uint8_t>(size), static_cast<uint8_t>(size >> 8),
                             static_cast<uint8_t>(size >> 16), static_cast<uint8_t>(size >> 24)};
  CIPHERD_RETURN_IF_ERROR(WriteBytes(prefix));
  return WriteBytes(AsBytes(text));
}

absl::Status FileWriter::WritePayload(codec::PayloadSource payload) {
  std::string chunk;
  while (payload.remaining_bytes() > 0) {
    payload.TakeInto(kChunkBytes, &chunk);
    CIPHERD_RETURN_IF_ERROR(WriteBytes(AsBytes(chunk)));
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Commit(base::AtomicFile::Existing existing) && {
  if (!file_.has_value()) return absl::FailedPreconditionError("file: it is in memory");
  CIPHERD_RETURN_IF_ERROR(WriteRaw(hash_.Finish()));
  return (*std::move(file_)).Commit(existing);
}

std::string FileWriter::TakeBytes() && {
  // Appending does not fail.
  WriteRaw(hash_.Finish()).IgnoreError();
  return std::move(bytes_);
}

}  // namespace cipherd::client

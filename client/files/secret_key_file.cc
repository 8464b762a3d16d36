#include "client/files/secret_key_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/files/file_reader.h"
#include "client/files/file_writer.h"
#include "core/base/file_descriptor.h"
#include "core/base/status_macros.h"
#include "core/secret/secret_buffer.h"
#include "proto/codec/context_codec.h"

namespace cipherd::client {
namespace {

absl::Status CheckIsPrivate(int fd, const std::string& path) {
  struct stat state = {};
  if (fstat(fd, &state) != 0) return base::ErrnoStatus("cannot look at", path);
  if (state.st_uid != geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", path, "': expected a file of user ", geteuid(), ", got one of user ", state.st_uid));
  }
  if ((state.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("'%s': expected mode 0600, got %04o: others may have read the secret key. "
                        "If nobody did, run chmod 600",
                        path, state.st_mode & 07777));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteSecretKeyFile(const std::string& path, const secret::SecretKey& secret_key) {
  files::FileHeader header;
  codec::EncodeContext(secret_key.context()->parameters(),
                       header.mutable_secret_key()->mutable_context());
  CIPHERD_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path, 0600, header));
  const std::span<const int8_t> coefficients = secret_key.coefficients();
  CIPHERD_RETURN_IF_ERROR(file.WriteBytes(
      std::span(reinterpret_cast<const uint8_t*>(coefficients.data()), coefficients.size())));
  return std::move(file).Commit(base::AtomicFile::Existing::kKeep);
}

absl::StatusOr<secret::SecretKey> ReadSecretKeyFile(const std::string& path,
                                                    ckks::SecurityPolicy policy) {
  CIPHERD_ASSIGN_OR_RETURN(FileReader file,
                           FileReader::Open(path, files::FileHeader::kSecretKey,
                                            [&](int fd) { return CheckIsPrivate(fd, path); }));
  CIPHERD_ASSIGN_OR_RETURN(ckks::ContextParameters parameters,
                           codec::DecodeContext(file.header().secret_key().context(), policy,
                                                absl::StrCat("'", path, "'.context")));
  secret::SecretBuffer<int8_t> coefficients(static_cast<size_t>(parameters.ring_degree()));
  CIPHERD_RETURN_IF_ERROR(file.ReadBytes(
      std::span(reinterpret_cast<uint8_t*>(coefficients.data()), coefficients.size())));
  CIPHERD_RETURN_IF_ERROR(file.Finish());
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<const ckks::Context> context,
                           ckks::Context::Create(std::move(parameters), policy));
  return secret::SecretKey::FromCoefficients(std::move(context), coefficients.span());
}

}  // namespace cipherd::client

#include "client/files/values_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/files/file_reader.h"
#include "client/files/file_writer.h"
#include "client/files/payload_file.h"
#include "core/base/status_macros.h"
#include "proto/codec/tree_encoder.h"

namespace cipherd::client {

namespace {

// `values` without their payload, and that.
absl::StatusOr<codec::PayloadSource> Describe(const EncryptedValues& values,
                                              files::FileHeader& header) {
  header.mutable_values()->set_program(values.program);
  header.mutable_values()->set_item_count(static_cast<uint64_t>(values.item_count));
  return codec::EncodeTree(values.tree, "values", header.mutable_values()->mutable_tree());
}

absl::StatusOr<EncryptedValues> ReadValues(FileReader file, const std::string& name,
                                           const ProgramDescription& program,
                                           const execution::ValueTreeSignature& signature,
                                           const codec::WireLimits& limits) {
  const files::ValuesHeader& header = file.header().values();
  if (header.program() != program.name) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "': expected values of program '",
                                                   program.name, "', got values of '",
                                                   header.program(), "'"));
  }
  codec::TreeExpectation expectation;
  expectation.contexts = std::span(&program.known_context, 1);
  expectation.signature = &signature;
  expectation.max_payload_bytes = limits.max_request_bytes;
  expectation.actual_payload_bytes = file.remaining_bytes();
  CIPHERD_ASSIGN_OR_RETURN(
      codec::AdmittedTree admitted,
      codec::AdmitTree(header.tree(), expectation, limits, absl::StrCat("'", name, "'")));
  EncryptedValues values;
  values.program = header.program();
  values.item_count = static_cast<int64_t>(header.item_count());
  CIPHERD_ASSIGN_OR_RETURN(values.tree, ReadPayload(file, std::move(admitted)));
  CIPHERD_RETURN_IF_ERROR(file.Finish());
  return values;
}

}  // namespace

absl::Status WriteValuesFile(const std::string& path, const EncryptedValues& values) {
  files::FileHeader header;
  CIPHERD_ASSIGN_OR_RETURN(codec::PayloadSource payload, Describe(values, header));
  CIPHERD_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path, 0644, header));
  CIPHERD_RETURN_IF_ERROR(file.WritePayload(std::move(payload)));
  return std::move(file).Commit(base::AtomicFile::Existing::kReplace);
}

absl::StatusOr<std::string> EncodeValuesFile(const EncryptedValues& values) {
  files::FileHeader header;
  CIPHERD_ASSIGN_OR_RETURN(codec::PayloadSource payload, Describe(values, header));
  CIPHERD_ASSIGN_OR_RETURN(FileWriter file, FileWriter::InMemory(header));
  CIPHERD_RETURN_IF_ERROR(file.WritePayload(std::move(payload)));
  return std::move(file).TakeBytes();
}

absl::StatusOr<EncryptedValues> ReadValuesFile(const std::string& path,
                                               const ProgramDescription& program,
                                               const execution::ValueTreeSignature& signature,
                                               const codec::WireLimits& limits) {
  CIPHERD_ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path, files::FileHeader::kValues));
  return ReadValues(std::move(file), path, program, signature, limits);
}

absl::StatusOr<EncryptedValues> DecodeValuesFile(std::span<const uint8_t> bytes,
                                                 const std::string& name,
                                                 const ProgramDescription& program,
                                                 const execution::ValueTreeSignature& signature,
                                                 const codec::WireLimits& limits) {
  CIPHERD_ASSIGN_OR_RETURN(FileReader file,
                           FileReader::FromBytes(bytes, name, files::FileHeader::kValues));
  return ReadValues(std::move(file), name, program, signature, limits);
}

}  // namespace cipherd::client

#include "client/files/key_set_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/files/payload_file.h"
#include "core/base/status_macros.h"
#include "proto/codec/tree_encoder.h"
#include "proto/codec/value_admission.h"

namespace cipherd::client {

absl::StatusOr<KeySetFileWriter> KeySetFileWriter::Create(const std::string& path,
                                                          const codec::KnownContext& context,
                                                          int key_count, uint64_t total_bytes) {
  files::FileHeader header;
  header.mutable_key_set()->set_context_id(context.id_bytes());
  header.mutable_key_set()->set_key_count(static_cast<uint32_t>(key_count));
  header.mutable_key_set()->set_total_bytes(total_bytes);
  CIPHERD_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path, 0644, header));
  return KeySetFileWriter(std::move(file));
}

absl::Status KeySetFileWriter::Add(const value::ExactValue& key) {
  v1::ExactValue description;
  CIPHERD_ASSIGN_OR_RETURN(codec::PayloadSource payload,
                           codec::EncodeValue(key, "key", &description));
  CIPHERD_RETURN_IF_ERROR(file_.WriteMessage(description));
  return file_.WritePayload(std::move(payload));
}

absl::Status KeySetFileWriter::Commit() && {
  return std::move(file_).Commit(base::AtomicFile::Existing::kReplace);
}

absl::StatusOr<KeySetFileReader> KeySetFileReader::Open(const std::string& path,
                                                        codec::KnownContextPtr context,
                                                        const codec::WireLimits& limits) {
  CIPHERD_ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path, files::FileHeader::kKeySet));
  if (file.header().key_set().context_id() != context->id_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': expected keys of context ",
                                                   context->id(), ", got keys of another"));
  }
  return KeySetFileReader(std::move(file), std::move(context), limits);
}

absl::StatusOr<value::ExactValue> KeySetFileReader::ReadKey() {
  v1::ExactValue description;
  CIPHERD_RETURN_IF_ERROR(file_.ReadMessage(&description));
  CIPHERD_ASSIGN_OR_RETURN(
      codec::AdmittedValue admitted,
      codec::AdmitValue(description, std::span(&context_, 1), codec::kEvaluationKeyTypes,
                        file_.remaining_bytes(), limits_, "key"));
  CIPHERD_ASSIGN_OR_RETURN(
      const value::ValueTree key,
      ReadPayload(file_, codec::AdmittedTree::FromValue(std::move(admitted), "key")));
  return key.exact_value();
}

}  // namespace cipherd::client

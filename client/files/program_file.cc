#include "client/files/program_file.h"

#include <utility>

#include "client/files/file_reader.h"
#include "client/files/file_writer.h"
#include "core/base/status_macros.h"

namespace cipherd::client {

absl::Status WriteProgramFile(const std::string& path, const v1::GetProgramResponse& program,
                              uint32_t requested_version) {
  files::FileHeader header;
  header.set_program_version(requested_version);
  *header.mutable_program() = program;
  CIPHERD_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path, 0644, header));
  return std::move(file).Commit(base::AtomicFile::Existing::kReplace);
}

absl::StatusOr<StoredProgram> ReadStoredProgram(const std::string& path,
                                                ckks::SecurityPolicy policy) {
  CIPHERD_ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path, files::FileHeader::kProgram));
  CIPHERD_RETURN_IF_ERROR(file.Finish());
  StoredProgram stored;
  stored.message = file.header().program();
  CIPHERD_ASSIGN_OR_RETURN(
      stored.program,
      ProgramDescription::FromMessage(stored.message, policy, file.header().program_version()));
  return stored;
}

absl::StatusOr<ProgramPtr> ReadProgramFile(const std::string& path, ckks::SecurityPolicy policy) {
  CIPHERD_ASSIGN_OR_RETURN(StoredProgram stored, ReadStoredProgram(path, policy));
  return std::move(stored.program);
}

}  // namespace cipherd::client

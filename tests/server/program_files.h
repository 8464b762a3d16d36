// A daemon whose programs' directory changes while it serves.
//
//   class ReloadTest : public ProgramFilesTest {};
//   TEST_F(ReloadTest, …) {
//     programs::ProgramSpec spec = SpecOf("square_sum");
//     spec.version = 4;
//     WriteSpec(spec);                   // square_sum/program.textproto
//     WriteVersion(spec);                // square_sum/4/program.textproto
//     ASSERT_OK(server_->ReloadPrograms());
//   }
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/programs/program_spec.h"
#include "proto/codec/program_codec.h"
#include "tests/server/service_fixture.h"

namespace cipherd::server::testing {

class ProgramFilesTest : public ServiceTest {
 protected:
  std::filesystem::path File(const std::string& program, const std::string& file) {
    return directory_.path() / program / file;
  }
  // Writes the file again, so that its time differs even where the clock of the file system is
  // coarse.
  void Write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    std::filesystem::last_write_time(
        path, std::filesystem::last_write_time(path) + std::chrono::seconds(++write_count_));
  }
  programs::ProgramSpec SpecOf(const std::string& program) {
    std::ifstream file(File(program, "program.textproto"));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return codec::ParseProgramText(text, program).value();
  }
  void WriteSpec(const programs::ProgramSpec& spec) { WriteSpec(spec, spec.name); }
  void WriteVersion(const programs::ProgramSpec& spec) {
    WriteSpec(spec, spec.name + "/" + std::to_string(spec.version));
  }
  // Into the directory `place`.
  void WriteSpec(const programs::ProgramSpec& spec, const std::string& place) {
    Write(File(place, "program.textproto"), codec::PrintProgramText(spec).value());
  }
  // The newest that is ready.
  int64_t ServedVersion(const std::string& program) {
    return (*server_->engine().FindProgram(program))->info().version;
  }

 private:
  int write_count_ = 0;
};

}  // namespace cipherd::server::testing

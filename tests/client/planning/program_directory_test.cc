#include "client/planning/program_directory.h"

#include <filesystem>
#include <memory>
#include <string>

#include "core/planning/edge_magnitudes.h"
#include "core/planning/plan.h"
#include "core/programs/catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/codec/program_codec.h"
#include "tests/planning/plan_circuits.h"
#include "tests/programs/temporary_directory.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

class ProgramDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const planning::Circuit circuit = planning::SmallNetwork();
    ASSERT_OK_AND_ASSIGN(
        const planning::EdgeMagnitudes magnitudes,
        planning::MeasureMagnitudes(circuit, planning::RandomSamples(circuit, 10, 7)));
    ASSERT_OK_AND_ASSIGN(const planning::Plan plan, planning::MakePlan(circuit, magnitudes, {}));
    program_ = plan.program;
  }

  std::string At(const std::string& name) const { return (directory_.path() / name).string(); }

  programs::TemporaryDirectory directory_;
  std::shared_ptr<const programs::CheckedProgram> program_;
};

TEST_F(ProgramDirectoryTest, ACatalogLoadsWhatIsWritten) {
  ASSERT_OK(WriteProgramDirectory(At("network"), *program_));
  ASSERT_OK(WriteProgramDirectory(At("network/1/"), *program_));
  const programs::ProgramCatalog catalog(directory_.path().string(), codec::ParseProgramText, {});
  for (const programs::ProgramPlace& place :
       {programs::ProgramPlace{"network", ""}, programs::ProgramPlace{"network", "1"}}) {
    ASSERT_OK_AND_ASSIGN(const auto loaded, catalog.Load(place));
    EXPECT_EQ(loaded->context->id(), program_->context->id());
    EXPECT_EQ(loaded->edges, program_->edges);
    EXPECT_EQ(loaded->keys.ids(), program_->keys.ids());
    EXPECT_EQ(loaded->constant_scales, program_->constant_scales);
  }
}

TEST_F(ProgramDirectoryTest, WhatIsThereIsNotOverwritten) {
  directory_.Write("network/precious", "x");
  EXPECT_THAT(WriteProgramDirectory(At("network"), *program_),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("network")));
  EXPECT_FALSE(std::filesystem::exists(At("network/program.textproto")));
}

TEST_F(ProgramDirectoryTest, AnotherNameThanTheProgramsIsRefused) {
  EXPECT_THAT(WriteProgramDirectory(At("other"), *program_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected a directory called 'network' or '1'")));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(ProgramDirectoryTest, NothingIsLeftOfADraft) {
  ASSERT_OK(WriteProgramDirectory(At("network"), *program_));
  int count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(directory_.path())) {
    ++count;
  }
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace cipherd::client

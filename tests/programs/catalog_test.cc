#include "core/programs/catalog.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/programs/spec_builder.h"
#include "tests/programs/temporary_directory.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::programs {
namespace {

using ::cipherd::testing::IsOk;
using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 8 bytes of length, 56 of header, the float64 number 2.
std::string OneConstant() {
  const std::string header = R"({"c":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}  )";
  return std::string("\x38\0\0\0\0\0\0\0", 8) + header + std::string("\0\0\0\0\0\0\0\x40", 8);
}

// Stands for the parser of proto/codec. The text is "<name> <constants file>", or "?"; the version
// is 1, or behind the name ("<name>:<version> ...").
absl::StatusOr<ProgramSpec> ParseTestText(std::string_view text, std::string_view path) {
  if (text == "?") {
    return absl::InvalidArgumentError(std::string(path) + ":1:1: expected a program");
  }
  SpecBuilder builder(SmallContext());
  builder.Input("x")
      .Add({.name = "y", .kind = OperationKind::kAddPlain, .a = "x", .constant = "c"})
      .Output("y");
  ProgramSpec spec = builder.Build();
  spec.name = text.substr(0, text.find(' '));
  if (const size_t colon = spec.name.find(':'); colon != std::string::npos) {
    spec.version = std::stoll(spec.name.substr(colon + 1));
    spec.name.resize(colon);
  }
  spec.constants_file = text.substr(text.find(' ') + 1);
  return spec;
}

class Catalog : public ::testing::Test {
 protected:
  Catalog()
      : catalog_(directory_.path(), ParseTestText,
                 {.security = ckks::SecurityPolicy::kAllowInsecure}) {}

  TemporaryDirectory directory_;
  ProgramCatalog catalog_;
};

TEST_F(Catalog, ListsDirectoriesWithAProgramInOrder) {
  directory_.Write("b/program.textproto", "?");
  directory_.Write("a/program.textproto", "a c");
  directory_.Write("notes/readme", "");
  directory_.Write("program.textproto", "a c");
  ASSERT_OK_AND_ASSIGN(const std::vector<ProgramPlace> places, catalog_.List());
  EXPECT_THAT(places, ElementsAre(ProgramPlace{"a", ""}, ProgramPlace{"b", ""}));
}

TEST_F(Catalog, ListsVersionsBesideAndInsteadOfThePlainProgram) {
  directory_.Write("a/program.textproto", "?");
  directory_.Write("a/4/program.textproto", "?");
  directory_.Write("a/notes/readme", "");
  directory_.Write("a/.5/program.textproto", "?");
  directory_.Write("b/12/program.textproto", "?");
  directory_.Write("b/3/program.textproto", "?");
  directory_.Write("c/3/4/program.textproto", "?");
  ASSERT_OK_AND_ASSIGN(const std::vector<ProgramPlace> places, catalog_.List());
  EXPECT_THAT(places, ElementsAre(ProgramPlace{"a", ""}, ProgramPlace{"a", "4"},
                                  ProgramPlace{"b", "12"}, ProgramPlace{"b", "3"}));
}

TEST_F(Catalog, LoadsAVersionWithWhatIsBesideIt) {
  directory_.Write("a/program.textproto", "a c.safetensors");
  directory_.Write("a/serving.textproto", "of the plain one");
  directory_.Write("a/4/program.textproto", "a:4 c.safetensors");
  EXPECT_THAT(catalog_.Load({"a", "4"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("a/4/c.safetensors: ")));
  directory_.Write("a/4/c.safetensors", OneConstant());
  ASSERT_OK_AND_ASSIGN(const auto program, catalog_.Load({"a", "4"}));
  EXPECT_EQ(program->spec.version, 4);
  ASSERT_OK_AND_ASSIGN(auto text, catalog_.ReadFileOf({"a", "4"}, "serving.textproto"));
  EXPECT_EQ(text, std::nullopt);
  directory_.Write("a/4/serving.textproto", "of version 4");
  ASSERT_OK_AND_ASSIGN(text, catalog_.ReadFileOf({"a", "4"}, "serving.textproto"));
  EXPECT_EQ(text, "of version 4");
}

TEST_F(Catalog, ADirectoryOfAnotherVersionIsRefused) {
  for (const char* directory : {"5", "04", "+4", "v4", "4 "}) {
    const std::string place = std::string("a/") + directory;
    directory_.Write(place + "/program.textproto", "a:4 c.safetensors");
    directory_.Write(place + "/c.safetensors", OneConstant());
    EXPECT_THAT(catalog_.Load({"a", directory}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(place + "/program.textproto: version: expected '" + directory +
                                   "', that of its directory, got '4'")));
  }
}

TEST_F(Catalog, AFingerprintIsOfThePlacesOwnFiles) {
  const std::string text = directory_.Write("a/program.textproto", "a c");
  directory_.Write("a/4/program.textproto", "a:4 c");
  const ProgramPlace plain = {"a", ""}, version = {"a", "4"};
  const std::string of_plain = catalog_.FingerprintOf(plain);
  const std::string of_version = catalog_.FingerprintOf(version);
  directory_.Write("a/5/program.textproto", "a:5 c");
  directory_.Write("a/4/serving.textproto", "");
  EXPECT_EQ(catalog_.FingerprintOf(plain), of_plain);
  EXPECT_NE(catalog_.FingerprintOf(version), of_version);
  std::filesystem::last_write_time(
      text, std::filesystem::last_write_time(text) + std::chrono::seconds(1));
  EXPECT_NE(catalog_.FingerprintOf(plain), of_plain);
}

TEST_F(Catalog, AnEmptyDirectoryHoldsNoPrograms) {
  ASSERT_OK_AND_ASSIGN(const std::vector<ProgramPlace> places, catalog_.List());
  EXPECT_THAT(places, IsEmpty());
}

TEST_F(Catalog, AMissingDirectoryIsNotFound) {
  const ProgramCatalog catalog(directory_.path() / "absent", ParseTestText, {});
  EXPECT_THAT(catalog.List(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
}

TEST_F(Catalog, LoadsAProgramWithItsConstants) {
  directory_.Write("a/program.textproto", "a c.safetensors");
  directory_.Write("a/c.safetensors", OneConstant());
  ASSERT_OK_AND_ASSIGN(const auto program, catalog_.Load({.name = "a"}));
  EXPECT_EQ(program->spec.name, "a");
  EXPECT_EQ(program->constants->at("c").data_as<double>()[0], 2.0);
}

TEST_F(Catalog, AnUnknownProgramIsNotFound) {
  EXPECT_THAT(catalog_.Load({.name = "a"}), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(Catalog, NamesThatLeaveTheDirectoryAreNotFound) {
  directory_.Write("program.textproto", ".. c.safetensors");
  directory_.Write("sub/x/program.textproto", "x c.safetensors");
  for (const char* name : {"..", ".", "", "sub/x", "/etc"}) {
    EXPECT_THAT(catalog_.Load({.name = name}),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("not in")))
        << name;
  }
  directory_.Write("a/program.textproto", "a c.safetensors");
  for (const char* version : {"..", ".", "4/..", "/etc"}) {
    EXPECT_THAT(catalog_.Load({"a", version}),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("not in")))
        << version;
  }
}

TEST_F(Catalog, ConstantsFilesThatLeaveTheDirectoryAreRefused) {
  directory_.Write("a/program.textproto", "a ../c.safetensors");
  directory_.Write("c.safetensors", OneConstant());
  EXPECT_THAT(catalog_.Load({.name = "a"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("a/program.textproto: constants_file: expected the name of "
                                       "a file beside it"))));
}

TEST_F(Catalog, ANameOtherThanTheDirectorysIsRefused) {
  directory_.Write("a/program.textproto", "b c.safetensors");
  EXPECT_THAT(catalog_.Load({.name = "a"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("name: expected 'a', that of its directory, "
                                 "got 'b'")));
}

TEST_F(Catalog, ErrorsOfConstantsAndOfTheCheckerNameTheirFile) {
  directory_.Write("a/program.textproto", "a c.safetensors");
  EXPECT_THAT(catalog_.Load({.name = "a"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("a/c.safetensors: ")));
  directory_.Write("a/c.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  EXPECT_THAT(catalog_.Load({.name = "a"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a/program.textproto: program 'a', operation "
                                 "'y': constant 'c' is not in the constants")));
}

TEST_F(Catalog, FilesAboveTheLimitsAreRefused) {
  directory_.Write("a/program.textproto", "a c.safetensors");
  directory_.Write("a/c.safetensors", OneConstant());
  const ProgramCatalog short_text(
      directory_.path(), ParseTestText,
      {.security = ckks::SecurityPolicy::kAllowInsecure, .max_text_bytes = 4});
  EXPECT_THAT(short_text.Load({.name = "a"}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("program.textproto: expected at most 4")));
  const ProgramCatalog small_constants(
      directory_.path(), ParseTestText,
      {.security = ckks::SecurityPolicy::kAllowInsecure, .max_constants_bytes = 71});
  EXPECT_THAT(small_constants.Load({.name = "a"}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("c.safetensors: expected at most 71 bytes, got 72")));
}

TEST_F(Catalog, ThePolicyOfTheCatalogIsTheCheckers) {
  directory_.Write("a/program.textproto", "a c.safetensors");
  directory_.Write("a/c.safetensors", OneConstant());
  const ProgramCatalog secure(directory_.path(), ParseTestText, {});
  EXPECT_THAT(secure.Load({.name = "a"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("128-bit security")));
}

}  // namespace
}  // namespace cipherd::programs

// Values as NumPy arrays, and back.
#include "client/files/tensor_files.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "client/files/npy_array.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::MakeCiphertext;
using ::cipherd::testing::PayloadOf;
using ::cipherd::testing::SmallContext;
using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using value::ValueTree;

class TensorFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "cipherd_tensors_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ASSERT_OK(WriteTensorFiles(directory_ + "/new", {"a", "b"}, values_));
    ASSERT_OK_AND_ASSIGN(signature_, execution::ValueTreeSignature::FromTree(values_));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string File(const std::string& name) const { return directory_ + "/new/" + name + ".npy"; }
  std::string Content(const std::string& name) const {
    std::ifstream file(File(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  absl::StatusOr<ValueTree> Read(const std::map<std::string, std::string>& files) const {
    return ReadTensorFiles(files, {"a", "b"}, signature_, context_);
  }
  absl::Status ReadWithA(const std::string& content) const {
    std::ofstream(File("changed"), std::ios::binary | std::ios::trunc) << content;
    return Read({{"a", File("changed")}, {"b", File("b")}}).status();
  }

  const codec::KnownContextPtr context_ = SmallContext();
  const ValueTree values_ = ValueTree::Tuple({ValueTree::Value(MakeCiphertext(*context_, 0)),
                                              ValueTree::Value(MakeCiphertext(*context_, 1))});
  execution::ValueTreeSignature signature_;
  std::string directory_;
};

TEST_F(TensorFilesTest, ValuesSurviveTheRoundTrip) {
  ASSERT_OK_AND_ASSIGN(const ValueTree back, Read({{"a", File("a")}, {"b", File("b")}}));
  EXPECT_EQ(PayloadOf(back), PayloadOf(values_));
  EXPECT_OK(signature_.Validate(back));
}

// The elements begin at a multiple of 64 bytes, as numpy.lib.format asks, and are the payload.
TEST_F(TensorFilesTest, FilesAreWhatNumPyReads) {
  const std::string content = Content("b");
  ASSERT_OK_AND_ASSIGN(const NpyArray array, ParseNpyArray(content, "b"));
  EXPECT_EQ(array.descr, "<u8");
  EXPECT_THAT(array.shape, ElementsAre(2, 3, 16));
  EXPECT_EQ(array.elements, PayloadOf(ValueTree::Tuple({values_[1]})));
  EXPECT_EQ((content.size() - array.elements.size()) % 64, 0u);
  EXPECT_EQ(content[content.size() - array.elements.size() - 1], '\n');
}

TEST_F(TensorFilesTest, WhatDoesNotFitIsRefused) {
  const auto refused = [](const char* what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  EXPECT_THAT(Read({{"a", File("a")}}), refused("'b': expected a file"));
  EXPECT_THAT(Read({{"a", File("a")}, {"b", File("b")}, {"c", File("b")}}), refused("2 files"));
  EXPECT_THAT(Read({{"a", File("b")}, {"b", File("a")}}), refused("values[0].data.shape"));
  EXPECT_THAT(Read({{"a", File("none")}, {"b", File("b")}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.npy")));
  const std::string whole = Content("a");
  EXPECT_THAT(ReadWithA(whole.substr(0, whole.size() - 8)), refused("byte_count"));
  EXPECT_THAT(ReadWithA(whole + "x"), refused("byte_count"));
  EXPECT_THAT(ReadWithA(NpyHeader("<i8", {2, 4, 16}) + std::string(2 * 4 * 16 * 8, '\0')),
              refused("dtype"));
  std::string above = whole;
  above.back() = '\x7f';
  EXPECT_THAT(ReadWithA(above), refused("residues below the prime"));
  EXPECT_OK(ReadWithA(whole));
}

}  // namespace
}  // namespace cipherd::client

#include "core/programs/safetensors.h"

#include <cstring>
#include <ostream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/programs/temporary_directory.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::programs {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMaxBytes = 1 << 20;

std::string Prefix(uint64_t header_bytes) {
  std::string prefix(8, '\0');
  std::memcpy(prefix.data(), &header_bytes, 8);
  return prefix;
}

std::string File(const std::string& header, const std::string& data) {
  return Prefix(header.size()) + header + data;
}

class Safetensors : public ::testing::Test {
 protected:
  absl::StatusOr<Constants> Read(const std::string& content) {
    return ReadSafetensors(directory_.Write("c.safetensors", content), kMaxBytes);
  }

  TemporaryDirectory directory_;
};

TEST_F(Safetensors, TensorsOfEveryDTypeAreReadAsTheyWereWritten) {
  std::string data;
  const auto append = [&data](auto number) {
    data.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  append(1.5);
  append(-2.0);
  append(0.25f);
  append(int64_t{-7});
  append(int32_t{9});
  // In another order than the data, at an odd alignment, with metadata and padding.
  ASSERT_OK_AND_ASSIGN(const Constants constants,
                       Read(File(R"({"__metadata__":{"made by":"a test"},)"
                                 R"("d":{"dtype":"I32","shape":[1,1],"data_offsets":[28,32]},)"
                                 R"("c":{"dtype":"I64","shape":[1],"data_offsets":[20,28]},)"
                                 R"("b":{"dtype":"F32","shape":[],"data_offsets":[16,20]},)"
                                 R"("empty":{"dtype":"F64","shape":[0,5],"data_offsets":[32,32]},)"
                                 R"("a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}   )",
                                 data)));
  ASSERT_EQ(constants.size(), 5u);
  const value::Tensor& a = constants.at("a");
  EXPECT_EQ(a.dtype(), value::DType::kFloat64);
  EXPECT_THAT(a.shape(), ElementsAre(2));
  EXPECT_EQ(a.data_as<double>()[0], 1.5);
  EXPECT_EQ(a.data_as<double>()[1], -2.0);
  EXPECT_EQ(constants.at("b").data_as<float>()[0], 0.25f);
  EXPECT_TRUE(constants.at("b").shape().empty());
  EXPECT_EQ(constants.at("c").data_as<int64_t>()[0], -7);
  EXPECT_EQ(constants.at("d").data_as<int32_t>()[0], 9);
  EXPECT_THAT(constants.at("empty").shape(), ElementsAre(0, 5));
}

TEST_F(Safetensors, AnEmptyFileOfNoTensorsIsLawful) {
  ASSERT_OK_AND_ASSIGN(const Constants constants, Read(File("{}", "")));
  EXPECT_TRUE(constants.empty());
}

TEST_F(Safetensors, AMissingFileIsNotFound) {
  EXPECT_THAT(ReadSafetensors(directory_.path() / "absent", kMaxBytes),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent: open: ")));
}

TEST_F(Safetensors, ADirectoryIsRefused) {
  EXPECT_THAT(ReadSafetensors(directory_.path(), kMaxBytes),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected a regular file")));
}

TEST_F(Safetensors, AFileAboveTheLimitIsRefusedBeforeItIsRead) {
  const std::string path = directory_.Write("large", std::string(100, 'x'));
  EXPECT_THAT(ReadSafetensors(path, 99),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("large: expected at most 99 bytes, got 100")));
}

// ---- hostile bytes

struct Hostile {
  const char* name;
  std::string content;
  const char* message;
};
std::ostream& operator<<(std::ostream& out, const Hostile& hostile) { return out << hostile.name; }

// A file of one tensor "t" whose header entry is `entry`, over 8 bytes of data.
std::string WithEntry(const std::string& entry) {
  return File(absl::StrCat(R"({"t":)", entry, "}"), std::string(8, '\0'));
}

class SafetensorsRefuses : public ::testing::TestWithParam<Hostile> {};

TEST_P(SafetensorsRefuses, AndNamesFileAndTensor) {
  const TemporaryDirectory directory;
  EXPECT_THAT(ReadSafetensors(directory.Write("c.safetensors", GetParam().content), kMaxBytes),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("c.safetensors: "), HasSubstr(GetParam().message))));
}

INSTANTIATE_TEST_SUITE_P(
    All, SafetensorsRefuses,
    ::testing::Values(
        Hostile{"NoBytes", "", "expected at least 8 bytes, got 0"},
        Hostile{"HalfALength", "1234", "expected at least 8 bytes, got 4"},
        Hostile{"HeaderBeyondTheFile", Prefix(3) + "{}",
                "header length: expected at most 2 bytes, got 3"},
        Hostile{"HeaderLengthOfAllOnes", Prefix(~uint64_t{0}) + "{}",
                "header length: expected at most 2 bytes, got 18446744073709551615"},
        Hostile{"HeaderThatIsNoJson", File("{", ""), "header: expected JSON"},
        Hostile{"HeaderOfTwoDocuments", File("{}{}", ""), "header: expected JSON"},
        Hostile{"HeaderThatIsNotUtf8", File("{\"\xff\":1}", ""), "header: expected JSON"},
        Hostile{"HeaderThatIsAList", File("[]", ""), "header: expected an object, got array"},
        Hostile{"HeaderOfDeepNesting", File(std::string(1 << 19, '['), ""),
                "header: expected JSON"},
        Hostile{"HeaderOfDeepLawfulNesting",
                File(std::string(1 << 18, '[') + std::string(1 << 18, ']'), ""),
                "header: expected an object, got array"},
        Hostile{"TensorTwice",
                File(R"({"t":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                     R"("t":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}})",
                     std::string(8, '\0')),
                "header: key 't' is there twice"},
        Hostile{"FieldTwice",
                WithEntry(R"({"dtype":"F64","shape":[1],"shape":[1],"data_offsets":[0,8]})"),
                "header: key 'shape' is there twice"},
        Hostile{
            "NameOfNothing",
            File(R"({"":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})", std::string(8, '\0')),
            "header: expected names of 1 to 256 bytes, got 0"},
        Hostile{"EntryThatIsANumber", WithEntry("1"),
                "tensor 't': expected an object of dtype, shape and data_offsets"},
        Hostile{"EntryWithoutShape", WithEntry(R"({"dtype":"F64","data_offsets":[0,8]})"),
                "tensor 't': expected an object of dtype, shape and data_offsets"},
        Hostile{"EntryOfMoreFields",
                WithEntry(R"({"dtype":"F64","shape":[1],"data_offsets":[0,8],"x":0})"),
                "tensor 't': expected an object of dtype, shape and data_offsets"},
        Hostile{"DTypeUnknown", WithEntry(R"({"dtype":"BF16","shape":[4],"data_offsets":[0,8]})"),
                "tensor 't': dtype: expected F64, F32, I64 or I32, got 'BF16'"},
        Hostile{"DTypeThatIsANumber", WithEntry(R"({"dtype":64,"shape":[1],"data_offsets":[0,8]})"),
                "tensor 't': dtype: expected a string"},
        Hostile{"ShapeNegative", WithEntry(R"({"dtype":"F64","shape":[-1],"data_offsets":[0,8]})"),
                "tensor 't': shape: expected integers in [0, 2^63)"},
        Hostile{"ShapeOfFractions",
                WithEntry(R"({"dtype":"F64","shape":[1.0],"data_offsets":[0,8]})"),
                "tensor 't': shape: expected integers in [0, 2^63)"},
        Hostile{"ShapeThatWrapsAround",
                WithEntry(R"({"dtype":"F64","shape":[4294967296,4294967296],)"
                          R"("data_offsets":[0,8]})"),
                "tensor 't': shape: its bytes exceed 64 bits"},
        Hostile{"ShapeWhoseBytesWrapAround",
                WithEntry(R"({"dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8]})"),
                "tensor 't': shape: its bytes exceed 64 bits"},
        Hostile{"ShapeOfManyDimensions",
                WithEntry(R"({"dtype":"F64","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,8]})"),
                "tensor 't': shape: expected an array of at most 8 dimensions"},
        Hostile{"OffsetsOfOne", WithEntry(R"({"dtype":"F64","shape":[1],"data_offsets":[0]})"),
                "tensor 't': data_offsets: expected two integers"},
        Hostile{"OffsetsReversed", WithEntry(R"({"dtype":"F64","shape":[1],"data_offsets":[8,0]})"),
                "tensor 't': data_offsets: expected a range within 8 bytes of data, got [8, 0)"},
        Hostile{"OffsetsBeyondTheFile",
                WithEntry(R"({"dtype":"F64","shape":[2],"data_offsets":[0,16]})"),
                "tensor 't': data_offsets: expected a range within 8 bytes of data, got [0, 16)"},
        Hostile{"OffsetsOfAnotherSize",
                WithEntry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"),
                "tensor 't': data_offsets: expected 4 bytes for the shape, got 8"},
        Hostile{"DataThatIsNoTensors",
                WithEntry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
                "expected tensors that cover 8 bytes of data, got 4"},
        Hostile{"DataBeforeTheFirstTensor",
                WithEntry(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
                "tensor 't': data_offsets: expected to begin at 0, where the tensor before it "
                "ends, got 4"},
        Hostile{"TensorsThatOverlap",
                File(R"({"s":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                     R"("t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                     std::string(8, '\0')),
                "tensor 't': data_offsets: expected to begin at 8"}),
    [](const auto& info) { return info.param.name; });

// A file with one byte changed, or cut short, either gives a status or constants that stay within
// the file: what AddressSanitizer sees.
TEST_F(Safetensors, EveryByteFlippedAndEveryPrefixGivesAStatusOrConstants) {
  const std::string good = File(R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},)"
                                R"("b":{"dtype":"I32","shape":[1,2],"data_offsets":[16,24]}})",
                                std::string(24, '\1'));
  std::mt19937 random(7);
  int refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << random() % 8));
    const absl::StatusOr<Constants> constants = Read(flipped);
    if (!constants.ok()) {
      EXPECT_EQ(constants.status().code(), absl::StatusCode::kInvalidArgument);
      ++refused;
    }
    EXPECT_THAT(Read(good.substr(0, i)), StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_GT(refused, 80);
}

}  // namespace
}  // namespace cipherd::programs

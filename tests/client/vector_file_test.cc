#include "client/files/vector_file.h"

#include <cstring>
#include <fstream>

#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

const Vectors kVectors = {{1.5, -2, 0.1}, {1e-300, 3, 4}};

// A version 1 file of float64.
template <typename T>
std::string Npy(const std::string& descr, const std::string& shape, const std::vector<T>& elements,
                const std::string& order = "False") {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': (" + shape + "), }\n";
  std::string bytes = "\x93NUMPY";
  bytes += '\x01';
  bytes += '\x00';
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  const size_t begin = bytes.size();
  bytes.resize(begin + elements.size() * sizeof(T));
  if (!elements.empty()) {
    std::memcpy(bytes.data() + begin, elements.data(), elements.size() * sizeof(T));
  }
  return bytes;
}

TEST(VectorFileTest, CsvSurvivesTheRoundTrip) {
  ASSERT_OK_AND_ASSIGN(Vectors back, ParseCsv(ToCsv(kVectors), "a.csv"));
  EXPECT_EQ(back, kVectors);
}

TEST(VectorFileTest, CsvSkipsCommentsAndEmptyLines) {
  ASSERT_OK_AND_ASSIGN(Vectors back, ParseCsv("# pixels\n\n 1, 2\r\n3,4", "a.csv"));
  EXPECT_EQ(back, (Vectors{{1, 2}, {3, 4}}));
}

TEST(VectorFileTest, CsvNamesThePlaceOfWhatIsNoNumber) {
  EXPECT_THAT(ParseCsv("1,2\n3,x,5\n", "a.csv"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a.csv': line 2, field 2")));
  EXPECT_THAT(ParseCsv("1,,2\n", "a.csv"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("field 2")));
  EXPECT_THAT(ParseCsv("# nothing\n", "a.csv"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at least one vector")));
}

TEST(VectorFileTest, JsonTakesOneVectorOrMany) {
  ASSERT_OK_AND_ASSIGN(Vectors many, ParseJson("[[1, 2.5], [3, 4]]", "a.json"));
  EXPECT_EQ(many, (Vectors{{1, 2.5}, {3, 4}}));
  ASSERT_OK_AND_ASSIGN(Vectors one, ParseJson("[1, 2.5]", "a.json"));
  EXPECT_EQ(one, (Vectors{{1, 2.5}}));
}

TEST(VectorFileTest, OtherJsonIsRefused) {
  EXPECT_THAT(ParseJson("[[1, 2", "a.json"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not JSON")));
  EXPECT_THAT(ParseJson("{}", "a.json"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseJson("[]", "a.json"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseJson("[[1], 2]", "a.json"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[1]")));
  EXPECT_THAT(ParseJson("[[1, \"2\"]]", "a.json"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[0][1]")));
}

TEST(VectorFileTest, NpyReadsEachDtype) {
  ASSERT_OK_AND_ASSIGN(Vectors wide,
                       ParseNpy(Npy<double>("<f8", "2, 3", {1.5, -2, 0.1, 1e-300, 3, 4}), "a.npy"));
  EXPECT_EQ(wide, kVectors);
  ASSERT_OK_AND_ASSIGN(Vectors narrow, ParseNpy(Npy<float>("<f4", "2, 1", {0.5f, 2}), "a.npy"));
  EXPECT_EQ(narrow, (Vectors{{0.5}, {2}}));
  ASSERT_OK_AND_ASSIGN(Vectors bytes, ParseNpy(Npy<uint8_t>("|u1", "3,", {0, 128, 255}), "a.npy"));
  EXPECT_EQ(bytes, (Vectors{{0, 128, 255}}));
}

TEST(VectorFileTest, OtherNpyIsRefused) {
  const auto refused = [](const char* why) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why));
  };
  EXPECT_THAT(ParseNpy(Npy<double>("<f8", "2, 3", {1, 2}), "a"),
              refused("expected 2 x 3 elements"));
  EXPECT_THAT(ParseNpy(Npy<double>("<f8", "1, 1, 1", {1}), "a"), refused("dimensions"));
  EXPECT_THAT(ParseNpy(Npy<double>("<f8", "", {1}), "a"), refused("dimensions"));
  EXPECT_THAT(ParseNpy(Npy<double>("<f8", "0, 3", {}), "a"), refused("at least one number"));
  EXPECT_THAT(ParseNpy(Npy<double>("<f8", "-1, 3", {1}), "a"), refused("shape"));
  EXPECT_THAT(ParseNpy(Npy<double>(">f8", "1,", {1}), "a"), refused("dtype"));
  EXPECT_THAT(ParseNpy(Npy<double>("<f8", "1,", {1}, "True"), "a"), refused("row-major"));
  EXPECT_THAT(ParseNpy("hello, this is text", "a"), refused("not a .npy"));
  EXPECT_THAT(ParseNpy("", "a"), refused("not a .npy"));
  const std::string whole = Npy<double>("<f8", "1,", {1});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ParseNpy(whole.substr(0, size), "a"), refused("'a'")) << size << " bytes";
  }
  const std::string huge = Npy<double>("<f8", "4611686018427387904, 4611686018427387904", {1});
  EXPECT_THAT(ParseNpy(huge, "a"), refused("elements"));
}

TEST(VectorFileTest, FormatGoesByTheExtension) {
  const std::string path = ::testing::TempDir() + "cipherd_vectors.csv";
  std::ofstream(path) << "1,2\n";
  ASSERT_OK_AND_ASSIGN(Vectors vectors, ReadVectors(path));
  EXPECT_EQ(vectors, (Vectors{{1, 2}}));
  EXPECT_THAT(ReadVectors(path + ".none"), StatusIs(absl::StatusCode::kNotFound));
  std::ofstream(path + ".txt") << "1,2\n";
  EXPECT_THAT(ReadVectors(path + ".txt"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(".csv, .json")));
}

}  // namespace
}  // namespace cipherd::client

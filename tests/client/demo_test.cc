// The demo's parts: the data set's reader, the float64 model, percentiles, the table.
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "client/demo/demo_report.h"
#include "client/demo/idx_file.h"
#include "client/demo/polynomial_model.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WriteGz(const std::string& name, const std::string& content) {
  const std::string path = ::testing::TempDir() + name;
  gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, content.data(), content.size()), static_cast<int>(content.size()));
  gzclose(file);
  return path;
}

// Two items of 1 x 3 bytes.
const std::string kIdx(
    "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"
    "abcdef",
    22);

TEST(IdxFileTest, ReadsTheFirstItems) {
  const std::string path = WriteGz("cipherd_idx.gz", kIdx);
  ASSERT_OK_AND_ASSIGN(IdxArray all, ReadIdxFile(path, 100));
  EXPECT_THAT(all.shape, ElementsAre(2, 1, 3));
  EXPECT_THAT(all.elements, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  EXPECT_EQ(all.item_bytes(), 3);
  ASSERT_OK_AND_ASSIGN(IdxArray one, ReadIdxFile(path, 1));
  EXPECT_THAT(one.elements, ElementsAre('a', 'b', 'c'));
}

TEST(IdxFileTest, EveryTruncationAndForeignContentIsRefused) {
  for (size_t size = 0; size < kIdx.size(); ++size) {
    EXPECT_THAT(ReadIdxFile(WriteGz("cipherd_idx_short.gz", kIdx.substr(0, size)), 2),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << size << " bytes";
  }
  EXPECT_THAT(ReadIdxFile(WriteGz("cipherd_idx_other.gz", "hello, world"), 2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not an IDX file")));
  std::string huge = kIdx;
  huge.replace(8, 8, 8, '\xff');
  EXPECT_THAT(ReadIdxFile(WriteGz("cipherd_idx_huge.gz", huge), 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReadIdxFile(::testing::TempDir() + "cipherd_idx_none", 2),
              StatusIs(absl::StatusCode::kNotFound));
}

// w1 = [[1, 2], [0, -1], [3, 0]], b1 = [0, 1, -1], w2 = [[1, 1, 0], [0, 0, 2]], b2 = [0.5, -1].
std::string WriteModel(const std::string& name, const std::string& w2_shape = "[2,3]") {
  const std::string header = R"({"w1":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                             R"("b1":{"dtype":"F32","shape":[3],"data_offsets":[24,36]},)"
                             R"("w2":{"dtype":"F32","shape":)" +
                             w2_shape +
                             R"(,"data_offsets":[36,60]},)"
                             R"("b2":{"dtype":"F32","shape":[2],"data_offsets":[60,68]}})";
  const float elements[] = {1, 2, 0, -1, 3, 0, 0, 1, -1, 1, 1, 0, 0, 0, 2, 0.5f, -1};
  const uint64_t header_bytes = header.size();
  std::string content(reinterpret_cast<const char*>(&header_bytes), 8);
  content += header;
  content.append(reinterpret_cast<const char*>(elements), sizeof(elements));
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(PolynomialModelTest, LogitsAreThoseOfTheFormula) {
  ASSERT_OK_AND_ASSIGN(PolynomialModel model,
                       PolynomialModel::FromSafetensors(WriteModel("cipherd_model")));
  EXPECT_EQ(model.pixel_count(), 2u);
  EXPECT_EQ(model.logit_count(), 2u);
  // Hidden, before the square: 1·1 + 2·2 = 5; 1 - 2 = -1; 3·1 - 1 = 2.
  const double pixels[] = {1, 2};
  EXPECT_THAT(model.Logits(pixels), ElementsAre(25 + 1 + 0.5, 2 * 4 - 1));
}

TEST(PolynomialModelTest, ShapesThatDoNotFitAreRefused) {
  EXPECT_THAT(PolynomialModel::FromSafetensors(WriteModel("cipherd_model_bad", "[3,2]")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("do not fit")));
}

TEST(PolynomialModelTest, ArgMaxIsTheFirstOfEquals) {
  EXPECT_EQ(ArgMax(std::vector<double>{1, 3, 3, 2}), 1u);
  EXPECT_EQ(ArgMax(std::vector<double>{-5}), 0u);
}

TEST(DemoReportTest, PercentileIsASampleThatTheShareDoesNotExceed) {
  std::vector<absl::Duration> latencies;
  for (int i = 100; i >= 1; --i) latencies.push_back(absl::Milliseconds(i));
  EXPECT_EQ(Percentile(latencies, 0.50), absl::Milliseconds(50));
  EXPECT_EQ(Percentile(latencies, 0.99), absl::Milliseconds(99));
  EXPECT_EQ(Percentile(latencies, 1.0), absl::Milliseconds(100));
  EXPECT_EQ(Percentile({absl::Seconds(3)}, 0.5), absl::Seconds(3));
}

TEST(DemoReportTest, TableShowsWhatWasMeasured) {
  DemoReport report;
  report.device = "cpu:0";
  report.image_count = 16;
  report.agreement_count = 15;
  report.correct_count = 12;
  report.float64_correct_count = 13;
  report.max_difference = 1.25e-4;
  report.latencies = {absl::Milliseconds(10), absl::Milliseconds(20)};
  report.wall_time = absl::Seconds(2);
  report.sent_bytes = 16 * 1024;
  report.received_bytes = 16 * 512;
  report.key_count = 18;
  report.key_bytes = 3 << 20;
  EXPECT_FALSE(report.all_agree());
  const std::string table = FormatReport(report);
  for (const char* cell : {"15 of 16", "75.0 %", "81.2 %", "1.25e-04", "10.0 ms", "20.0 ms", "8.0",
                           "1.0 KiB", "512 B", "3.0 MiB (18 keys)"}) {
    EXPECT_THAT(table, HasSubstr(cell));
  }
}

}  // namespace
}  // namespace cipherd::client

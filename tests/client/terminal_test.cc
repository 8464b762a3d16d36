// Progress bars and tables.
#include <sstream>

#include "client/terminal/progress_bar.h"
#include "client/terminal/text_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cipherd::client {
namespace {

using ::testing::HasSubstr;

class ProgressBarTest : public ::testing::Test {
 protected:
  ProgressBar::Options Options(bool is_terminal) { return {&out_, is_terminal, &clock_}; }

  base::FakeClock clock_;
  std::ostringstream out_;
};

TEST_F(ProgressBarTest, QuickWorkShowsNothing) {
  ProgressBar bar("keys", 10, ProgressUnit::kItems, Options(true));
  for (int i = 1; i <= 10; ++i) {
    clock_.Advance(absl::Milliseconds(99));
    bar.Update(i);
  }
  bar.Finish();
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ProgressBarTest, LongWorkOnATerminalIsDrawnInPlace) {
  ProgressBar bar("keys", 10, ProgressUnit::kItems, Options(true));
  clock_.Advance(absl::Seconds(2));
  bar.Update(5);
  EXPECT_EQ(out_.str(), "\rkeys  [############------------]  50%  5 of 10  eta 2 s\x1b[K");
  out_.str("");
  clock_.Advance(absl::Milliseconds(99));
  bar.Update(6);
  EXPECT_EQ(out_.str(), "") << "redrawn sooner than 100 ms later";
  clock_.Advance(absl::Seconds(2));
  bar.Update(4);
  EXPECT_THAT(out_.str(), HasSubstr("6 of 10")) << "progress went backwards";
  out_.str("");
  bar.Finish();
  EXPECT_EQ(out_.str(), "\r\x1b[Kkeys: 10 in 4.1 s\n");
}

TEST_F(ProgressBarTest, LogsGetOneLine) {
  ProgressBar bar("upload", 3 << 20, ProgressUnit::kBytes, Options(false));
  clock_.Advance(absl::Seconds(2));
  bar.Update(1 << 20);
  bar.Update(3 << 20);
  bar.Finish();
  bar.Finish();
  EXPECT_EQ(out_.str(), "upload: 3.0 MiB in 2.0 s\n");
}

TEST_F(ProgressBarTest, AbandonedBarEndsItsLine) {
  {
    ProgressBar bar("keys", 10, ProgressUnit::kItems, Options(true));
    clock_.Advance(absl::Seconds(2));
    bar.Update(1);
  }
  EXPECT_EQ(out_.str().back(), '\n');
}

TEST(FormatAmountTest, BytesHaveBinaryUnits) {
  EXPECT_EQ(FormatAmount(1023, ProgressUnit::kBytes), "1023 B");
  EXPECT_EQ(FormatAmount(1536, ProgressUnit::kBytes), "1.5 KiB");
  EXPECT_EQ(FormatAmount(1536, ProgressUnit::kItems), "1536");
}

TEST(TextTableTest, ColumnsAreAsWideAsTheirLongestCell) {
  TextTable table({{"program"}, {"version", Align::kRight}});
  table.AddRow({"fashion_mlp", "1"});
  table.AddRow({"größe", "12"});
  EXPECT_EQ(table.ToString(),
            "program      version\n"
            "-----------  -------\n"
            "fashion_mlp        1\n"
            "größe             12\n");
}

TEST(TextTableTest, WithoutTitlesThereIsNoHead) {
  TextTable table({{""}, {""}});
  table.AddRow({"images", "128"});
  table.AddRow({"accuracy"});
  EXPECT_EQ(table.ToString(), "images    128\naccuracy\n");
}

TEST(TextTableTest, ControlCharactersCannotSteerTheTerminal) {
  TextTable table({{""}});
  table.AddRow({"a\x1b[2Jb\n"});
  EXPECT_EQ(table.ToString(), "a?[2Jb?\n");
}

}  // namespace
}  // namespace cipherd::client

#include "client/demo/demo_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/terminal/progress_bar.h"
#include "client/terminal/text_table.h"

namespace cipherd::client {
namespace {

std::string FormatBytes(double bytes) { return FormatAmount(bytes, ProgressUnit::kBytes); }

std::string FormatShare(int64_t count, int64_t total) {
  return absl::StrFormat("%.1f %%",
                         100.0 * static_cast<double>(count) / static_cast<double>(total));
}

std::string FormatMilliseconds(absl::Duration duration) {
  return absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(duration));
}

}  // namespace

absl::Duration Percentile(std::vector<absl::Duration> latencies, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(latencies.size())));
  const size_t index = std::clamp<size_t>(rank, 1, latencies.size()) - 1;
  std::nth_element(latencies.begin(), latencies.begin() + index, latencies.end());
  return latencies[index];
}

std::string FormatReport(const DemoReport& report) {
  const auto image_count = static_cast<double>(report.image_count);
  TextTable table({{"Fashion-MNIST, encrypted"}, {"", Align::kRight}});
  table.AddRow({"device of the daemon", report.device});
  table.AddRow({"images", absl::StrCat(report.image_count)});
  table.AddRow({"images a request, requests in flight",
                absl::StrCat(report.images_per_request, ", ", report.requests_in_flight)});
  table.AddRow({"agreement with the float64 model",
                absl::StrCat(report.agreement_count, " of ", report.image_count)});
  table.AddRow({"accuracy, encrypted", FormatShare(report.correct_count, report.image_count)});
  table.AddRow(
      {"accuracy, float64", FormatShare(report.float64_correct_count, report.image_count)});
  table.AddRow({"max |difference| of a logit", absl::StrFormat("%.2e", report.max_difference)});
  table.AddRow(
      {"latency of a request, p50", FormatMilliseconds(Percentile(report.latencies, 0.50))});
  table.AddRow(
      {"latency of a request, p99", FormatMilliseconds(Percentile(report.latencies, 0.99))});
  table.AddRow({"images a second",
                absl::StrFormat("%.1f", image_count / absl::ToDoubleSeconds(report.wall_time))});
  table.AddRow(
      {"bytes up an image", FormatBytes(static_cast<double>(report.sent_bytes) / image_count)});
  table.AddRow({"bytes down an image",
                FormatBytes(static_cast<double>(report.received_bytes) / image_count)});
  table.AddRow(
      {"bytes up for the keys", absl::StrCat(FormatBytes(static_cast<double>(report.key_bytes)),
                                             " (", report.key_count, " keys)")});
  table.AddRow({"making and sending the keys", FormatMilliseconds(report.key_time)});
  return table.ToString();
}

}  // namespace cipherd::client

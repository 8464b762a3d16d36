// A page of metrics in Prometheus' text format, as a test reads it.
//
//   ASSERT_OK_AND_ASSIGN(const MetricsPage page, MetricsPage::Fetch(port));
//   EXPECT_EQ(page.Sum("cipherd_requests_finished_total", {{"outcome", "succeeded"}}), 3);
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace cipherd::testing {

class MetricsPage {
 public:
  using Labels = std::map<std::string, std::string>;

  // InvalidArgument quoting the line that is none.
  static absl::StatusOr<MetricsPage> Parse(std::string_view text);
  // From http://127.0.0.1:port/metrics. Unavailable where nobody answers with a page.
  static absl::StatusOr<MetricsPage> Fetch(int port);

  // Sum of all samples of `name` that have at least these labels; 0 where there is none.
  double Sum(const std::string& name, const Labels& labels = {}) const;
  bool Has(const std::string& name, const Labels& labels = {}) const;
  // Every value of a label, over all samples.
  std::set<std::string> LabelValues(const std::string& label) const;
  size_t sample_count() const { return samples_.size(); }

  const std::string& text() const { return text_; }

 private:
  struct Sample {
    std::string name;
    Labels labels;
    double value = 0;
  };

  std::vector<const Sample*> Matching(const std::string& name, const Labels& labels) const;

  std::string text_;
  std::vector<Sample> samples_;
};

// The whole reply, head included; empty where nobody answers.
std::string HttpGet(int port, std::string_view path);

}  // namespace cipherd::testing

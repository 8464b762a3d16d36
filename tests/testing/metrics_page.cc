#include "tests/testing/metrics_page.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::testing {
namespace {

// name="value",… up to the closing brace, which is left in `text`. Values have no escaped quotes:
// ours are names.
bool ParseLabels(std::string_view& text, MetricsPage::Labels& labels) {
  while (!text.empty() && text.front() != '}') {
    const size_t equals = text.find("=\"");
    if (equals == std::string_view::npos) return false;
    const size_t end = text.find('"', equals + 2);
    if (end == std::string_view::npos) return false;
    labels[std::string(text.substr(0, equals))] =
        std::string(text.substr(equals + 2, end - equals - 2));
    text.remove_prefix(end + 1);
    if (!text.empty() && text.front() == ',') text.remove_prefix(1);
  }
  return !text.empty();
}

}  // namespace

absl::StatusOr<MetricsPage> MetricsPage::Parse(std::string_view text) {
  MetricsPage page;
  page.text_ = std::string(text);
  std::istringstream lines(page.text_);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    Sample sample;
    const size_t name_end = line.find_first_of("{ ");
    sample.name = line.substr(0, name_end);
    std::string_view rest = std::string_view(line).substr(std::min(name_end, line.size()));
    bool is_valid = true;
    if (!rest.empty() && rest.front() == '{') {
      rest.remove_prefix(1);
      is_valid = ParseLabels(rest, sample.labels);
      if (is_valid) rest.remove_prefix(1);
    }
    if (!is_valid || !absl::SimpleAtod(std::string(rest), &sample.value)) {
      return absl::InvalidArgumentError(absl::StrCat("no sample: ", line));
    }
    page.samples_.push_back(std::move(sample));
  }
  return page;
}

absl::StatusOr<MetricsPage> MetricsPage::Fetch(int port) {
  const std::string reply = HttpGet(port, "/metrics");
  const size_t head_end = reply.find("\r\n\r\n");
  if (!absl::StrContains(reply.substr(0, reply.find('\r')), " 200 ") ||
      head_end == std::string::npos) {
    return absl::UnavailableError(absl::StrCat("no metrics on port ", port));
  }
  return Parse(std::string_view(reply).substr(head_end + 4));
}

std::vector<const MetricsPage::Sample*> MetricsPage::Matching(const std::string& name,
                                                              const Labels& labels) const {
  std::vector<const Sample*> matching;
  for (const Sample& sample : samples_) {
    const bool has_labels = std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
      const auto found = sample.labels.find(label.first);
      return found != sample.labels.end() && found->second == label.second;
    });
    if (sample.name == name && has_labels) matching.push_back(&sample);
  }
  return matching;
}

double MetricsPage::Sum(const std::string& name, const Labels& labels) const {
  double sum = 0;
  for (const Sample* sample : Matching(name, labels)) sum += sample->value;
  return sum;
}

bool MetricsPage::Has(const std::string& name, const Labels& labels) const {
  return !Matching(name, labels).empty();
}

std::set<std::string> MetricsPage::LabelValues(const std::string& label) const {
  std::set<std::string> values;
  for (const Sample& sample : samples_) {
    const auto found = sample.labels.find(label);
    if (found != sample.labels.end()) values.insert(found->second);
  }
  return values;
}

std::string HttpGet(int port, std::string_view path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string reply;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = absl::StrCat("GET ", std::string(path), " HTTP/1.0\r\n\r\n");
    if (write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) reply.append(buffer, n);
    }
  }
  close(fd);
  return reply;
}

}  // namespace cipherd::testing

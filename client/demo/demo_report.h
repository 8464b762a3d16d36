// What the demo found, and its table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace cipherd::client {

struct DemoReport {
  std::string device;
  int64_t image_count = 0;
  int64_t images_per_request = 0;
  int requests_in_flight = 0;

  // Images whose arg-max equals that of the float64 model; whose arg-max is the label, encrypted
  // and in float64.
  int64_t agreement_count = 0;
  int64_t correct_count = 0;
  int64_t float64_correct_count = 0;
  // Over all logits.
  double max_difference = 0;

  // Of each request, from its sending to its checked result.
  std::vector<absl::Duration> latencies;
  // Encrypting, evaluating and decrypting all images.
  absl::Duration wall_time;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;

  int key_count = 0;
  uint64_t key_bytes = 0;
  absl::Duration key_time;

  bool all_agree() const { return agreement_count == image_count; }
};

// The smallest latency that at least `share` (0 to 1) of all do not exceed. Requires one at least.
absl::Duration Percentile(std::vector<absl::Duration> latencies, double share);

std::string FormatReport(const DemoReport& report);

}  // namespace cipherd::client

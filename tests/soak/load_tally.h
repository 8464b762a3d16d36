// What the requests of a load came to, and which ends they must not have.
//
//   LoadTally tally("64 clients");
//   tally.Add(load->TakeSamples());
//   tally.Check();
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/load/sample.h"

namespace cipherd::testing {

class LoadTally {
 public:
  explicit LoadTally(std::string name) : name_(std::move(name)) {}

  void Add(const std::vector<client::Sample>& samples);
  // Prints the counts, and expects no wrong result and no failure but by overload or deadline.
  void Check() const;

  uint64_t succeeded() const { return succeeded_; }

 private:
  const std::string name_;
  uint64_t ended_ = 0;
  uint64_t succeeded_ = 0;
  uint64_t cancelled_ = 0;
  uint64_t wrong_ = 0;
  uint64_t expired_ = 0;
  uint64_t refused_ = 0;
  uint64_t unexpected_ = 0;
  absl::StatusCode unexpected_code_ = absl::StatusCode::kOk;
};

}  // namespace cipherd::testing

// When the requests of an open loop are due.
//
//   Arrivals arrivals(/*rate=*/50, ArrivalDistribution::kPoisson, seed);
//   absl::Time due = start + arrivals.Next();
//
// Requires a rate above 0, in requests a second. Not thread-safe.
#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"
#include "client/load/load_options.h"

namespace cipherd::client {

class Arrivals {
 public:
  Arrivals(double rate, ArrivalDistribution distribution, uint64_t seed)
      : rate_(rate), distribution_(distribution), random_(seed) {}

  // Offset of the next request from the start, never before the one before.
  absl::Duration Next() {
    ++count_;
    // From the count, not summed up: the rate holds over any length of time.
    if (distribution_ == ArrivalDistribution::kConstant) return absl::Seconds((count_ - 1) / rate_);
    const double seconds = seconds_;
    seconds_ += std::exponential_distribution<double>(rate_)(random_);
    return absl::Seconds(seconds);
  }

 private:
  const double rate_;
  const ArrivalDistribution distribution_;
  std::mt19937_64 random_;
  double count_ = 0;
  double seconds_ = 0;
};

}  // namespace cipherd::client

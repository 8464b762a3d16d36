// One request of a load, as it ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cipherd/v1/evaluation.pb.h"

namespace cipherd::client {

// A stage of the daemon, as the reply reports it.
struct Stage {
  const char* name;
  double (v1::StageTimes::*seconds)() const;
};
inline constexpr Stage kStages[] = {{"decode", &v1::StageTimes::decode_seconds},
                                    {"queue", &v1::StageTimes::queue_seconds},
                                    {"batch_wait", &v1::StageTimes::batch_wait_seconds},
                                    {"transfer_in", &v1::StageTimes::transfer_in_seconds},
                                    {"device_wait", &v1::StageTimes::device_wait_seconds},
                                    {"replay", &v1::StageTimes::replay_seconds},
                                    {"transfer_out", &v1::StageTimes::transfer_out_seconds},
                                    {"encode", &v1::StageTimes::encode_seconds}};
inline constexpr size_t kStageCount = std::size(kStages);

enum class Outcome : uint8_t {
  kSucceeded,
  kFailed,
  // By this client, on purpose.
  kCancelled,
  // Succeeded with other bytes than the reference: the one thing that must never happen.
  kWrong,
};

struct Sample {
  // Index in the workload's programs.
  int program = 0;
  Outcome outcome = Outcome::kFailed;
  // Of failures.
  absl::StatusCode code = absl::StatusCode::kOk;
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
  // When the request was due (in a closed loop, when it was sent), and until its result was there.
  absl::Time due;
  absl::Duration latency;
  // How long after it was due the request was sent.
  absl::Duration lag;
  // Of successes.
  std::array<float, kStageCount> stage_seconds = {};
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

}  // namespace cipherd::client

// Where the time of one request went.
#pragma once

#include <string_view>

#include "absl/time/time.h"

namespace cipherd::engine {

// Seconds spent in each stage. Those on the device are from event timestamps, the others from the
// clock. Requests of one batch share the stages of the device.
struct StageTimes {
  double decode_seconds = 0;      // header until the payload is complete and checked
  double queue_seconds = 0;       // admitted until a worker took it, less the next
  double batch_wait_seconds = 0;  // held beside an idle instance for others to join
  double transfer_in_seconds = 0;
  double replay_seconds = 0;
  double transfer_out_seconds = 0;  // from the replay's end; of early outputs only the last one's
  // Taken by a worker until the end was seen, less the three above: keys on their way to the
  // device, and other requests before it on the worker's streams.
  double device_wait_seconds = 0;
  double encode_seconds = 0;  // result complete until the last byte was handed to the transport,
                              // and so, for a reader that is slower, the wait for it
};

// A stage as metrics and logs name it.
struct Stage {
  std::string_view name;
  std::string_view log_key;
  double StageTimes::*seconds;
};
inline constexpr Stage kStages[] = {
    {"decode", "decode_seconds", &StageTimes::decode_seconds},
    {"queue", "queue_seconds", &StageTimes::queue_seconds},
    {"batch_wait", "batch_wait_seconds", &StageTimes::batch_wait_seconds},
    {"transfer_in", "transfer_in_seconds", &StageTimes::transfer_in_seconds},
    {"device_wait", "device_wait_seconds", &StageTimes::device_wait_seconds},
    {"replay", "replay_seconds", &StageTimes::replay_seconds},
    {"transfer_out", "transfer_out_seconds", &StageTimes::transfer_out_seconds},
    {"encode", "encode_seconds", &StageTimes::encode_seconds},
};

// From begin to end, in seconds since an event of the worker.
struct DeviceSpan {
  double begin = 0;
  double end = 0;
};

// When the stages on the device were, for measurements of how they overlap.
struct DeviceTimeline {
  DeviceSpan transfer_in;
  DeviceSpan replay;
  DeviceSpan transfer_out;
  // On the host: when the device thread had the batch, and when its end was seen.
  absl::Time taken_at;
  absl::Time seen_at;
};

}  // namespace cipherd::engine

// Where the time of one request went.
#pragma once

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
  double transfer_out_seconds = 0;
  // Taken by a worker until the end was seen, less the three above: keys on their way to the device,
  // and other requests before it on the worker's streams.
  double device_wait_seconds = 0;
  double encode_seconds = 0;  // result complete until the last byte was handed to the transport
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

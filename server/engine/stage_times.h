// Where the time of one request went.
#pragma once

namespace cipherd::engine {

// Seconds spent in each stage. Those on the device are from event timestamps, the others from the
// clock.
struct StageTimes {
  double decode_seconds = 0;  // header until the payload is complete and checked
  double queue_seconds = 0;   // admitted until a worker took it
  double transfer_in_seconds = 0;
  double replay_seconds = 0;
  double transfer_out_seconds = 0;
  double encode_seconds = 0;  // result complete until the last byte was handed to the transport
};

}  // namespace cipherd::engine

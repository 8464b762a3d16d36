// How one program is served: how much of it runs and waits at once, in which batches, and how long
// a request of it may take.
//
//   ServingSettings settings = options.DefaultServing();
//   settings.batch_sizes = {1, 2, 4, 8};
//   settings.max_batch_delay = absl::Milliseconds(1);
//   CIPHERD_RETURN_IF_ERROR(engine->AddProgram(program, settings));
//
// What it costs. Every batch size is a graph of its own, `instances` times on each worker, and a
// graph of size B holds the inputs, intermediates and outputs of B evaluations: in device memory,
//   workers · instances · (sum of batch_sizes) · footprint of one evaluation;
// in pinned memory, place_count(workers) pairs of input and output. Loading is refused where the
// device's budgets do not hold that. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace cipherd::engine {

struct ServingSettings {
  // Batches on the streams of a worker at once. Three keep transfer, compute and output busy.
  int instances = 3;
  // Captured sizes, ascending, the first one 1. A batch is the largest of these that the queue
  // fills.
  std::vector<int> batch_sizes = {1};
  // So long may a request wait, beside an idle instance, for others to fill the largest batch.
  absl::Duration max_batch_delay = absl::ZeroDuration();
  // Requests that may wait while every instance is busy.
  int queue_capacity = 32;
  // Programs of a higher one are looked at first, always; those of one priority take turns.
  int priority = 0;
  // Of a request whose caller sets no deadline, and of any request.
  absl::Duration default_timeout = absl::InfiniteDuration();
  absl::Duration longest_timeout = absl::InfiniteDuration();
  // Uncaptured runs before each capture.
  int warmup = 1;
  // Device memory that encoded constants may take, which all workers and instances share. Where
  // they are more, they stay in pinned host memory, and every evaluation copies them in tiles
  // through two buffers of its own, of at most half of this.
  int64_t constant_memory_bytes = INT64_MAX;

  int largest_batch() const { return batch_sizes.back(); }
  // Requests between header and last byte of reply: those that wait and those that run. Each holds
  // pinned trees, also while it is received or replied to.
  int place_count(int workers) const {
    return queue_capacity + workers * instances * largest_batch();
  }

  // InvalidArgument naming the field, expected and actual.
  absl::Status Validate() const;

  bool operator==(const ServingSettings&) const = default;
};

// Largest batch size that can be asked for.
inline constexpr int kMaxBatchSize = 64;

}  // namespace cipherd::engine

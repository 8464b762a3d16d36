// An engine that serves one program, with tenants' keys, inputs, and the results that these must
// give, for measurements.
//
// Keys and inputs are pseudo-random residues: the arithmetic does not care, and a result is right
// where it equals that of an eager run with the same keys bit for bit. Inputs are written to the
// pinned trees once, so that a run measures the engine and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/ckks/key_set.h"
#include "core/runtime/device.h"
#include "core/value/value_tree.h"
#include "server/engine/engine.h"
#include "server/engine/interpreted_program.h"

namespace cipherd::bench {

// One request of a run.
struct Sample {
  // From Engine::Open to the continuation.
  absl::Duration latency;
  absl::Time completed_at;
  engine::StageTimes times;
  engine::DeviceTimeline timeline;
};

struct LoadOptions {
  int request_count = 0;
  // Requests under way at once, each by a thread of its own.
  int concurrency = 1;
  // Requests take tenants 0, 1, …, tenants − 1 in turn.
  int tenants = 1;
  // Between a result and the next request of the same thread.
  absl::Duration pause = absl::ZeroDuration();
  // Compares every result; else the first and the last one of each thread, outside of what is
  // timed.
  bool checks_all = false;
};

class EngineWorkload {
 public:
  static constexpr int kTenantCount = 2;
  static constexpr int kInputCount = 2;

  static absl::StatusOr<std::unique_ptr<EngineWorkload>> Create(
      std::shared_ptr<const engine::InterpretedProgram> program, const std::string& device_spec,
      const engine::ServingSettings& settings);

  // Median seconds of one replay in loops of replays on one stream, with nothing else under way and
  // tenant 0's keys.
  absl::StatusOr<double> BareReplaySeconds(double seconds);

  // In the order of completion. Internal where a result is wrong, or a request fails.
  absl::StatusOr<std::vector<Sample>> Run(const LoadOptions& options);

  engine::Engine& engine() { return *engine_; }
  const engine::InterpretedProgram& program() const { return *program_; }
  uint64_t checked_count() const { return checked_count_; }

 private:
  class Client;
  friend class Client;

  EngineWorkload() = default;
  absl::Status MakeKeys(int tenant);
  absl::Status MakeInputs();
  // Runs eagerly what requests will be compared with, and keeps what BareReplaySeconds needs.
  absl::Status MakeExpected();
  absl::Status FillPlaces();

  std::shared_ptr<const engine::InterpretedProgram> program_;
  runtime::Device* device_ = nullptr;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<engine::KeySetRef> keys_;
  std::vector<value::ValueTree> inputs_;
  // By input, then tenant.
  std::vector<std::vector<value::ValueTree>> expected_;
  // Which input stands in a pinned tree, by its first address.
  std::unordered_map<const void*, int> input_at_;
  std::atomic<uint64_t> checked_count_ = 0;
};

}  // namespace cipherd::bench

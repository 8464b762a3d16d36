// One captured instance of a program, with what a request needs beside it: a pinned key table and
// the events that time its stages. All made once; a request creates none of these.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/ckks/key_set.h"
#include "core/execution/cuda_graph_program.h"
#include "core/runtime/device.h"
#include "core/runtime/event.h"
#include "core/runtime/stream.h"
#include "core/value/tensor.h"
#include "core/value/value_tree.h"
#include "server/engine/program.h"

namespace cipherd::engine {

class ProgramInstance {
 public:
  // Warms up, captures, and verifies the first replay: inputs and outputs have the program's
  // signatures, and the replay equals an eager run bit for bit (else Internal). Blocks; to be
  // called outside serving threads. `stream` carries the verification.
  static absl::StatusOr<std::unique_ptr<ProgramInstance>> Build(const Program& program,
                                                                const ProgramBinding& binding,
                                                                runtime::Device& device,
                                                                runtime::Stream& stream,
                                                                int warmup);

  execution::CudaGraphProgram& graph() { return *graph_; }

  // Writes the addresses of the keys in `device_keys` that the program reads into the pinned table.
  // FailedPrecondition for one that is missing. The instance must be idle.
  absl::Status BindKeys(const ckks::KeySet& device_keys);

  // The positional arguments of a replay: each child of `inputs`, then the key table.
  std::vector<value::ValueTree> Arguments(const value::ValueTree& inputs) const;

  // Recorded by whoever runs a request on this instance.
  runtime::Event& transfer_started() { return *events_[0]; }
  runtime::Event& replay_started() { return *events_[1]; }
  runtime::Event& output_started() { return *events_[2]; }
  runtime::Event& output_copied() { return *events_[3]; }

 private:
  ProgramInstance() = default;

  ckks::KeyLayout keys_;
  std::unique_ptr<execution::CudaGraphProgram> graph_;
  // Pinned uint64 [max(1, keys)].
  value::Tensor key_table_;
  std::shared_ptr<runtime::Event> events_[4];
};

}  // namespace cipherd::engine

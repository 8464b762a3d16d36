// One captured instance of a program for batches of one size, with what a batch needs beside it: a
// pinned key table with a row an item, and the events of its stages and of its outputs. All made
// once; a request creates none of these.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/ckks/key_set.h"
#include "core/execution/cuda_graph_program.h"
#include "core/execution/program_function.h"
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
  // signatures, and the replay of every item equals an eager run of one bit for bit (else
  // Internal). Blocks; to be called outside serving threads. `stream` carries the verification.
  static absl::StatusOr<std::unique_ptr<ProgramInstance>> Build(const Program& program,
                                                                const ProgramBinding& binding,
                                                                int batch_size, int warmup,
                                                                runtime::Device& device,
                                                                runtime::Stream& stream);

  int batch_size() const { return batch_size_; }
  execution::CudaGraphProgram& graph() { return *graph_; }

  // Writes the addresses of the keys in `device_keys` that the program reads into row `item` of the
  // pinned table. FailedPrecondition for one that is missing. The instance must be idle.
  absl::Status BindKeys(int item, const ckks::KeySet& device_keys);

  // The positional arguments of a replay: the children of each item's inputs, then the key table.
  std::vector<value::ValueTree> Arguments(std::span<const value::ValueTree* const> inputs) const;

  // Recorded by whoever runs a batch on this instance.
  runtime::Event& transfer_started() { return *events_[0]; }
  runtime::Event& replay_started() { return *events_[1]; }
  runtime::Event& output_started() { return *events_[2]; }
  const std::shared_ptr<runtime::Event>& output_copied() { return events_[3]; }

  // Outputs but the last one can be had before a replay has ended: the replay records
  // output_computed, and whoever runs the batch early_output_copied. 0 for a program with one
  // output.
  size_t early_output_count() const {
    return output_computed_.empty() ? 0 : output_computed_.front().size() - 1;
  }
  const runtime::Event& output_computed(int item, size_t output) const {
    return *output_computed_[item][output];
  }
  runtime::Event& early_output_copied(int item, size_t output) {
    return *early_output_copied_[item][output];
  }

  // How long the latest batch was waited for, for who waits for the next one.
  absl::Duration& expected_wait() { return expected_wait_; }

 private:
  ProgramInstance() = default;

  int batch_size_ = 1;
  ckks::KeyLayout keys_;
  std::unique_ptr<execution::CudaGraphProgram> graph_;
  // Pinned uint64 [batch_size, max(1, keys)].
  value::Tensor key_table_;
  std::shared_ptr<runtime::Event> events_[4];
  // By item, then by output.
  std::vector<execution::OutputEvents> output_computed_;
  std::vector<execution::OutputEvents> early_output_copied_;
  absl::Duration expected_wait_;
};

}  // namespace cipherd::engine

// A program evaluated on encrypted vectors in this process, without a daemon: for a first look at
// its precision and its time.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto device, runtime::host::HostDevice::Create());
//   CIPHERD_ASSIGN_OR_RETURN(auto local, LocalProgram::Make(program, *device));
//   CIPHERD_ASSIGN_OR_RETURN(NamedVectors outputs, local->Evaluate({{"x", samples}}));
//   local->replay_seconds()
//
// Keys are made here and live as long as this does. The program is captured and replayed as a
// daemon does, so that what is measured is what is served. One thread at a time; `device` outlives
// this.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/program_cipher.h"
#include "core/ckks/device_context.h"
#include "core/ckks/encoder.h"
#include "core/ckks/key_set.h"
#include "core/execution/cuda_graph_program.h"
#include "core/programs/interpreter.h"
#include "core/programs/program_checker.h"
#include "core/runtime/device.h"
#include "core/secret/random.h"
#include "core/secret/secret_key.h"

namespace cipherd::client {

class LocalProgram {
 public:
  // Makes a secret key and the evaluation keys, encodes the constants and captures. Blocks, for
  // seconds. ResourceExhausted where memory runs out.
  static absl::StatusOr<std::unique_ptr<LocalProgram>> Make(
      std::shared_ptr<const programs::CheckedProgram> program, runtime::Device& device);
  ~LocalProgram();

  // Encrypts, replays and decrypts: as many ciphertexts as the vectors fill, one after another.
  // Every input has the same number of vectors; so has every output. InvalidArgument naming an
  // input that is missing, unknown or does not fit its layout; OutOfRange for a number that the
  // program was not planned for, or a result far beyond (client/planned_range.h).
  absl::StatusOr<NamedVectors> Evaluate(const NamedVectors& inputs);

  // The median over the replays so far, some of which only serve this; 0 before the first.
  double replay_seconds() const;

 private:
  LocalProgram(std::shared_ptr<const programs::CheckedProgram> program, secret::Random random,
               std::unique_ptr<runtime::Stream> stream);

  absl::Status MakeKeys();
  absl::Status Capture(runtime::Device& device);
  // Times it.
  absl::StatusOr<value::ValueTree> Replay(const std::vector<value::ValueTree>& inputs);
  // Of items [first, last) of every input.
  absl::Status EvaluateSome(const NamedVectors& inputs, size_t first, size_t last,
                            NamedVectors& outputs);
  absl::StatusOr<value::ValueTree> EncryptInput(const programs::ProgramInput& input,
                                                const Vectors& items);

  const std::shared_ptr<const programs::CheckedProgram> program_;
  const std::unique_ptr<runtime::Stream> stream_;
  const ckks::Encoder encoder_;
  secret::Random random_;
  const secret::SecretKey secret_key_;
  ckks::KeySet keys_;
  value::Tensor key_table_;
  std::unique_ptr<ckks::DeviceContext> device_context_;
  std::unique_ptr<execution::CudaGraphProgram> captured_;
  std::shared_ptr<runtime::Event> begin_;
  std::shared_ptr<runtime::Event> end_;
  bool is_warm_ = false;
  std::vector<double> replay_seconds_;
};

}  // namespace cipherd::client

// A daemon in this process, on the CPU device, serving two small programs under insecure contexts
// on a free port of loopback, and a client's side of it.
//
//   square_sum:  outputs[j] = x[j]^2 + x[j+1]^2   (keys: relinearization, rotation(1))
//   negate:      outputs[j] = -x[j]               (another context; no keys)
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cipherd/v1/evaluation.grpc.pb.h"
#include "client/client.h"
#include "core/ckks/context_parameters.h"
#include "core/ckks/encoder.h"
#include "core/programs/program_spec.h"
#include "core/programs/slot_layout.h"
#include "core/secret/random.h"
#include "core/secret/secret_key.h"
#include "grpcpp/channel.h"
#include "gtest/gtest.h"
#include "server/server.h"

namespace cipherd::server::testing {

// A directory of programs that is deleted with this object.
class ProgramDirectory {
 public:
  ProgramDirectory();
  ~ProgramDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Writes `spec` where a daemon of `programs` finds it.
void AddProgram(const std::filesystem::path& programs, const programs::ProgramSpec& spec);

// An insecure context with three rescalings of 40 bits over a base of so many.
ckks::ContextParameters SmallContext(int log_n, int base_prime_bits);

// One item, in the first 128 slots.
programs::SlotLayout TestLayout();

// Defaults for tests: port 0, no metrics page, small pools and queues.
ServerOptions TestOptions(const std::filesystem::path& programs);

// A client's keys and values for one program. Seeded.
class Party {
 public:
  Party(client::ProgramPtr program, uint64_t seed);

  const client::ProgramDescription& program() const { return *program_; }

  // The keys that `layout` names, as values.
  std::vector<value::ExactValue> MakeKeys(const ckks::KeyLayout& layout);
  // Uploads them (the program's own where none is given) and returns the key set id, 64 digits.
  absl::StatusOr<std::string> UploadKeys(const client::Client& client,
                                         const ckks::KeyLayout* layout = nullptr);

  // The tuple of one ciphertext of `slots`; at another depth or scale where asked for.
  value::ValueTree Encrypt(const std::vector<double>& slots, int depth = 0, double scale = 0);
  std::vector<double> Decrypt(const value::ValueTree& outputs);

 private:
  client::ProgramPtr program_;
  secret::Random random_;
  secret::SecretKey secret_key_;
  ckks::Encoder encoder_;
};

// Slot j is a small number that depends on `seed` and j.
std::vector<double> TestSlots(uint64_t seed, int64_t count);
// What square_sum makes of them.
std::vector<double> SquareSum(const std::vector<double>& x);
// The largest difference.
double MaxDifference(const std::vector<double>& a, const std::vector<double>& b);
// Errors of these programs at these parameters stay far below; results for others' inputs do not.
inline constexpr double kTolerance = 1e-3;

// A raw call's material: descriptions and payload as they would be sent.
struct WireRequest {
  v1::EvaluationHeader header;
  std::string payload;
};
WireRequest MakeWireRequest(const std::string& program, const std::string& key_set_id,
                            const value::ValueTree& inputs);

// Started once a test.
class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(TestOptions(directory_.path())); }
  // Starts, loads and connects.
  void Start(const ServerOptions& options);
  // The last part of Start.
  void Connect();
  void TearDown() override;

  std::string address() const { return "127.0.0.1:" + std::to_string(server_->port()); }
  std::shared_ptr<grpc::Channel> NewChannel() const;

  // A party of square_sum whose keys are uploaded.
  Party& alice() { return *alice_; }
  const std::string& alice_keys() const { return alice_keys_; }

  // Evaluates and compares with the expectation, by the client library.
  void ExpectGoodRequestSucceeds(uint64_t seed = 1);

  grpc::Status EvaluateUnary(const WireRequest& request, v1::EvaluateResponse* response);
  // Sends header and payload in chunks of `chunk_bytes`.
  grpc::Status EvaluateStream(const WireRequest& request, size_t chunk_bytes,
                              std::string* payload_out);

  ProgramDirectory directory_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<v1::EvaluationService::Stub> stub_;
  std::unique_ptr<Party> alice_;
  std::string alice_keys_;
};

}  // namespace cipherd::server::testing

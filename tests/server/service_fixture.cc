#include "tests/server/service_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "core/base/status_macros.h"
#include "core/secret/decryptor.h"
#include "core/secret/encryptor.h"
#include "core/secret/key_generator.h"
#include "grpcpp/create_channel.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/program_codec.h"
#include "proto/codec/tree_encoder.h"
#include "tests/testing/served_device.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server::testing {
namespace {

using programs::OperationKind;
using programs::ProgramSpec;

ProgramSpec SquareSumSpec() {
  ProgramSpec spec;
  spec.name = "square_sum";
  spec.version = 3;
  spec.description = "x[j]^2 + x[j+1]^2";
  spec.context = SmallContext(8, 50);
  spec.inputs = {{.name = "x", .layout = TestLayout()}};
  spec.operations = {{.name = "x2", .kind = OperationKind::kSquare, .a = "x"},
                     {.name = "linear", .kind = OperationKind::kRelinearize, .a = "x2"},
                     {.name = "square", .kind = OperationKind::kRescale, .a = "linear"},
                     {.name = "next", .kind = OperationKind::kRotate, .a = "square", .step = 1},
                     {.name = "sum", .kind = OperationKind::kAdd, .a = "square", .b = "next"}};
  spec.outputs = {{.name = "y", .edge = "sum", .layout = TestLayout()}};
  return spec;
}

ProgramSpec NegateSpec() {
  ProgramSpec spec;
  spec.name = "negate";
  spec.context = SmallContext(8, 52);
  spec.inputs = {{.name = "x", .layout = TestLayout()}};
  spec.operations = {{.name = "minus", .kind = OperationKind::kNegate, .a = "x"}};
  spec.outputs = {{.name = "y", .edge = "minus", .layout = TestLayout()}};
  return spec;
}

}  // namespace

ProgramDirectory::ProgramDirectory() {
  std::string name = std::filesystem::temp_directory_path() / "cipherd-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
  for (const ProgramSpec& spec : {SquareSumSpec(), NegateSpec()}) AddProgram(path_, spec);
}

ProgramDirectory::~ProgramDirectory() { std::filesystem::remove_all(path_); }

void AddProgram(const std::filesystem::path& programs, const ProgramSpec& spec) {
  std::filesystem::create_directory(programs / spec.name);
  std::ofstream(programs / spec.name / "program.textproto")
      << codec::PrintProgramText(spec).value();
}

ckks::ContextParameters SmallContext(int log_n, int base_prime_bits) {
  return *ckks::MakeContextParameters({.log_n = log_n,
                                       .base_prime_bits = base_prime_bits,
                                       .depth_prime_bits = 40,
                                       .max_depth = 3,
                                       .p_prime_bits = 55,
                                       .p_prime_count = 2,
                                       .digit_count = 2},
                                      ckks::SecurityPolicy::kAllowInsecure);
}

programs::SlotLayout TestLayout() {
  return {.item_count = 1, .item_stride = 1, .element_count = 128, .element_stride = 1};
}

ServerOptions TestOptions(const std::filesystem::path& programs) {
  ServerOptions options;
  options.listen.address = "127.0.0.1:0";
  options.metrics_address.clear();
  options.device.spec = cipherd::testing::ServedDevice();
  options.device.pools.device_memory.slab_bytes = 1 << 20;
  options.device.pools.pinned_memory.slab_bytes = 1 << 20;
  options.engine.instances = 2;
  options.engine.queue_capacity = 8;
  options.engine.keys.host_budget_bytes = 64 << 20;
  options.engine.keys.device_budget_bytes = 32 << 20;
  options.limits.max_chunk_bytes = 1 << 16;
  options.shutdown.drain_timeout = absl::Seconds(20);
  options.programs_directory = programs;
  options.allow_insecure_contexts = true;
  return options;
}

Party::Party(client::ProgramPtr program, uint64_t seed)
    : program_(std::move(program)),
      random_(secret::Random::FromSeedForTesting(seed)),
      secret_key_(secret::SecretKey::Generate(program_->context, random_)),
      encoder_(program_->context) {}

std::vector<value::ExactValue> Party::MakeKeys(const ckks::KeyLayout& layout) {
  std::vector<value::ExactValue> keys;
  const secret::KeyGenerator generator(secret_key_);
  for (const ckks::KeyId& id : layout.ids()) {
    const secret::GeneratedKey generated = generator.GenerateKey(id, random_).value();
    keys.push_back(generated.key.ToValue(program_->context->parameters(), program_->context->id()));
  }
  return keys;
}

absl::StatusOr<std::string> Party::UploadKeys(const client::Client& client,
                                              const ckks::KeyLayout* layout) {
  const std::vector<value::ExactValue> keys =
      MakeKeys(layout == nullptr ? program_->required_keys : *layout);
  uint64_t total_bytes = 0;
  for (const value::ExactValue& key : keys) total_bytes += key.tensors[0].second.bytes();
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<client::KeyUpload> upload,
                           client.StartKeyUpload({.context = program_->known_context,
                                                  .key_count = static_cast<int>(keys.size()),
                                                  .total_bytes = total_bytes}));
  for (const value::ExactValue& key : keys) CIPHERD_RETURN_IF_ERROR(upload->Add(key));
  return upload->Finish();
}

value::ValueTree Party::Encrypt(const std::vector<double>& slots, int depth, double scale) {
  const ckks::ContextParameters& parameters = program_->context->parameters();
  const ckks::Plaintext plaintext =
      encoder_.Encode(slots, depth, scale == 0 ? parameters.default_scale : scale).value();
  const ckks::Ciphertext ciphertext =
      secret::SymmetricEncryptor(secret_key_).Encrypt(plaintext, random_).value().ciphertext;
  return value::ValueTree::Tuple(
      {value::ValueTree::Value(ciphertext.ToValue(parameters, program_->context->id()))});
}

std::vector<double> Party::Decrypt(const value::ValueTree& outputs) {
  const ckks::Ciphertext ciphertext =
      ckks::Ciphertext::FromValue(outputs[0].exact_value(), "outputs[0]",
                                  program_->context->parameters(), program_->context->id())
          .value();
  const ckks::Plaintext plaintext = secret::Decryptor(secret_key_).Decrypt(ciphertext).value();
  const std::vector<std::complex<double>> decoded = encoder_.Decode(plaintext).value();
  std::vector<double> slots;
  for (const std::complex<double>& slot : decoded) slots.push_back(slot.real());
  return slots;
}

std::vector<double> TestSlots(uint64_t seed, int64_t count) {
  std::vector<double> slots;
  for (int64_t j = 0; j < count; ++j) slots.push_back(std::sin(0.7 * j + 1.3 * seed));
  return slots;
}

std::vector<double> SquareSum(const std::vector<double>& x) {
  std::vector<double> y;
  for (size_t j = 0; j < x.size(); ++j) {
    const double next = x[(j + 1) % x.size()];
    y.push_back(x[j] * x[j] + next * next);
  }
  return y;
}

double MaxDifference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t j = 0; j < a.size(); ++j) largest = std::max(largest, std::abs(a[j] - b[j]));
  return largest;
}

WireRequest MakeWireRequest(const std::string& program, const std::string& key_set_id,
                            const value::ValueTree& inputs) {
  WireRequest request;
  request.header.set_program(program);
  if (!key_set_id.empty()) {
    request.header.set_key_set_id(codec::EncodeDigest(key_set_id, "key_set_id").value());
  }
  codec::PayloadSource source =
      codec::EncodeTree(inputs, "inputs", request.header.mutable_inputs()).value();
  source.TakeInto(source.total_bytes(), &request.payload);
  return request;
}

void ServiceTest::Start(const ServerOptions& options) {
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(options, base::Clock::Real()));
  ASSERT_OK(server_->LoadPrograms());
  Connect();
}

void ServiceTest::Connect() {
  stub_ = v1::EvaluationService::NewStub(NewChannel());
  client::ClientOptions client_options;
  client_options.target = address();
  client_options.security_policy = ckks::SecurityPolicy::kAllowInsecure;
  ASSERT_OK_AND_ASSIGN(client_, client::Client::Connect(client_options));
  ASSERT_OK_AND_ASSIGN(client::ProgramPtr program, client_->GetProgram("square_sum"));
  alice_ = std::make_unique<Party>(program, /*seed=*/11);
  ASSERT_OK_AND_ASSIGN(alice_keys_, alice_->UploadKeys(*client_));
}

void ServiceTest::TearDown() {
  if (server_ == nullptr) return;
  // Fails on a leaked lease or a request that did not end.
  EXPECT_OK(server_->Shutdown());
  for (const auto& [program, counts] : server_->engine().ledger().Snapshot()) {
    EXPECT_TRUE(counts.Balances()) << program;
  }
}

std::shared_ptr<grpc::Channel> ServiceTest::NewChannel() const {
  // A connection of its own each.
  static std::atomic<int> number = 0;
  grpc::ChannelArguments arguments;
  arguments.SetInt("cipherd.test.number", ++number);
  return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
}

void ServiceTest::ExpectGoodRequestSucceeds(uint64_t seed) {
  const std::vector<double> x = TestSlots(seed, 128);
  const absl::StatusOr<client::EvaluationResult> result =
      client_->Evaluate({.program = client_->GetProgram("square_sum").value(),
                         .key_set_id = alice_keys_,
                         .request_id = "good",
                         .inputs = alice_->Encrypt(x)});
  ASSERT_OK(result);
  EXPECT_LT(MaxDifference(alice_->Decrypt(result->outputs), SquareSum(x)), kTolerance);
}

grpc::Status ServiceTest::EvaluateUnary(const WireRequest& request,
                                        v1::EvaluateResponse* response) {
  v1::EvaluateRequest message;
  *message.mutable_header() = request.header;
  message.set_payload(request.payload);
  grpc::ClientContext context;
  return stub_->Evaluate(&context, message, response);
}

grpc::Status ServiceTest::EvaluateStream(const WireRequest& request, size_t chunk_bytes,
                                         std::string* payload_out) {
  grpc::ClientContext context;
  const auto stream = stub_->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  *message.mutable_header() = request.header;
  bool sends = stream->Write(message);
  for (size_t at = 0; sends && at < request.payload.size(); at += chunk_bytes) {
    message.set_chunk(request.payload.substr(at, chunk_bytes));
    sends = stream->Write(message);
  }
  stream->WritesDone();
  v1::EvaluateStreamResponse response;
  while (stream->Read(&response)) {
    if (response.has_chunk() && payload_out != nullptr) payload_out->append(response.chunk());
  }
  return stream->Finish();
}

}  // namespace cipherd::server::testing

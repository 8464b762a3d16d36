// Outputs that are sent while the daemon computes the next ones.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/programs/program_spec.h"
#include "core/value/tensor.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/relay.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::Relay;
using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using namespace server::testing;  // NOLINT: the test's own vocabulary

constexpr char kProgram[] = "far_apart";
// Between the two outputs; each takes the CPU some tenths of a millisecond.
constexpr int kRotations = 64;

// Serves, too, a program whose second output (its input rotated so often that it is itself again)
// comes long after the first (its negation).
class EarlyOutputsTest : public ServiceTest {
 protected:
  void SetUp() override {
    programs::ProgramSpec spec;
    spec.name = kProgram;
    spec.context = SmallContext(/*log_n=*/12, /*base_prime_bits=*/52);
    spec.inputs = {{.name = "x", .layout = TestLayout()}};
    spec.operations = {{.name = "minus", .kind = programs::OperationKind::kNegate, .a = "x"}};
    std::string edge = "x";
    for (int i = 0; i < kRotations; ++i) {
      std::string next = absl::StrCat("r", i);
      spec.operations.push_back({.name = next,
                                 .kind = programs::OperationKind::kRotate,
                                 .a = std::move(edge),
                                 .step = (1 << 11) / kRotations});
      edge = std::move(next);
    }
    spec.outputs = {{.name = "early", .edge = "minus", .layout = TestLayout()},
                    {.name = "late", .edge = edge, .layout = TestLayout()}};
    AddProgram(directory_.path(), spec);

    ServerOptions options = TestOptions(directory_.path());
    options.transport.stall_timeout = absl::Milliseconds(300);
    options.engine.workers = 1;
    options.engine.instances = 1;
    Start(options);
    party_ = std::make_unique<Party>(client_->GetProgram(kProgram).value(), 5);
    keys_ = party_->UploadKeys(*client_).value();
    request_ = MakeWireRequest(kProgram, keys_, party_->Encrypt(TestSlots(1, 128)));
    request_.header.set_early_outputs(true);
  }

  using Stream = grpc::ClientReaderWriter<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse>;
  std::unique_ptr<Stream> Send(v1::EvaluationService::Stub& stub, grpc::ClientContext& context) {
    std::unique_ptr<Stream> stream = stub.EvaluateStream(&context);
    v1::EvaluateStreamRequest message;
    *message.mutable_header() = request_.header;
    EXPECT_TRUE(stream->Write(message));
    for (size_t at = 0; at < request_.payload.size(); at += 1 << 15) {
      message.set_chunk(request_.payload.substr(at, 1 << 15));
      EXPECT_TRUE(stream->Write(message));
    }
    stream->WritesDone();
    return stream;
  }
  // Of a connection whose window does not grow.
  static std::unique_ptr<v1::EvaluationService::Stub> StubWithWindow(const std::string& target,
                                                                     int window_bytes) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, window_bytes);
    return v1::EvaluationService::NewStub(
        grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
  }
  // The header where none has come, then chunks until `bytes` have.
  static void ReadOutputs(Stream& stream, size_t bytes, std::string& payload) {
    v1::EvaluateStreamResponse message;
    if (payload.empty()) {
      ASSERT_TRUE(stream.Read(&message));
      ASSERT_TRUE(message.has_header());
      EXPECT_FALSE(message.header().has_stage_times());
    }
    while (payload.size() < bytes && stream.Read(&message)) payload += message.chunk();
    EXPECT_EQ(payload.size(), bytes) << "a chunk ends where an output does";
  }
  size_t OutputBytes() { return party_->program().output_bytes / 2; }

  engine::ServedProgram& served() { return **server_->engine().FindProgram(kProgram); }
  // Replays whose end the engine has seen.
  uint64_t replays() {
    uint64_t sum = 0;
    for (const auto& [batch_size, count] : served().run_counts().replays()) sum += count;
    return sum;
  }
  engine::RequestLedger::Counts counts() {
    return server_->engine().ledger().Snapshot().at(kProgram);
  }
  void AwaitNothingInFlight() {
    while (counts().in_flight > 0 || served().trees().leased_count() > 0) {
      std::this_thread::yield();
    }
  }

  std::unique_ptr<Party> party_;
  std::string keys_;
  WireRequest request_;
};

TEST_F(EarlyOutputsTest, TheFirstComesWhileTheNextIsComputed) {
  // On a busy machine this thread may look too late; not every time.
  bool has_come_early = false;
  std::string payload;
  for (int attempt = 0; attempt < 20 && !has_come_early; ++attempt) {
    payload.clear();
    const uint64_t replays_before = replays();
    grpc::ClientContext context;
    const auto stream = Send(*stub_, context);
    ReadOutputs(*stream, OutputBytes(), payload);
    has_come_early = replays() == replays_before && counts().in_flight == 1;
    ReadOutputs(*stream, 2 * OutputBytes(), payload);
    v1::EvaluateStreamResponse message;
    ASSERT_TRUE(stream->Read(&message));
    ASSERT_TRUE(message.has_stage_times());
    EXPECT_GT(message.stage_times().replay_seconds(), 0);
    EXPECT_FALSE(stream->Read(&message));
    EXPECT_TRUE(stream->Finish().ok());
  }
  EXPECT_TRUE(has_come_early);
  // The same bytes as all at once.
  request_.header.set_early_outputs(false);
  std::string at_once;
  EXPECT_TRUE(EvaluateStream(request_, 1 << 15, &at_once).ok());
  EXPECT_TRUE(payload == at_once);
}

TEST_F(EarlyOutputsTest, TheClientHearsOfEachAndOfAllAtTheEnd) {
  const std::vector<double> slots = TestSlots(1, 128);
  client::EvaluationRequest request = {.program = client_->GetProgram(kProgram).value(),
                                       .key_set_id = keys_,
                                       .inputs = party_->Encrypt(slots)};
  std::vector<size_t> told;
  std::vector<value::ValueTree> outputs;
  request.on_output = [&](size_t index, value::ValueTree output) {
    told.push_back(index);
    outputs.push_back(std::move(output));
  };
  ASSERT_OK_AND_ASSIGN(const client::EvaluationResult result, client_->Evaluate(request));
  EXPECT_THAT(told, ElementsAre(0, 1));
  EXPECT_GT(result.stage_times.replay_seconds(), 0);
  std::vector<double> negated = slots;
  for (double& slot : negated) slot = -slot;
  const auto first = [&](const value::ValueTree& tree) {
    std::vector<double> all = party_->Decrypt(value::ValueTree::Tuple({tree}));
    all.resize(slots.size());
    return all;
  };
  EXPECT_LT(MaxDifference(first(outputs[0]), negated), kTolerance);
  EXPECT_LT(MaxDifference(first(outputs[1]), slots), kTolerance);
  EXPECT_LT(MaxDifference(first(result.outputs[1]), slots), kTolerance);
}

TEST_F(EarlyOutputsTest, AClientThatLeavesAfterTheFirstHoldsNothing) {
  grpc::ClientContext context;
  const auto stream = Send(*stub_, context);
  std::string payload;
  ReadOutputs(*stream, OutputBytes(), payload);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  AwaitNothingInFlight();
  EXPECT_EQ(counts().FinishedIn(engine::RequestState::kCancelled), 1u);
  ExpectGoodRequestSucceeds();
}

TEST_F(EarlyOutputsTest, AnUnloadLetsWhoReadsEnd) {
  grpc::ClientContext context;
  const auto stream = Send(*stub_, context);
  std::string payload;
  ReadOutputs(*stream, OutputBytes(), payload);
  std::thread unload([this] {
    EXPECT_OK(server_->engine().UnloadProgram(kProgram, 1, absl::InfiniteDuration()));
  });
  ReadOutputs(*stream, 2 * OutputBytes(), payload);
  v1::EvaluateStreamResponse message;
  EXPECT_TRUE(stream->Read(&message));
  EXPECT_TRUE(stream->Finish().ok());
  unload.join();
}

TEST_F(EarlyOutputsTest, AWriteThatFailsWhileTheReplayRunsEndsTheCallAfterIt) {
  const uint64_t replays_before = replays();
  // The header comes, the payload does not.
  const auto stub = StubWithWindow(address(), 2048);
  grpc::ClientContext context;
  const auto stream = Send(*stub, context);
  v1::EvaluateStreamResponse message;
  ASSERT_TRUE(stream->Read(&message));
  ASSERT_TRUE(message.has_header());
  context.TryCancel();
  while (served().trees().leased_count() > 0) std::this_thread::yield();
  EXPECT_EQ(replays(), replays_before + 1) << "the replay may still write what has gone back";
  AwaitNothingInFlight();
  EXPECT_EQ(counts().FinishedIn(engine::RequestState::kCancelled), 1u);
  ExpectGoodRequestSucceeds();
}

TEST_F(EarlyOutputsTest, AClientThatReadsNoFurtherIsLetGo) {
  Relay relay(server_->port());
  // Smaller than an output.
  const auto stub = StubWithWindow(relay.address(), 1 << 16);
  grpc::ClientContext context;
  const auto stream = stub->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  *message.mutable_header() = request_.header;
  ASSERT_TRUE(stream->Write(message));
  while (served().trees().leased_count() == 0) std::this_thread::yield();
  for (size_t at = 0; at < request_.payload.size(); at += 1 << 15) {
    message.set_chunk(request_.payload.substr(at, 1 << 15));
    ASSERT_TRUE(stream->Write(message));
  }
  relay.HoldReplies();
  stream->WritesDone();
  AwaitNothingInFlight();
  EXPECT_EQ(counts().FinishedIn(engine::RequestState::kSucceeded), 0u);
  ExpectGoodRequestSucceeds();
  context.TryCancel();
}

}  // namespace
}  // namespace cipherd::server

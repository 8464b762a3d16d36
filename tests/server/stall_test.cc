// Clients that stop in the middle: they send no message that is waited for, or read none.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/programs/program_spec.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "server/stall_watch.h"
#include "tests/server/engine/held_file.h"
#include "tests/server/loopback_connection.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/relay.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::Relay;
using ::cipherd::testing::StatusIs;
using namespace server::testing;  // NOLINT: the test's own vocabulary

TEST(StallWatchTest, APeerHasItsTimeAndIsReportedOnce) {
  base::FakeClock clock;
  StallWatch watch(absl::Seconds(10), clock);
  int stalls = 0, others = 0;
  absl::Mutex mu;
  StallWatch::Call call(watch, mu, [&] { ++stalls; });
  StallWatch::Call other(watch, mu, [&] { ++others; });
  const auto after = [&](absl::Duration time) {
    clock.Advance(time);
    watch.Check();
    return stalls;
  };
  EXPECT_EQ(after(absl::Hours(1)), 0) << "nothing is asked of it";
  call.AwaitPeer();
  EXPECT_EQ(after(absl::Seconds(9)), 0);
  call.AwaitPeer();
  EXPECT_EQ(after(absl::Seconds(9)), 0) << "it moved";
  call.Rest();
  EXPECT_EQ(after(absl::Seconds(9)), 0);
  call.AwaitPeer();
  EXPECT_EQ(after(absl::Seconds(10)), 1);
  EXPECT_EQ(after(absl::Seconds(10)), 1);
  call.AwaitPeer();
  EXPECT_EQ(after(absl::Seconds(10)), 2);
  EXPECT_EQ(others, 0);
}

class StallTest : public ServiceTest {
 protected:
  // All that the program's places allow.
  static constexpr int kMaxCalls = 10;

  void SetUp() override {
    ServerOptions options = TestOptions(directory_.path());
    options.transport.stall_timeout = absl::Milliseconds(300);
    options.transport.calls.max_calls = kMaxCalls;
    Start(options);
    bytes_before_ = server_->engine().keys().used_bytes();
  }
  WireRequest Good() {
    return MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  }
  void ExpectStalled(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
    EXPECT_EQ(client::ReasonOf(FromGrpcStatus(status)), v1::ERROR_REASON_STALLED);
  }
  size_t LeasedTrees() {
    return (*server_->engine().FindProgram("square_sum"))->trees().leased_count();
  }

  int64_t bytes_before_ = 0;
};

TEST_F(StallTest, AHeaderOnlyUploadDoesNotHoldItsBudget) {
  grpc::ClientContext context;
  v1::PutKeysResponse response;
  const auto writer = stub_->PutKeys(&context, &response);
  v1::PutKeysRequest header;
  header.mutable_header()->set_context_id(alice().program().known_context->id_bytes());
  header.mutable_header()->set_key_count(2);
  header.mutable_header()->set_total_bytes(alice().program().key_bytes);
  ASSERT_TRUE(writer->Write(header));
  while (server_->engine().keys().used_bytes() == bytes_before_) std::this_thread::yield();
  ExpectStalled(writer->Finish());
  EXPECT_EQ(server_->engine().keys().used_bytes(), bytes_before_);
}

TEST_F(StallTest, AnUploadThatNeverBeginsEnds) {
  grpc::ClientContext context;
  v1::PutKeysResponse response;
  const auto writer = stub_->PutKeys(&context, &response);
  ExpectStalled(writer->Finish());
}

TEST_F(StallTest, AStreamThatNeverBeginsEnds) {
  grpc::ClientContext context;
  const auto stream = stub_->EvaluateStream(&context);
  v1::EvaluateStreamResponse response;
  EXPECT_FALSE(stream->Read(&response));
  ExpectStalled(stream->Finish());
}

// What takes the daemon long is no stall of its client.
class SlowDaemonTest : public StallTest {
 protected:
  void SetUp() override {
    StallTest::SetUp();
    ASSERT_OK(server_->Shutdown());
    ServerOptions options = TestOptions(directory_.path());
    options.transport.stall_timeout = absl::Milliseconds(300);
    options.engine.keys.directory = KeyDirectory();
    // One set: what is not used last is on file only.
    options.engine.keys.host_budget_bytes = static_cast<int64_t>(alice().program().key_bytes);
    Start(options);
  }
  std::filesystem::path KeyDirectory() const { return files_.path() / "keys"; }
  // As long as others take to stall, twice.
  void AwaitTwoStalls() {
    for (int i = 0; i < 2; ++i) {
      grpc::ClientContext context;
      v1::PutKeysResponse response;
      ExpectStalled(stub_->PutKeys(&context, &response)->Finish());
    }
  }

  ProgramDirectory files_;
};

TEST_F(SlowDaemonTest, AnUploadThatIsBeingStoredHasNotStalled) {
  // The disk's thread is held.
  absl::Notification held, release;
  server_->engine().keys().Drop("nobody", std::string(64, 'a'), [&](const absl::Status&) {
    held.Notify();
    release.WaitForNotification();
  });
  held.WaitForNotification();
  Party bob(client_->GetProgram("square_sum").value(), 31);
  absl::Status stored;
  std::thread upload([&] { stored = bob.UploadKeys(*client_).status(); });
  AwaitTwoStalls();
  release.Notify();
  upload.join();
  EXPECT_OK(stored);
}

TEST_F(SlowDaemonTest, AnEvaluationThatRunsHasNotStalled) {
  ASSERT_OK(Party(client_->GetProgram("square_sum").value(), 31).UploadKeys(*client_));
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KeyDirectory())) {
    if (entry.path().stem() == alice_keys()) file = entry.path();
  }
  engine::testing::HeldFile held(file);
  const WireRequest request = Good();
  grpc::Status message, stream;
  std::thread clients[] = {std::thread([&] {
                             v1::EvaluateResponse response;
                             message = EvaluateUnary(request, &response);
                           }),
                           std::thread([&] {
                             std::string payload;
                             stream = EvaluateStream(request, 1 << 14, &payload);
                           })};
  while (LeasedTrees() < 2) std::this_thread::yield();
  AwaitTwoStalls();
  held.Release();
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(message.ok()) << message.error_message();
  EXPECT_TRUE(stream.ok()) << stream.error_message();
}

// The peer lets no byte of a message come: a status is so small that it would fit into buffers that
// nobody reads.
TEST_F(StallTest, AHealthWatchWhoseStatusIsNotTakenEnds) {
  using Peer = LoopbackConnection;
  Peer peer(server_->port());
  ASSERT_TRUE(peer.Connect());
  // SETTINGS_INITIAL_WINDOW_SIZE: 0.
  ASSERT_TRUE(peer.Greet(std::string_view("\0\4\0\0\0\0", 6)));
  // POST, http, and literals.
  const std::string headers =
      absl::StrCat("\x83\x86\x04\x1c/grpc.health.v1.Health/Watch\x01\x07", "cipherd\x0f\x10\x10",
                   "application/grpc", std::string("\0\x02te\x08trailers", 13));
  constexpr std::string_view kNoName("\0\0\0\0\0", 5);
  ASSERT_TRUE(peer.SendFrame(Peer::kHeaders, Peer::kEndHeaders, 1, headers));
  ASSERT_TRUE(peer.SendFrame(Peer::kData, Peer::kEndStream, 1, kNoName));
  while (true) {
    const std::optional<Peer::Frame> frame = peer.ReceiveFrame();
    ASSERT_TRUE(frame.has_value()) << "the call does not end";
    ASSERT_NE(frame->type, Peer::kData);
    if (frame->stream == 1 && (frame->type == Peer::kReset || frame->flags & Peer::kEndStream)) {
      break;
    }
  }
  EXPECT_TRUE(peer.AnswersPing()) << "the connection has done nothing";
}

TEST_F(StallTest, InputsThatStopComingGiveTheirPlaceBack) {
  const WireRequest request = Good();
  grpc::ClientContext context;
  const auto stream = stub_->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  *message.mutable_header() = request.header;
  ASSERT_TRUE(stream->Write(message));
  while (LeasedTrees() == 0) std::this_thread::yield();
  v1::EvaluateStreamResponse response;
  EXPECT_FALSE(stream->Read(&response));
  ExpectStalled(stream->Finish());
  EXPECT_EQ(LeasedTrees(), 0u);
  ExpectGoodRequestSucceeds();
}

// Serves a program, too, whose results exceed what gRPC takes for a client that does not read: the
// buffer of a stream and the window of a connection, 64 KiB each.
class SlowReaderTest : public StallTest {
 protected:
  void SetUp() override {
    programs::ProgramSpec spec;
    spec.name = "negate_much";
    spec.context = SmallContext(/*log_n=*/13, /*base_prime_bits=*/52);
    spec.inputs = {{.name = "x", .layout = TestLayout()}};
    spec.operations = {{.name = "minus", .kind = programs::OperationKind::kNegate, .a = "x"}};
    spec.outputs = {{.name = "y", .edge = "minus", .layout = TestLayout()}};
    AddProgram(directory_.path(), spec);
    StallTest::SetUp();
  }
};

TEST_F(SlowReaderTest, AResultThatIsNotReadGivesItsPlaceBack) {
  Party party(client_->GetProgram("negate_much").value(), 5);
  const WireRequest request = MakeWireRequest("negate_much", "", party.Encrypt(TestSlots(1, 128)));
  Relay relay(server_->port());
  // A window that does not grow.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 16);
  const auto stub = v1::EvaluationService::NewStub(
      grpc::CreateCustomChannel(relay.address(), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  const auto stream = stub->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  *message.mutable_header() = request.header;
  ASSERT_TRUE(stream->Write(message));
  engine::PinnedPool& trees = (*server_->engine().FindProgram("negate_much"))->trees();
  while (trees.leased_count() == 0) std::this_thread::yield();
  for (size_t at = 0; at < request.payload.size(); at += 1 << 15) {
    message.set_chunk(request.payload.substr(at, 1 << 15));
    ASSERT_TRUE(stream->Write(message));
  }
  relay.HoldReplies();
  stream->WritesDone();
  const auto counts = [&] { return server_->engine().ledger().Snapshot().at("negate_much"); };
  while (counts().in_flight > 0) std::this_thread::yield();
  EXPECT_EQ(counts().FinishedIn(engine::RequestState::kFailed), 1u);
  EXPECT_EQ(trees.leased_count(), 0u);
  ExpectGoodRequestSucceeds();
  context.TryCancel();
}

// Clients whose results wait for them: small enough for gRPC to take them whole, so that the
// evaluation has ended, but larger than what the client lets come, so that the call has not.
class UnreadResultTest : public StallTest {
 protected:
  void SetUp() override {
    StallTest::SetUp();
    relay_.emplace(server_->port());
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    // A result's header comes, its payload does not.
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 2048);
    unread_stub_ = v1::EvaluationService::NewStub(grpc::CreateCustomChannel(
        relay_->address(), grpc::InsecureChannelCredentials(), arguments));
  }
  void TearDown() override {
    relay_.reset();
    StallTest::TearDown();
  }
  uint64_t Successes() {
    return server_->engine().ledger().Snapshot()["square_sum"].FinishedIn(
        engine::RequestState::kSucceeded);
  }
  // Of all that may be under way; others get their turn.
  void ExpectCallsEnd(uint64_t successes_before) {
    while (Successes() < successes_before + kMaxCalls) std::this_thread::yield();
    v1::EvaluateResponse response;
    while (!EvaluateUnary(Good(), &response).ok()) std::this_thread::yield();
    EXPECT_EQ(LeasedTrees(), 0u);
  }

  std::optional<Relay> relay_;
  std::unique_ptr<v1::EvaluationService::Stub> unread_stub_;
};

TEST_F(UnreadResultTest, OfAStreamDoesNotHoldItsCall) {
  const WireRequest request = Good();
  v1::EvaluateStreamRequest header, chunk;
  *header.mutable_header() = request.header;
  chunk.set_chunk(request.payload);
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse>>
        stream;
  };
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kMaxCalls; ++i) {
    Call& call = *calls.emplace_back(std::make_unique<Call>());
    call.stream = unread_stub_->EvaluateStream(&call.context);
    ASSERT_TRUE(call.stream->Write(header));
  }
  while (LeasedTrees() < kMaxCalls) std::this_thread::yield();
  const uint64_t before = Successes();
  relay_->HoldReplies();
  for (const auto& call : calls) {
    ASSERT_TRUE(call->stream->Write(chunk));
    call->stream->WritesDone();
  }
  ExpectCallsEnd(before);
  for (const auto& call : calls) call->context.TryCancel();
}

TEST_F(UnreadResultTest, OfAMessageDoesNotHoldItsCall) {
  v1::EvaluateRequest message;
  const WireRequest request = Good();
  *message.mutable_header() = request.header;
  message.set_payload(request.payload);
  const auto evaluate = [&](grpc::ClientContext& context) {
    v1::EvaluateResponse response;
    return unread_stub_->Evaluate(&context, message, &response);
  };
  grpc::ClientContext first;
  ASSERT_TRUE(evaluate(first).ok());
  const uint64_t before = Successes();
  relay_->HoldReplies();
  std::vector<grpc::ClientContext> contexts(kMaxCalls);
  std::vector<std::thread> clients;
  for (grpc::ClientContext& context : contexts) clients.emplace_back(evaluate, std::ref(context));
  ExpectCallsEnd(before);
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace cipherd::server

// Every RPC over a real channel.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "server/version.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/served_device.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

TEST_F(ServiceTest, ServerInfoStatesBuildDeviceAndLimits) {
  ASSERT_OK_AND_ASSIGN(const v1::ServerInfo info, client_->GetServerInfo());
  EXPECT_EQ(info.version(), kVersion);
  EXPECT_EQ(info.device(), cipherd::testing::ServedDeviceId());
  EXPECT_FALSE(info.device_name().empty());
  EXPECT_EQ(info.limits().max_chunk_bytes(), uint64_t{1} << 16);
  EXPECT_TRUE(info.insecure_contexts_allowed());
}

TEST_F(ServiceTest, ProgramsAreListedWithTheirReadiness) {
  ASSERT_OK_AND_ASSIGN(const std::vector<v1::ProgramSummary> programs, client_->ListPrograms());
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[0].name(), "negate");
  EXPECT_EQ(programs[1].name(), "square_sum");
  EXPECT_EQ(programs[1].version(), 3u);
  EXPECT_TRUE(programs[0].ready() && programs[1].ready());
}

TEST_F(ServiceTest, AProgramIsDescribedInFull) {
  ASSERT_OK_AND_ASSIGN(const v1::GetProgramResponse program,
                       client_->GetProgramMessage("square_sum"));
  EXPECT_EQ(program.summary().description(), "x[j]^2 + x[j+1]^2");
  EXPECT_EQ(program.context_id().size(), 32u);
  EXPECT_EQ(program.required_keys_size(), 2);
  EXPECT_EQ(program.input_bytes(), 2u * 4 * 256 * 8);
  EXPECT_EQ(program.output_bytes(), 2u * 3 * 256 * 8);
  EXPECT_EQ(program.inputs(0).name(), "x");
  EXPECT_EQ(program.outputs(0).name(), "y");
  EXPECT_THAT(client_->GetProgram("nothing"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ServiceTest, UnaryAndStreamGiveTheSameBytes) {
  const std::vector<double> x = TestSlots(3, 128);
  const WireRequest request = MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(x));
  v1::EvaluateResponse unary;
  ASSERT_OK(FromGrpcStatus(EvaluateUnary(request, &unary)));
  for (size_t chunk_bytes : {size_t{1} << 16, size_t{4096}, size_t{1000}}) {
    std::string streamed;
    ASSERT_OK(FromGrpcStatus(EvaluateStream(request, chunk_bytes, &streamed)));
    EXPECT_EQ(streamed, unary.payload());
  }
  EXPECT_GT(unary.stage_times().replay_seconds(), 0);
  EXPECT_GT(unary.stage_times().decode_seconds(), 0);
}

TEST_F(ServiceTest, AProgramWithoutKeysNeedsNoKeySet) {
  ASSERT_OK_AND_ASSIGN(const client::ProgramPtr negate, client_->GetProgram("negate"));
  Party bob(negate, 21);
  const std::vector<double> x = TestSlots(4, 128);
  v1::EvaluateResponse response;
  ASSERT_OK(
      FromGrpcStatus(EvaluateUnary(MakeWireRequest("negate", "", bob.Encrypt(x)), &response)));
  const value::ValueTree outputs = bob.Encrypt(x);  // for its storage
  const value::Tensor& data = *outputs[0].exact_value().FindTensor("data");
  ASSERT_EQ(response.payload().size(), static_cast<size_t>(data.bytes()));
  std::memcpy(data.data(), response.payload().data(), response.payload().size());
  std::vector<double> expected;
  for (double slot : x) expected.push_back(-slot);
  EXPECT_LT(MaxDifference(bob.Decrypt(outputs), expected), kTolerance);
}

TEST_F(ServiceTest, ResultsOfConcurrentClientsAreNeverMixed) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      // A party and a connection of its own each.
      client::ClientOptions options;
      options.target = address();
      options.security_policy = ckks::SecurityPolicy::kAllowInsecure;
      const auto client = client::Client::Connect(options).value();
      Party party(client->GetProgram("square_sum").value(), 100 + c);
      const std::string keys = party.UploadKeys(*client).value();
      for (int i = 0; i < 8; ++i) {
        const std::vector<double> x = TestSlots(1000 * c + i, 128);
        const auto result = client->Evaluate({.program = client->GetProgram("square_sum").value(),
                                              .key_set_id = keys,
                                              .request_id = "",
                                              .inputs = party.Encrypt(x)});
        if (!result.ok() ||
            MaxDifference(party.Decrypt(result->outputs), SquareSum(x)) > kTolerance) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ServiceTest, ADeadlineBeyondTheYear2262IsNotInThePast) {
  const WireRequest request =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  v1::EvaluateRequest message;
  *message.mutable_header() = request.header;
  message.set_payload(request.payload);
  grpc::ClientContext context;
  // Nanoseconds since 1970 would not fit 63 bits.
  context.set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_hours(2'200'000, GPR_TIMESPAN)));
  v1::EvaluateResponse response;
  EXPECT_OK(FromGrpcStatus(stub_->Evaluate(&context, message, &response)));
}

TEST_F(ServiceTest, AStreamThatIsCancelledGivesItsMemoryBack) {
  engine::ServedProgram& served = **server_->engine().FindProgram("square_sum");
  const WireRequest request =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  {
    grpc::ClientContext context;
    const auto stream = stub_->EvaluateStream(&context);
    v1::EvaluateStreamRequest message;
    *message.mutable_header() = request.header;
    ASSERT_TRUE(stream->Write(message));
    message.set_chunk(request.payload.substr(0, 1000));
    ASSERT_TRUE(stream->Write(message));
    while (served.trees().leased_count() == 0) std::this_thread::yield();
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // Its memory goes back before it is counted.
  const auto cancelled_count = [this] {
    return server_->engine()
        .ledger()
        .Snapshot()
        .at("square_sum")
        .FinishedIn(engine::RequestState::kCancelled);
  };
  while (cancelled_count() == 0) std::this_thread::yield();
  EXPECT_EQ(cancelled_count(), 1u);
  EXPECT_EQ(served.trees().leased_count(), 0u);
  ExpectGoodRequestSucceeds();
}

TEST_F(ServiceTest, AStalledUploadEndsAtItsDeadline) {
  engine::ServedProgram& served = **server_->engine().FindProgram("square_sum");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  const auto stream = stub_->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  *message.mutable_header() =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128))).header;
  ASSERT_TRUE(stream->Write(message));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  while (served.trees().leased_count() != 0) std::this_thread::yield();
  ExpectGoodRequestSucceeds();
}

TEST_F(ServiceTest, PlacesForRequestsAreBounded) {
  engine::ServedProgram& served = **server_->engine().FindProgram("square_sum");
  const WireRequest request =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  v1::EvaluateStreamRequest header;
  *header.mutable_header() = request.header;
  // Uploads that have begun hold every place.
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<
      grpc::ClientReaderWriter<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse>>>
      streams;
  for (size_t i = 0; i < served.trees().size(); ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(stub_->EvaluateStream(contexts.back().get()));
    ASSERT_TRUE(streams.back()->Write(header));
  }
  while (served.trees().leased_count() != served.trees().size()) std::this_thread::yield();
  v1::EvaluateResponse response;
  const absl::Status refused = FromGrpcStatus(EvaluateUnary(request, &response));
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(codec::GetErrorDetail(refused)->reason(), v1::ERROR_REASON_OVERLOADED);

  // One of them completes all the same.
  v1::EvaluateStreamRequest chunk;
  chunk.set_chunk(request.payload);
  ASSERT_TRUE(streams[0]->Write(chunk));
  streams[0]->WritesDone();
  v1::EvaluateStreamResponse message;
  while (streams[0]->Read(&message)) {
  }
  EXPECT_TRUE(streams[0]->Finish().ok());
  for (size_t i = 1; i < streams.size(); ++i) {
    contexts[i]->TryCancel();
    streams[i]->Finish();
  }
  while (served.trees().leased_count() != 0) std::this_thread::yield();
  ExpectGoodRequestSucceeds();
}

TEST_F(ServiceTest, AMessageAboveTheLimitIsRefusedByTheTransport) {
  WireRequest request =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  request.payload.resize(6 << 20);
  v1::EvaluateResponse response;
  EXPECT_EQ(EvaluateUnary(request, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectGoodRequestSucceeds();
}

TEST_F(ServiceTest, DroppedKeysAreUnknownAfterwards) {
  EXPECT_OK(client_->DropKeys(alice_keys()));
  EXPECT_THAT(client_->DropKeys(alice_keys()), StatusIs(absl::StatusCode::kNotFound));
  v1::EvaluateResponse response;
  const absl::Status status = FromGrpcStatus(EvaluateUnary(
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128))), &response));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(server_->engine().keys().used_bytes(), 0);
  ASSERT_OK(alice().UploadKeys(*client_));
}

}  // namespace
}  // namespace cipherd::server

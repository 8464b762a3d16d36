// The client library against a daemon in process, well-behaved and not.
#include "client/session.h"

#include <functional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/context.h"
#include "core/secret/random.h"
#include "tests/client/fake_service.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Vectors ExampleItems(int count) {
  Vectors items;
  for (int k = 0; k < count; ++k) {
    std::vector<double>& item = items.emplace_back();
    for (int j = 0; j < 16; ++j) item.push_back(k + j / 16.0);
  }
  return items;
}

class SessionTest : public ::testing::Test {
 protected:
  absl::Status Start(bool upload_keys = true) {
    CIPHERD_ASSIGN_OR_RETURN(client_, Client::Connect(service_.ClientOptions()));
    CIPHERD_ASSIGN_OR_RETURN(session_, Session::Create(*client_, "echo"));
    return upload_keys ? session_->UploadKeys() : absl::OkStatus();
  }
  // Makes the client stream instead of sending one message.
  void StateSmallMessages() {
    service_.info.mutable_limits()->set_max_unary_bytes(4096);
    service_.info.mutable_limits()->set_max_chunk_bytes(4096);
  }

  FakeService service_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
};

// Fresh encryption under a secret key, echoed: the decryption differs by the encryption error, of
// coefficients |e| ≤ 30, and by the encoder's rounding, |r| ≤ 1/2 each; a slot is a sum of N = 256
// of them over the scale 2^40.
constexpr double kTolerance = 256 * 30.5 / (int64_t{1} << 40);

TEST_F(SessionTest, VectorsComeBackThroughOneMessageEachWay) {
  ASSERT_OK(Start());
  ASSERT_OK_AND_ASSIGN(NamedVectors outputs, session_->Evaluate({{"x", ExampleItems(3)}}));
  ASSERT_THAT(outputs["y"], SizeIs(3));
  for (int k = 0; k < 3; ++k) {
    for (int j = 0; j < 16; ++j) EXPECT_NEAR(outputs["y"][k][j], k + j / 16.0, kTolerance);
  }
  EXPECT_EQ(service_.unary_count(), 1);
  EXPECT_EQ(service_.stream_count(), 0);
}

TEST_F(SessionTest, VectorsComeBackThroughAStream) {
  StateSmallMessages();
  ASSERT_OK(Start());
  ASSERT_OK_AND_ASSIGN(NamedVectors outputs, session_->Evaluate({{"x", ExampleItems(4)}}));
  ASSERT_THAT(outputs["y"], SizeIs(4));
  EXPECT_NEAR(outputs["y"][3][15], 3 + 15 / 16.0, kTolerance);
  EXPECT_EQ(service_.unary_count(), 0);
  EXPECT_EQ(service_.stream_count(), 1);
}

TEST_F(SessionTest, KeysAreUploadedWithProgressAndDropped) {
  ASSERT_OK(Start(/*upload_keys=*/false));
  EXPECT_THAT(session_->Evaluate({{"x", ExampleItems(1)}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("upload the keys")));
  uint64_t last_sent = 0;
  ASSERT_OK(session_->UploadKeys([&](uint64_t sent_bytes, uint64_t total_bytes) {
    EXPECT_GT(sent_bytes, last_sent);
    EXPECT_EQ(total_bytes, session_->program().key_bytes);
    last_sent = sent_bytes;
  }));
  EXPECT_EQ(last_sent, session_->program().key_bytes);
  EXPECT_GT(session_->key_bytes_sent(), last_sent);
  EXPECT_THAT(session_->key_set_id(), SizeIs(64));
  EXPECT_EQ(service_.key_set_count(), 1);
  ASSERT_OK(session_->DropKeys());
  EXPECT_EQ(service_.key_set_count(), 0);
}

TEST_F(SessionTest, CallsAboutAKeySetSayWhereAGatewayFindsIt) {
  ASSERT_OK(Start());
  const std::string id = session_->key_set_id();
  ASSERT_OK(session_->Evaluate({{"x", ExampleItems(1)}}).status());
  StateSmallMessages();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> streaming,
                       Client::Connect(service_.ClientOptions()));
  ASSERT_OK_AND_ASSIGN(secret::Random random, secret::Random::FromOsEntropy());
  ASSERT_OK_AND_ASSIGN(value::ValueTree inputs,
                       session_->cipher().EncryptInputs({{"x", ExampleItems(1)}}, random));
  ASSERT_OK_AND_ASSIGN(const ProgramPtr program, streaming->GetProgram("echo"));
  ASSERT_OK(streaming->Evaluate({.program = program, .key_set_id = id, .inputs = std::move(inputs)})
                .status());
  ASSERT_OK(session_->DropKeys());
  // The set's id is not known before its last key.
  EXPECT_EQ(service_.routes(),
            (std::vector<std::string>{"PutKeys " + absl::BytesToHexString(service_.upload_id()),
                                      "Evaluate " + id, "EvaluateStream " + id, "DropKeys " + id}));
}

TEST_F(SessionTest, AnUploadOfAKnownSetGoesWhereItsEvaluationsGo) {
  ASSERT_OK(Start(/*upload_keys=*/false));
  const std::string id(64, 'a');
  ASSERT_OK(client_
                ->StartKeyUpload({.context = session_->program().known_context,
                                  .key_count = 2,
                                  .total_bytes = session_->program().key_bytes,
                                  .key_set_id = id})
                .status());
  // It was dropped; what is left is that it was begun there.
  EXPECT_EQ(service_.routes(), std::vector<std::string>{"PutKeys " + id});
}

TEST_F(SessionTest, UnknownKeySetIsATypedError) {
  ASSERT_OK(Start());
  ASSERT_OK(client_->DropKeys(session_->key_set_id()));
  const absl::Status status = session_->Evaluate({{"x", ExampleItems(1)}}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_UNKNOWN_KEY_SET);
  // What the reason asks for helps.
  ASSERT_OK(session_->UploadKeys());
  EXPECT_OK(session_->Evaluate({{"x", ExampleItems(1)}}).status());
}

TEST_F(SessionTest, UnknownProgramIsATypedError) {
  ASSERT_OK_AND_ASSIGN(client_, Client::Connect(service_.ClientOptions()));
  const absl::Status status = client_->GetProgram("none").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_UNKNOWN_PROGRAM);
}

TEST_F(SessionTest, WrongInputsAreRefusedBeforeAnythingIsSent) {
  ASSERT_OK(Start());
  EXPECT_THAT(session_->Evaluate({{"x", ExampleItems(5)}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs['x']: expected 1 to 4 items, got 5")));
  EXPECT_THAT(session_->Evaluate({{"z", ExampleItems(1)}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no such input")));
  EXPECT_THAT(session_->Evaluate({}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("missing")));
  EXPECT_EQ(service_.unary_count(), 0);
}

// What a daemon could return instead of a result.
TEST_F(SessionTest, ResultsThatAreNotTheProgramsAreRefused) {
  struct Case {
    const char* name;
    std::function<void(v1::EvaluateResponse&)> change;
    const char* message;
  };
  const auto value_of = [](v1::EvaluateResponse& response) {
    return response.mutable_outputs()->mutable_tuple()->mutable_children(0)->mutable_value();
  };
  const Case cases[] = {
      {"other context", [&](auto& r) { value_of(r)->set_context_id(std::string(32, 'x')); },
       "context_id"},
      {"other scale", [&](auto& r) { value_of(r)->mutable_metadata()->set_scale(1024); }, "scale"},
      {"secret key", [&](auto& r) { value_of(r)->set_type(v1::VALUE_TYPE_SECRET_KEY); }, "secret"},
      {"short payload", [&](auto& r) { r.mutable_payload()->pop_back(); }, "bytes"},
      {"residue above its prime", [&](auto& r) { r.mutable_payload()->replace(0, 8, 8, '\x7f'); },
       "outputs"},
      {"no outputs", [&](auto& r) { r.clear_outputs(); }, "outputs"},
      {"a list",
       [&](auto& r) {
         const v1::ValueTree::Sequence children = r.outputs().tuple();
         *r.mutable_outputs()->mutable_list() = children;
       },
       "outputs"},
  };
  for (const bool by_stream : {false, true}) {
    if (by_stream) StateSmallMessages();
    ASSERT_OK(Start());
    for (const Case& c : cases) {
      SCOPED_TRACE(absl::StrCat(c.name, by_stream ? ", by stream" : ", by message"));
      service_.change_evaluation = c.change;
      EXPECT_THAT(
          session_->Evaluate({{"x", ExampleItems(1)}}),
          StatusIs(absl::StatusCode::kInternal, HasSubstr("the daemon's result was refused")));
      service_.change_evaluation = nullptr;
      EXPECT_OK(session_->Evaluate({{"x", ExampleItems(1)}}).status());
    }
  }
}

TEST_F(SessionTest, ForeignKeySetIdIsRefused) {
  service_.change_put_keys = [](v1::PutKeysResponse& response) {
    response.set_key_set_id(std::string(32, 'x'));
  };
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kInternal, HasSubstr("key_set_id")));
}

TEST_F(SessionTest, ProgramsThatDoNotHoldTogetherAreRefused) {
  ASSERT_OK_AND_ASSIGN(client_, Client::Connect(service_.ClientOptions()));
  service_.change_program = [](v1::GetProgramResponse& p) {
    p.set_context_id(std::string(32, 'x'));
  };
  EXPECT_THAT(client_->GetProgram("echo").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("context_id")));
  service_.change_program = [](v1::GetProgramResponse& p) { p.mutable_inputs(0)->set_depth(9); };
  EXPECT_THAT(client_->GetProgram("echo").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs[0].depth: expected 0 to 1, got 9")));
  service_.change_program = [](v1::GetProgramResponse& p) { p.clear_outputs(); };
  EXPECT_THAT(client_->GetProgram("echo").status(), StatusIs(absl::StatusCode::kInvalidArgument));
  service_.change_program = [](v1::GetProgramResponse& p) {
    p.mutable_summary()->set_name("other");
  };
  EXPECT_THAT(client_->GetProgram("echo").status(), StatusIs(absl::StatusCode::kInternal));
  service_.change_program = [](v1::GetProgramResponse& p) { p.mutable_summary()->set_version(3); };
  EXPECT_OK(client_->GetProgram("echo", 3));
  EXPECT_THAT(client_->GetProgram("echo", 2).status(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("response.summary.version: expected 2, got 3")));
}

TEST_F(SessionTest, InsecureContextsNeedLeave) {
  ClientOptions options = service_.ClientOptions();
  options.security_policy = ckks::SecurityPolicy::k128BitClassical;
  ASSERT_OK_AND_ASSIGN(client_, Client::Connect(options));
  EXPECT_THAT(client_->GetProgram("echo").status(), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SessionTest, ErrorsOfTheDaemonKeepCodeMessageAndPath) {
  ASSERT_OK(Start());
  for (const bool by_stream : {false, true}) {
    if (by_stream) {
      StateSmallMessages();
      ASSERT_OK(Start());
    }
    service_.evaluation_error = absl::ResourceExhaustedError("the queue is full");
    EXPECT_THAT(session_->Evaluate({{"x", ExampleItems(1)}}),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the queue is full")));
    service_.evaluation_error = absl::OkStatus();
  }
}

TEST_F(SessionTest, CallThatADaemonDropsAsItShutsDownIsUnavailable) {
  ASSERT_OK(Start());
  service_.evaluation_error = absl::CancelledError("");
  EXPECT_THAT(session_->Evaluate({{"x", ExampleItems(1)}}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("without an answer")));
}

// The call may then be what keeps the channel, and end it on a thread of gRPC's.
TEST_F(SessionTest, ClientMayGoAsSoonAsAnEvaluationHasEnded) {
  for (const bool by_stream : {false, true}) {
    if (by_stream) StateSmallMessages();
    for (int i = 0; i < 100; ++i) {
      ASSERT_OK(Start(/*upload_keys=*/i == 0));
      session_->set_key_set_id(std::string(64, 'a'));
      // Whatever it comes to.
      session_->Evaluate({{"x", ExampleItems(1)}}).status().IgnoreError();
      session_.reset();
      client_.reset();
    }
  }
}

TEST_F(SessionTest, SecretKeyOfAnotherContextIsRefused) {
  ASSERT_OK_AND_ASSIGN(client_, Client::Connect(service_.ClientOptions()));
  ASSERT_OK_AND_ASSIGN(const ProgramPtr program, client_->GetProgram("echo"));
  auto parameters = ckks::MakeContextParameters({.log_n = 7, .max_depth = 1, .p_prime_count = 2},
                                                ckks::SecurityPolicy::kAllowInsecure);
  ASSERT_OK(parameters);
  ASSERT_OK_AND_ASSIGN(auto context,
                       ckks::Context::Create(*parameters, ckks::SecurityPolicy::kAllowInsecure));
  secret::Random random = secret::Random::FromSeedForTesting(3);
  EXPECT_THAT(
      Session::Create(*client_, program, secret::SecretKey::Generate(context, random)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("secret key: expected one of context")));
}

TEST_F(SessionTest, TokenGoesWithEveryCall) {
  ClientOptions options = service_.ClientOptions();
  options.bearer_token = "abc";
  ASSERT_OK_AND_ASSIGN(client_, Client::Connect(options));
  EXPECT_EQ(service_.authorization(), "Bearer abc");
}

TEST_F(SessionTest, PassedDeadlineIsDeadlineExceeded) {
  ASSERT_OK(Start());
  EXPECT_THAT(session_->Evaluate({{"x", ExampleItems(1)}}, {.timeout = -absl::Seconds(1)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(ClientTest, NobodyThereIsUnavailable) {
  ClientOptions options;
  options.target = "unix:/nonexistent/cipherd.sock";
  options.connect_timeout = absl::Milliseconds(50);
  EXPECT_THAT(Client::Connect(options).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no daemon")));
}

TEST(ClientTest, UploadBeyondTheStatedLimitIsRefusedAtOnce) {
  FakeService service;
  service.info.mutable_limits()->set_max_key_set_bytes(1000);
  ASSERT_OK_AND_ASSIGN(auto client, Client::Connect(service.ClientOptions()));
  ASSERT_OK_AND_ASSIGN(auto session, Session::Create(*client, "echo"));
  EXPECT_THAT(session->UploadKeys(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("at most 1000")));
}

}  // namespace
}  // namespace cipherd::client

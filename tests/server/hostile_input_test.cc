// Whatever a client sends, it gets a clear status of its own, nothing is left behind, and the next
// good request succeeds.
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace server::testing;  // NOLINT: the test's own vocabulary

v1::ExactValue& InputOf(WireRequest& request) {
  return *request.header.mutable_inputs()->mutable_tuple()->mutable_children(0)->mutable_value();
}

class HostileInputTest : public ServiceTest {
 protected:
  struct Case {
    const char* name;
    WireRequest request;
    absl::StatusCode code;
    v1::ErrorReason reason;
    // Part of the message.
    const char* says;
  };

  WireRequest Good() {
    return MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  }
  WireRequest Changed(const std::function<void(WireRequest&)>& change) {
    WireRequest request = Good();
    change(request);
    return request;
  }

  std::vector<Case> Cases();
};

std::vector<HostileInputTest::Case> HostileInputTest::Cases() {
  const client::ProgramPtr negate = client_->GetProgram("negate").value();
  Party stranger(negate, 5);
  const ckks::KeyLayout relinearization({ckks::KeyId::Relinearization()});
  const std::string incomplete_keys = alice().UploadKeys(*client_, &relinearization).value();
  const std::string foreign_keys = stranger.UploadKeys(*client_, &relinearization).value();
  const double scale = alice().program().context->parameters().default_scale;

  using absl::StatusCode;
  return {
      {"truncated payload", Changed([](WireRequest& r) { r.payload.resize(r.payload.size() / 2); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs"},
      {"oversized payload", Changed([](WireRequest& r) { r.payload.append(8, '\0'); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs"},
      {"no payload", Changed([](WireRequest& r) { r.payload.clear(); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs"},
      {"flipped bit in a residue",
       Changed([](WireRequest& r) { r.payload[8 * 100 + 7] ^= '\x80'; }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs[0]"},
      {"flipped bit in the last residue",
       Changed([](WireRequest& r) { r.payload.back() ^= '\x80'; }), StatusCode::kInvalidArgument,
       v1::ERROR_REASON_MALFORMED_VALUE, "inputs[0]"},
      {"declared bytes that are not those of the shape", Changed([](WireRequest& r) {
         InputOf(r).mutable_tensors(0)->mutable_tensor()->set_byte_count(uint64_t{1} << 62);
       }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_LIMIT_EXCEEDED, "inputs"},
      {"a shape that overflows", Changed([](WireRequest& r) {
         InputOf(r).mutable_tensors(0)->mutable_tensor()->set_shape(0, INT64_MAX);
       }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs[0]"},
      {"foreign value",
       MakeWireRequest("square_sum", alice_keys(), stranger.Encrypt(TestSlots(1, 128))),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_WRONG_CONTEXT, "inputs[0]"},
      {"foreign context id",
       Changed([](WireRequest& r) { InputOf(r).set_context_id(std::string(32, 'x')); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_WRONG_CONTEXT, "inputs[0]"},
      {"another depth",
       MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128), /*depth=*/1)),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH, "depth"},
      {"another scale",
       MakeWireRequest("square_sum", alice_keys(),
                       alice().Encrypt(TestSlots(1, 128), 0, scale / 2)),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH, "scale"},
      {"a scale that is no number", Changed([](WireRequest& r) {
         InputOf(r).mutable_metadata()->set_scale(std::numeric_limits<double>::quiet_NaN());
       }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "scale"},
      {"coefficients in place of NTT", Changed([](WireRequest& r) {
         InputOf(r).mutable_metadata()->set_domain(v1::POLYNOMIAL_DOMAIN_COEFFICIENT);
       }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH, "domain"},
      {"one value too many", Changed([](WireRequest& r) {
         *r.header.mutable_inputs()->mutable_tuple()->add_children() =
             r.header.inputs().tuple().children(0);
         r.payload += r.payload;
       }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH, "inputs"},
      {"no inputs", Changed([](WireRequest& r) { r.header.clear_inputs(); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs"},
      {"secret key",
       Changed([](WireRequest& r) { InputOf(r).set_type(v1::VALUE_TYPE_SECRET_KEY); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SECRET_KEY_REFUSED, "inputs[0]"},
      {"unknown program", Changed([](WireRequest& r) { r.header.set_program("nothing"); }),
       StatusCode::kNotFound, v1::ERROR_REASON_UNKNOWN_PROGRAM, "'nothing'"},
      {"unknown key set",
       Changed([](WireRequest& r) { r.header.set_key_set_id(std::string(32, '\7')); }),
       StatusCode::kNotFound, v1::ERROR_REASON_UNKNOWN_KEY_SET, "unknown key set"},
      {"no key set", Changed([](WireRequest& r) { r.header.clear_key_set_id(); }),
       StatusCode::kNotFound, v1::ERROR_REASON_UNKNOWN_KEY_SET, "unknown key set"},
      {"key set id of a wrong length",
       Changed([](WireRequest& r) { r.header.set_key_set_id("short"); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "key_set_id"},
      {"key set without a key that is read",
       MakeWireRequest("square_sum", incomplete_keys, alice().Encrypt(TestSlots(1, 128))),
       StatusCode::kFailedPrecondition, v1::ERROR_REASON_MISSING_KEY, "rotation(1)"},
      {"key set of another context",
       MakeWireRequest("square_sum", foreign_keys, alice().Encrypt(TestSlots(1, 128))),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_WRONG_CONTEXT, "key_set_id"},
      {"request id that is too long",
       Changed([](WireRequest& r) { r.header.set_request_id(std::string(65, 'r')); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_LIMIT_EXCEEDED, "request_id"},
      {"request id that is not printable",
       Changed([](WireRequest& r) { r.header.set_request_id("a\nb"); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "request_id"},
  };
}

void ExpectRefusal(const grpc::Status& grpc_status, absl::StatusCode code, v1::ErrorReason reason,
                   const char* says) {
  const absl::Status status = FromGrpcStatus(grpc_status);
  EXPECT_EQ(status.code(), code) << std::string(status.ToString());
  EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  const std::optional<v1::ErrorDetail> detail = codec::GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value()) << std::string(status.ToString());
  EXPECT_EQ(v1::ErrorReason_Name(detail->reason()), v1::ErrorReason_Name(reason))
      << std::string(status.ToString());
}

TEST_F(HostileInputTest, EachGetsItsOwnStatusAndTheNextGoodRequestSucceeds) {
  const std::vector<Case> cases = Cases();
  engine::ServedProgram& served = **server_->engine().FindProgram("square_sum");
  uint64_t seed = 1;
  for (const Case& c : cases) {
    for (const bool is_stream : {false, true}) {
      SCOPED_TRACE(std::string(c.name) + (is_stream ? ", stream" : ", unary"));
      v1::EvaluateResponse response;
      std::string payload;
      const grpc::Status status = is_stream ? EvaluateStream(c.request, 1 << 14, &payload)
                                            : EvaluateUnary(c.request, &response);
      ExpectRefusal(status, c.code, c.reason, c.says);
      EXPECT_TRUE(payload.empty());
      ExpectGoodRequestSucceeds(++seed);
      EXPECT_EQ(served.trees().leased_count(), 0u);
    }
  }
  uint64_t rejected = 0;
  for (const auto& [program, counts] : server_->engine().ledger().Snapshot()) {
    rejected += counts.FinishedIn(engine::RequestState::kRejected);
    EXPECT_EQ(counts.in_flight, 0u);
  }
  EXPECT_EQ(rejected, 2 * cases.size());
}

TEST_F(HostileInputTest, APayloadNeverStandsInAMessage) {
  WireRequest request = Good();
  // Residues that would be easy to find again.
  const uint64_t residue = 1234567890123456789;
  std::memcpy(request.payload.data(), &residue, sizeof(residue));
  v1::EvaluateResponse response;
  const grpc::Status status = EvaluateUnary(request, &response);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.error_message(), Not(HasSubstr("1234567890123456789")));
}

TEST_F(HostileInputTest, MessagesOutOfOrderAreRefused) {
  const WireRequest good = Good();
  v1::EvaluateStreamRequest header, chunk, empty, empty_chunk;
  empty_chunk.set_chunk("");
  *header.mutable_header() = good.header;
  chunk.set_chunk(good.payload.substr(0, 1024));
  struct Sequence {
    const char* name;
    std::vector<v1::EvaluateStreamRequest> messages;
    v1::ErrorReason reason;
  };
  v1::EvaluateStreamRequest oversized;
  oversized.set_chunk(good.payload + std::string(1 << 17, '\0'));
  const Sequence sequences[] = {
      {"nothing", {}, v1::ERROR_REASON_PROTOCOL},
      {"a chunk first", {chunk, header}, v1::ERROR_REASON_PROTOCOL},
      {"two headers", {header, header}, v1::ERROR_REASON_PROTOCOL},
      {"an empty message", {header, empty}, v1::ERROR_REASON_PROTOCOL},
      {"a chunk above the limit", {header, oversized}, v1::ERROR_REASON_LIMIT_EXCEEDED},
      {"a chunk without bytes", {header, empty_chunk}, v1::ERROR_REASON_PROTOCOL},
  };
  for (const Sequence& sequence : sequences) {
    SCOPED_TRACE(sequence.name);
    grpc::ClientContext context;
    const auto stream = stub_->EvaluateStream(&context);
    for (const v1::EvaluateStreamRequest& message : sequence.messages) {
      if (!stream->Write(message)) break;
    }
    stream->WritesDone();
    v1::EvaluateStreamResponse response;
    EXPECT_FALSE(stream->Read(&response));
    ExpectRefusal(stream->Finish(), absl::StatusCode::kInvalidArgument, sequence.reason, "");
    ExpectGoodRequestSucceeds();
  }
}

}  // namespace
}  // namespace cipherd::server

#include "proto/codec/context_codec.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::OtherContext;
using ::cipherd::testing::SmallContext;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_VALUE;
constexpr auto kInsecure = ckks::SecurityPolicy::kAllowInsecure;

v1::ContextParameters SmallMessage() {
  v1::ContextParameters message;
  EncodeContext(SmallContext()->parameters(), &message);
  return message;
}

TEST(ContextCodecTest, EveryFieldComesBack) {
  ckks::ContextParameters parameters = SmallContext()->parameters();
  parameters.galois_generator = 3;
  parameters.default_scale = 1234567.125;
  v1::ContextParameters message;
  EncodeContext(parameters, &message);
  v1::ContextParameters parsed;
  ASSERT_TRUE(parsed.ParseFromString(message.SerializeAsString()));
  ASSERT_OK_AND_ASSIGN(const ckks::ContextParameters back,
                       DecodeContext(parsed, kInsecure, "context"));
  EXPECT_EQ(back, parameters);
  EXPECT_EQ(back.ContextId(), parameters.ContextId());
}

TEST(ContextCodecTest, EncodingReplacesWhatTheMessageHeld) {
  v1::ContextParameters message = SmallMessage();
  EncodeContext(SmallContext()->parameters(), &message);
  EXPECT_EQ(message.SerializeAsString(), SmallMessage().SerializeAsString());
}

TEST(ContextCodecTest, EachWrongFieldIsNamed) {
  struct Case {
    const char* path;
    void (*change)(v1::ContextParameters&);
  };
  const Case cases[] = {
      {"context.log_n", [](auto& m) { m.set_log_n(3); }},
      {"context.log_n", [](auto& m) { m.set_log_n(0xffffffff); }},
      {"context.q_primes", [](auto& m) { m.clear_q_primes(); }},
      {"context.q_primes[1]", [](auto& m) { m.set_q_primes(1, m.q_primes(1) + 32); }},
      {"context.q_primes[2]", [](auto& m) { m.set_q_primes(2, m.q_primes(0)); }},
      {"context.p_primes", [](auto& m) { m.clear_p_primes(); }},
      {"context.p_primes[0]", [](auto& m) { m.set_p_primes(0, m.q_primes(0)); }},
      {"context.rescale_groups[0]", [](auto& m) { m.set_rescale_groups(0, 0); }},
      {"context.rescale_groups[1]", [](auto& m) { m.set_rescale_groups(1, 0x80000000); }},
      {"context.rescale_groups", [](auto& m) { m.set_rescale_groups(0, 2); }},
      {"context.digits", [](auto& m) { m.clear_digits(); }},
      {"context.digits[0]", [](auto& m) { m.mutable_digits(0)->clear_prime_ids(); }},
      {"context.digits[0][0]", [](auto& m) { m.mutable_digits(0)->set_prime_ids(0, 9); }},
      {"context.digits[0][1]", [](auto& m) { m.mutable_digits(0)->set_prime_ids(1, ~0u); }},
      {"context.galois_generator", [](auto& m) { m.set_galois_generator(7); }},
      {"context.default_scale", [](auto& m) { m.set_default_scale(0); }},
      {"context.secret_distribution",
       [](auto& m) { m.set_secret_distribution(v1::SECRET_DISTRIBUTION_UNSPECIFIED); }},
      {"context.secret_distribution",
       [](auto& m) { m.set_secret_distribution(static_cast<v1::SecretDistribution>(2)); }},
  };
  for (const Case& c : cases) {
    v1::ContextParameters message = SmallMessage();
    c.change(message);
    EXPECT_THAT(DecodeContext(message, kInsecure, "context"),
                IsRefusal(kInvalid, kMalformed, c.path));
  }
}

TEST(ContextCodecTest, AnInsecureContextNeedsThePolicyThatAdmitsIt) {
  EXPECT_OK(DecodeContext(SmallMessage(), kInsecure, "context"));
  EXPECT_THAT(DecodeContext(SmallMessage(), ckks::SecurityPolicy::k128BitClassical, "context"),
              IsRefusal(kInvalid, kMalformed, "context.log2(QP)"));
}

TEST(ContextCodecTest, DigestsAreHexInsideAndBytesOnTheWire) {
  const std::string hex = SmallContext()->id();
  ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodeDigest(hex, "id"));
  EXPECT_EQ(bytes, SmallContext()->id_bytes());
  ASSERT_OK_AND_ASSIGN(const std::string back, DecodeDigest(bytes, "id"));
  EXPECT_EQ(back, hex);

  std::string upper = hex;
  upper[5] = 'A';
  for (const std::string& wrong : {hex.substr(1), hex + "0", upper, std::string(64, 'g')}) {
    EXPECT_THAT(EncodeDigest(wrong, "id"), IsRefusal(kInvalid, kMalformed, "id"));
  }
  EXPECT_THAT(DecodeDigest(bytes.substr(1), "id"), IsRefusal(kInvalid, kMalformed, "id"));
}

TEST(KnownContextTest, HoldsTheNumbersOfItsParameters) {
  const KnownContextPtr context = SmallContext();
  const ckks::ContextParameters& parameters = context->parameters();
  EXPECT_EQ(context->id(), parameters.ContextId());
  ASSERT_EQ(context->primes().size(), 6u);
  EXPECT_EQ(context->primes()[3], parameters.q_primes[3]);
  EXPECT_EQ(context->primes()[4], parameters.p_primes[0]);
}

TEST(KnownContextTest, AForeignIdIsRefusedWithBothIds) {
  const std::vector<KnownContextPtr> contexts = {SmallContext()};
  ASSERT_OK_AND_ASSIGN(const KnownContextPtr found,
                       RequireContext(contexts, SmallContext()->id_bytes(), "id"));
  EXPECT_EQ(found, SmallContext());
  const absl::Status refusal = RequireContext(contexts, OtherContext()->id_bytes(), "id").status();
  EXPECT_THAT(refusal, IsRefusal(kInvalid, v1::ERROR_REASON_WRONG_CONTEXT, "id"));
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("expected " + SmallContext()->id()));
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("got " + OtherContext()->id()));
  EXPECT_THAT(RequireContext(contexts, "short", "id"),
              IsRefusal(kInvalid, v1::ERROR_REASON_WRONG_CONTEXT, "id"));
}

}  // namespace
}  // namespace cipherd::codec

#include "proto/codec/wire_limits.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

TEST(WireLimitsTest, DefaultsAreValid) { EXPECT_OK(WireLimits().Validate()); }

TEST(WireLimitsTest, AUnaryMessageWithItsDescriptionFitsTheDefaultOfGrpc) {
  constexpr uint64_t kDescriptionBytes = 64 << 10;
  EXPECT_LT(WireLimits().max_unary_bytes + kDescriptionBytes, uint64_t{4} << 20);
}

TEST(WireLimitsTest, EachFieldOutOfRangeIsNamed) {
  struct Case {
    const char* field;
    void (*change)(WireLimits&);
  };
  const Case cases[] = {
      {"max_chunk_bytes", [](WireLimits& limits) { limits.max_chunk_bytes = 4095; }},
      {"max_chunk_bytes", [](WireLimits& limits) { limits.max_chunk_bytes = (64 << 20) + 1; }},
      {"max_unary_bytes", [](WireLimits& limits) { limits.max_unary_bytes = 4 << 20; }},
      {"max_unary_bytes", [](WireLimits& limits) { limits.max_unary_bytes = 0; }},
      {"max_request_bytes", [](WireLimits& limits) { limits.max_request_bytes = 0; }},
      {"max_key_set_bytes", [](WireLimits& limits) { limits.max_key_set_bytes = ~uint64_t{0}; }},
      {"max_tree_nodes", [](WireLimits& limits) { limits.max_tree_nodes = 0; }},
      {"max_tree_nesting", [](WireLimits& limits) { limits.max_tree_nesting = 25; }},
      {"max_rank", [](WireLimits& limits) { limits.max_rank = 0; }},
      {"max_name_bytes", [](WireLimits& limits) { limits.max_name_bytes = 0; }},
      {"max_keys_per_set", [](WireLimits& limits) { limits.max_keys_per_set = -1; }},
  };
  for (const Case& c : cases) {
    WireLimits limits;
    c.change(limits);
    EXPECT_THAT(limits.Validate(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.field)));
  }
}

TEST(WireLimitsTest, AClientTakesTheSmallerOfBothAndIgnoresWhatIsNotStated) {
  WireLimits daemon;
  daemon.max_chunk_bytes = 1 << 20;
  daemon.max_key_set_bytes = uint64_t{1} << 40;
  v1::ServerInfo::Limits stated;
  EncodeLimits(daemon, &stated);
  stated.clear_max_request_bytes();
  WireLimits own;
  own.max_request_bytes = 12345;
  const WireLimits limits = DecodeLimits(stated, own);
  EXPECT_EQ(limits.max_chunk_bytes, uint64_t{1} << 20);
  EXPECT_EQ(limits.max_key_set_bytes, own.max_key_set_bytes);
  EXPECT_EQ(limits.max_request_bytes, 12345u);
  EXPECT_EQ(limits.max_unary_bytes, own.max_unary_bytes);
}

}  // namespace
}  // namespace cipherd::codec

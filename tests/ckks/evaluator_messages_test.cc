// Operands that do not fit are refused with both states and the operation that mends them, and
// nothing is enqueued.
#include <functional>
#include <string>

#include "core/ckks/evaluator.h"
#include "core/ckks/linear_transform.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ckks::Ciphertext;
using ckks::KeyId;
using ckks::Plaintext;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class EvaluatorMessagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(party_, Party::Make("cpu", SmallParameters(5), {KeyId::Rotation(1, 16)}));
    evaluator_ = party_->evaluator.get();
    stream_ = party_->stream.get();
    x_ = party_->RandomSlots();
    ASSERT_OK_AND_ASSIGN(a_, party_->Encrypt(x_, 0));
    ASSERT_OK_AND_ASSIGN(deeper_, party_->Encrypt(x_, 2));
    ASSERT_OK_AND_ASSIGN(last_, party_->Encrypt(x_, 3));
    ASSERT_OK_AND_ASSIGN(three_, evaluator_->Square(a_, *stream_));
    ASSERT_OK_AND_ASSIGN(coefficients_, evaluator_->ToCoefficient(a_, *stream_));
    ASSERT_OK_AND_ASSIGN(batch_, party_->Stack({a_, a_}));
    ASSERT_OK_AND_ASSIGN(plain_, party_->Encode(x_, 0, party_->scale()));
    ASSERT_OK_AND_ASSIGN(plain_batch_, party_->EncodeBatch({x_, x_, x_}, 0, party_->scale()));
  }

  template <typename T>
  void ExpectRefused(const absl::StatusOr<T>& result, const std::string& message) {
    EXPECT_THAT(result, StatusIs(kInvalid, HasSubstr(message)));
  }

  std::unique_ptr<Party> party_;
  const ckks::Evaluator* evaluator_ = nullptr;
  runtime::Stream* stream_ = nullptr;
  Slots x_;
  Ciphertext a_, deeper_, last_, three_, coefficients_, batch_;
  Plaintext plain_, plain_batch_;
};

TEST_F(EvaluatorMessagesTest, Depths) {
  const std::string message = "depths differ: a has 0, b has 2; bring a to depth 2 (DropToDepth";
  ExpectRefused(evaluator_->Add(a_, deeper_, *stream_), "Add: " + message);
  ExpectRefused(evaluator_->Subtract(a_, deeper_, *stream_), "Subtract: " + message);
  ExpectRefused(evaluator_->Multiply(a_, deeper_, *stream_), "Multiply: " + message);
  ExpectRefused(evaluator_->Add(deeper_, a_, *stream_), "a has 2, b has 0; bring b to depth 2");
  ASSERT_OK_AND_ASSIGN(const Plaintext deep_plain, party_->Encode(x_, 2, party_->scale()));
  ExpectRefused(evaluator_->AddPlain(a_, deep_plain, *stream_), "AddPlain: " + message);
  ExpectRefused(evaluator_->MultiplyPlain(a_, deep_plain, *stream_), "MultiplyPlain: " + message);
  ExpectRefused(evaluator_->Rescale(last_, *stream_),
                "Rescale: ciphertext a: depth: expected below 3, got 3, the last one");
  ExpectRefused(evaluator_->DropToDepth(deeper_, 1, *stream_),
                "DropToDepth: depth: expected 2 (that of ciphertext a) to 3, got 1");
  ExpectRefused(evaluator_->DropToDepth(deeper_, 4, *stream_), "to 3, got 4");
}

TEST_F(EvaluatorMessagesTest, Scales) {
  Ciphertext other = a_;
  other.scale = std::nextafter(a_.scale, 2 * a_.scale);
  const std::string message =
      "scales differ: a has 1099511627776, b has 1099511627776.0002; rescale (Rescale)";
  ExpectRefused(evaluator_->Add(a_, other, *stream_), "Add: " + message);
  ExpectRefused(evaluator_->Subtract(a_, other, *stream_), "Subtract: " + message);
  ASSERT_OK_AND_ASSIGN(const Plaintext plain, party_->Encode(x_, 0, other.scale));
  ExpectRefused(evaluator_->AddPlain(a_, plain, *stream_), "AddPlain: " + message);
  Ciphertext huge = a_;
  huge.scale = 1e300;
  ExpectRefused(evaluator_->Square(huge, *stream_), "is not a finite number above 0; rescale");
}

TEST_F(EvaluatorMessagesTest, Domains) {
  ExpectRefused(evaluator_->Add(a_, coefficients_, *stream_),
                "Add: domains differ: a is ntt, b is coefficient; convert one (ToNtt or");
  const std::string message =
      "ciphertext a: domain: expected ntt, got coefficient; convert it (ToNtt)";
  ExpectRefused(evaluator_->Square(coefficients_, *stream_), "Square: " + message);
  ExpectRefused(evaluator_->Rescale(coefficients_, *stream_), "Rescale: " + message);
  ExpectRefused(evaluator_->MultiplyPlain(coefficients_, plain_, *stream_), message);
  ExpectRefused(evaluator_->Rotate(coefficients_, 1, party_->table, *stream_), message);
  ExpectRefused(evaluator_->Conjugate(coefficients_, party_->table, *stream_), message);
  ExpectRefused(evaluator_->Hoist(coefficients_, *stream_), message);
  ExpectRefused(evaluator_->Relinearize(coefficients_, party_->table, *stream_), message);
  ExpectRefused(evaluator_->ToNtt(a_, *stream_),
                "ToNtt: ciphertext a: domain: expected coefficient");
  ExpectRefused(evaluator_->ToCoefficient(coefficients_, *stream_),
                "expected ntt, got coefficient");
}

TEST_F(EvaluatorMessagesTest, Components) {
  const std::string message =
      "ciphertext a: components: expected 2, got 3; relinearize it (Relinearize)";
  ExpectRefused(evaluator_->Square(three_, *stream_), "Square: " + message);
  ExpectRefused(evaluator_->Multiply(three_, a_, *stream_), "Multiply: " + message);
  ExpectRefused(evaluator_->Rotate(three_, 1, party_->table, *stream_), "Rotate: " + message);
  ExpectRefused(evaluator_->Conjugate(three_, party_->table, *stream_), "Conjugate: " + message);
  ExpectRefused(evaluator_->Hoist(three_, *stream_), "Hoist: " + message);
  ExpectRefused(evaluator_->Relinearize(a_, party_->table, *stream_),
                "Relinearize: ciphertext a: components: expected 3, got 2; use it as it is");
}

TEST_F(EvaluatorMessagesTest, Batches) {
  const std::string message = "batch axes differ: a has [2], b has []; batch both alike";
  ExpectRefused(evaluator_->Add(batch_, a_, *stream_), "Add: " + message);
  ExpectRefused(evaluator_->Multiply(batch_, a_, *stream_), "Multiply: " + message);
  const std::string plain = "batch axes differ: a has [2], b has [3]; batch both alike, or use an";
  ExpectRefused(evaluator_->AddPlain(batch_, plain_batch_, *stream_), "AddPlain: " + plain);
  ExpectRefused(evaluator_->MultiplyPlain(batch_, plain_batch_, *stream_),
                "MultiplyPlain: " + plain);
  // A batch of one is not unbatched.
  ASSERT_OK_AND_ASSIGN(const Ciphertext one, party_->Stack({a_}));
  ExpectRefused(evaluator_->Add(one, a_, *stream_), "a has [1], b has []");
}

TEST_F(EvaluatorMessagesTest, Forms) {
  Ciphertext wrong = a_;
  wrong.depth = 1;
  ExpectRefused(
      evaluator_->Negate(wrong, *stream_),
      "Negate: ciphertext a: data: expected contiguous uint64 [component, batch…, 3, 32] at "
      "depth 1, got uint64 [2, 4, 32]");
  wrong.depth = 4;
  ExpectRefused(evaluator_->Negate(wrong, *stream_), "depth: expected 0 to 3, got 4");
  ASSERT_OK_AND_ASSIGN(const value::Tensor host, party_->ToHost(a_.data));
  wrong = a_;
  wrong.data = host;
  ExpectRefused(evaluator_->Negate(wrong, *stream_),
                "data: expected memory of cpu:0, got host; upload it first");
  ASSERT_OK_AND_ASSIGN(const auto other, OpenTestDevice("cpu"));
  ASSERT_OK_AND_ASSIGN(const auto foreign, other->CreateStream("foreign"));
  ExpectRefused(evaluator_->Negate(a_, *foreign), "got stream foreign of cpu:0");
}

TEST_F(EvaluatorMessagesTest, MissingKeysAreFailedPreconditions) {
  const auto missing = [](const std::string& key) {
    return StatusIs(absl::StatusCode::kFailedPrecondition,
                    HasSubstr("key " + key + " is not among the 1 keys of the table"));
  };
  EXPECT_THAT(evaluator_->Relinearize(three_, party_->table, *stream_), missing("relinearization"));
  EXPECT_THAT(evaluator_->Rotate(a_, -1, party_->table, *stream_), missing("rotation(15)"));
  EXPECT_THAT(evaluator_->Conjugate(a_, party_->table, *stream_), missing("conjugation"));
  ASSERT_OK_AND_ASSIGN(const auto hoisted, evaluator_->Hoist(a_, *stream_));
  EXPECT_THAT(evaluator_->RotateHoisted(hoisted, 3, party_->table, *stream_),
              missing("rotation(3)"));
}

TEST_F(EvaluatorMessagesTest, HoistedDigitsOfAnotherDepth) {
  ASSERT_OK_AND_ASSIGN(ckks::HoistedCiphertext hoisted, evaluator_->Hoist(a_, *stream_));
  hoisted.source = deeper_;
  ExpectRefused(evaluator_->RotateHoisted(hoisted, 1, party_->table, *stream_),
                "RotateHoisted: digits: expected [1, 4, 32] at depth 2, got [2, 6, 32]; hoist");
}

TEST_F(EvaluatorMessagesTest, LinearTransforms) {
  ASSERT_OK_AND_ASSIGN(const ckks::BsgsPlan plan, ckks::BsgsPlan::Make({0, 1}, 16, 2));
  std::map<int64_t, Plaintext> diagonals = {{0, plain_}};
  const auto apply = [&](const Ciphertext& a) {
    return ApplyLinearTransform(*evaluator_, plan, diagonals, a, party_->table, *stream_);
  };
  ExpectRefused(apply(a_), "ApplyLinearTransform: diagonals[1] is missing");
  diagonals[1] = plain_;
  EXPECT_OK(apply(a_));
  ExpectRefused(apply(deeper_), "depths differ: a has 2, b has 0; bring b to depth 2");
  ExpectRefused(apply(three_), "relinearize it");
  ExpectRefused(apply(coefficients_), "convert it (ToNtt)");
  ASSERT_OK_AND_ASSIGN(diagonals[1], party_->Encode(x_, 0, 2 * party_->scale()));
  ExpectRefused(apply(a_), "scales differ");
  diagonals[1] = plain_;
  ASSERT_OK_AND_ASSIGN(const ckks::BsgsPlan other, ckks::BsgsPlan::Make({0}, 8, 0));
  ExpectRefused(ApplyLinearTransform(*evaluator_, other, diagonals, a_, party_->table, *stream_),
                "plan: expected one of 16 slots, got 8");
  ASSERT_OK_AND_ASSIGN(const ckks::BsgsPlan far, ckks::BsgsPlan::Make({0, 5}, 16, 1));
  diagonals[5] = plain_;
  EXPECT_THAT(ApplyLinearTransform(*evaluator_, far, diagonals, a_, party_->table, *stream_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rotation(5)")));
}

}  // namespace
}  // namespace cipherd::testing

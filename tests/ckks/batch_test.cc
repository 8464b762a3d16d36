// Batched operations give each item what it gets alone, bit for bit, on every device.
#include <map>
#include <string>
#include <vector>

#include "core/ckks/linear_transform.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/ckks/schedule.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ckks::Ciphertext;
using ckks::Plaintext;

class BatchTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const ckks::ContextParameters parameters = SmallParameters(7);
    ASSERT_OK_AND_ASSIGN(
        party_, Party::Make(GetParam(), parameters, ScheduleKeys(parameters.slot_count())));
    for (int i = 0; i < kItems; ++i) {
      ASSERT_OK_AND_ASSIGN(a_.emplace_back(), party_->Encrypt(party_->RandomSlots(), 0));
      ASSERT_OK_AND_ASSIGN(b_.emplace_back(), party_->Encrypt(party_->RandomSlots(), 0));
    }
  }

  void ExpectItem(const Ciphertext& batch, int64_t i, const Ciphertext& expected) {
    ASSERT_OK_AND_ASSIGN(const Ciphertext item, party_->Item(batch, i));
    EXPECT_EQ(item.depth, expected.depth);
    EXPECT_EQ(item.scale, expected.scale);
    EXPECT_EQ(item.domain, expected.domain);
    EXPECT_EQ(item.data.shape(), expected.data.shape());
    ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> actual, party_->Words(item.data));
    ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> words, party_->Words(expected.data));
    EXPECT_EQ(actual, words);
  }

  static constexpr int kItems = 3;
  std::unique_ptr<Party> party_;
  std::vector<Ciphertext> a_, b_;
};

TEST_P(BatchTest, EveryOperationActsItemByItem) {
  const Slots message = party_->RandomSlots();
  ASSERT_OK_AND_ASSIGN(const Plaintext p, party_->Encode(message, 0, party_->scale()));
  ASSERT_OK_AND_ASSIGN(const Plaintext over_qp,
                       party_->Encode(message, 0, party_->scale(), value::ModulusBasis::kQP));
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Stack(a_));
  ASSERT_OK_AND_ASSIGN(const Ciphertext b, party_->Stack(b_));
  ASSERT_OK_AND_ASSIGN(const auto batched, RunEveryOperation(*party_, a, b, p, over_qp));
  for (int i = 0; i < kItems; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto single, RunEveryOperation(*party_, a_[i], b_[i], p, over_qp));
    for (const auto& [name, expected] : single) {
      SCOPED_TRACE(name);
      ExpectItem(batched.at(name), i, expected);
    }
  }
}

TEST_P(BatchTest, BatchedPlaintextsMeetTheirItems) {
  std::vector<Slots> messages;
  for (int i = 0; i < kItems; ++i) messages.push_back(party_->RandomSlots());
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Stack(a_));
  ASSERT_OK_AND_ASSIGN(const Plaintext p, party_->EncodeBatch(messages, 0, party_->scale()));
  constexpr auto kQP = value::ModulusBasis::kQP;
  ASSERT_OK_AND_ASSIGN(const Plaintext over_qp,
                       party_->EncodeBatch(messages, 0, party_->scale(), kQP));
  ASSERT_OK_AND_ASSIGN(const auto batched, RunEveryOperation(*party_, a, a, p, over_qp));
  for (int i = 0; i < kItems; ++i) {
    ASSERT_OK_AND_ASSIGN(const Plaintext item, party_->Encode(messages[i], 0, party_->scale()));
    ASSERT_OK_AND_ASSIGN(const Plaintext item_over_qp,
                         party_->Encode(messages[i], 0, party_->scale(), kQP));
    ASSERT_OK_AND_ASSIGN(const auto single,
                         RunEveryOperation(*party_, a_[i], a_[i], item, item_over_qp));
    for (const char* name : {"AddPlain", "SubtractPlain", "MultiplyPlain", "ApplyLinearTransform",
                             "ApplyLinearTransformHoistedOnce"}) {
      SCOPED_TRACE(name);
      ExpectItem(batched.at(name), i, single.at(name));
    }
  }
}

TEST_P(BatchTest, BatchesEncryptAndDecryptItemByItem) {
  std::vector<Slots> messages;
  for (int i = 0; i < kItems; ++i) messages.push_back(party_->RandomSlots());
  ASSERT_OK_AND_ASSIGN(const Ciphertext batch, party_->EncryptBatch(messages, 1));
  ASSERT_OK_AND_ASSIGN(const std::vector<Slots> decrypted, party_->DecryptBatch(batch));
  const double bound =
      party_->noise->EncryptSymmetric(party_->noise->Encode(std::sqrt(2.0), party_->scale()))
          .error /
      party_->scale();
  for (int i = 0; i < kItems; ++i) EXPECT_LE(MaxDistance(decrypted[i], messages[i]), bound);
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing

// Key tables: binding another owner's keys moves no key and needs no new capture.
#include "core/ckks/key_set.h"

#include <memory>
#include <string>
#include <vector>

#include "core/secret/decryptor.h"
#include "core/secret/encryptor.h"
#include "core/secret/key_generator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ckks::Ciphertext;
using ckks::KeyId;
using ckks::KeyLayout;
using ::testing::HasSubstr;

class KeySetTest : public ::testing::TestWithParam<std::string> {};

TEST_P(KeySetTest, TablesHoldAddressesInTheOrderOfTheLayout) {
  const std::vector<KeyId> ids = {KeyId::Rotation(3, 16), KeyId::Relinearization(),
                                  KeyId::Rotation(1, 16)};
  ASSERT_OK_AND_ASSIGN(const auto party, Party::Make(GetParam(), SmallParameters(5), ids));
  const KeyLayout layout(ids);
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> addresses, KeyAddresses(layout, party->keys));
  ASSERT_EQ(addresses.size(), 3u);
  for (int slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(addresses[slot],
              reinterpret_cast<uint64_t>(party->keys.at(layout.ids()[slot]).data.data()));
  }
  ASSERT_OK_AND_ASSIGN(const ckks::KeyTable made,
                       MakeKeyTable(layout, party->keys, *party->stream));
  // The copy is done: its source is gone.
  ASSERT_OK_AND_ASSIGN(const bool idle, party->stream->Query());
  EXPECT_TRUE(idle);
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> table, party->Words(made.addresses));
  EXPECT_EQ(table, addresses);
  // A table of part of the keys, and of none.
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> one,
                       KeyAddresses(KeyLayout({KeyId::Rotation(3, 16)}), party->keys));
  EXPECT_EQ(one.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> none, KeyAddresses(KeyLayout(), party->keys));
  EXPECT_EQ(none, std::vector<uint64_t>{0});
  EXPECT_THAT(
      MakeKeyTable(KeyLayout({KeyId::Conjugation()}), party->keys, *party->stream),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("key conjugation is missing: the key set has 3 keys, 1 are needed")));
}

TEST_P(KeySetTest, CapturedRotationsFollowTheTable) {
  const ckks::ContextParameters parameters = SmallParameters(6);
  const KeyId id = KeyId::Rotation(1, parameters.slot_count());
  ASSERT_OK_AND_ASSIGN(const auto party, Party::Make(GetParam(), parameters, {id}));
  runtime::Stream& stream = *party->stream;
  // A second owner on the same device.
  const secret::SecretKey other = secret::SecretKey::Generate(party->context, *party->random);
  ASSERT_OK_AND_ASSIGN(const secret::GeneratedKey generated,
                       secret::KeyGenerator(other).GenerateKey(id, *party->random));
  ASSERT_OK_AND_ASSIGN(const ckks::EvaluationKey resident, UploadKey(generated.key, stream));
  const ckks::KeySet other_keys = {{id, resident}};

  const Slots x = party->RandomSlots();
  ASSERT_OK_AND_ASSIGN(const ckks::Plaintext message,
                       party->encoder->EncodeComplex(x, 0, party->scale()));
  ASSERT_OK_AND_ASSIGN(const secret::SeededCiphertext under_other,
                       secret::SymmetricEncryptor(other).Encrypt(message, *party->random));
  ASSERT_OK_AND_ASSIGN(Ciphertext input, party->Encrypt(x, 0));

  ASSERT_OK(stream.BeginCapture(/*check_liveness=*/true));
  absl::StatusOr<Ciphertext> captured = party->evaluator->Rotate(input, 1, party->table, stream);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<runtime::Graph> graph, stream.EndCapture());
  ASSERT_OK_AND_ASSIGN(const Ciphertext output, std::move(captured));

  const double bound =
      party->noise
          ->KeySwitch(
              party->noise->EncryptSymmetric(party->noise->Encode(std::sqrt(2.0), party->scale())),
              0)
          .error /
      party->scale();
  ASSERT_OK(graph->Launch(stream));
  ASSERT_OK_AND_ASSIGN(const Slots first, party->Decrypt(output));
  EXPECT_LE(MaxDistance(first, Rotated(x, 1)), bound);

  // The other owner's input and keys go to the same addresses.
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> addresses,
                       KeyAddresses(party->table.layout, other_keys));
  const value::Tensor& source = under_other.ciphertext.data;
  ASSERT_OK(
      stream.CopyAsync(input.data.data(), source.data(), static_cast<size_t>(source.bytes())));
  ASSERT_OK(stream.CopyAsync(party->table.addresses.data(), addresses.data(),
                             addresses.size() * sizeof(uint64_t)));
  ASSERT_OK(graph->Launch(stream));
  Ciphertext host = output;
  ASSERT_OK_AND_ASSIGN(host.data, party->ToHost(output.data));
  ASSERT_OK_AND_ASSIGN(const ckks::Plaintext plain, secret::Decryptor(other).Decrypt(host));
  ASSERT_OK_AND_ASSIGN(const Slots second, party->encoder->Decode(plain));
  EXPECT_LE(MaxDistance(second, Rotated(x, 1)), bound);
  // And it is not the first owner's any more.
  ASSERT_OK_AND_ASSIGN(const Slots wrong, party->Decrypt(output));
  EXPECT_GT(MaxDistance(wrong, Rotated(x, 1)), 1);
}

INSTANTIATE_TEST_SUITE_P(Devices, KeySetTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing

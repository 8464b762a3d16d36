#include "proto/codec/payload_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/codec/payload_source.h"
#include "proto/codec/residue_check.h"
#include "proto/codec/tree_admission.h"
#include "proto/codec/tree_encoder.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::AcceptEverything;
using ::cipherd::testing::CountingTensor;
using ::cipherd::testing::Describe;
using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::MakeCiphertext;
using ::cipherd::testing::PayloadOf;
using ::cipherd::testing::SmallContext;
using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;
using value::DType;
using value::ValueTree;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_VALUE;

// Tensors of odd sizes and of none between ciphertexts, so that splits fall everywhere.
ValueTree MixedTree() {
  const KnownContext& context = *SmallContext();
  return ValueTree::List({ValueTree::Leaf(CountingTensor(DType::kUint8, {0})),
                          ValueTree::Leaf(CountingTensor(DType::kUint8, {13})),
                          ValueTree::Value(MakeCiphertext(context, 0)),
                          ValueTree::Leaf(CountingTensor(DType::kUint8, {0})),
                          ValueTree::Value(MakeCiphertext(context, 3, 3, {2})),
                          ValueTree::Leaf(CountingTensor(DType::kFloat32, {3})),
                          ValueTree::Leaf(CountingTensor(DType::kUint8, {0}))});
}

PayloadReader ReaderOf(const ValueTree& tree) {
  absl::StatusOr<AdmittedTree> admitted =
      AdmitTree(Describe(tree), AcceptEverything(), WireLimits(), "inputs");
  EXPECT_OK(admitted);
  absl::StatusOr<PayloadReader> reader =
      PayloadReader::Allocate(*std::move(admitted), PageableTensors());
  EXPECT_OK(reader);
  return *std::move(reader);
}

TEST(PayloadReaderTest, AnySplitGivesTheSameTree) {
  const ValueTree tree = MixedTree();
  const std::string payload = PayloadOf(tree);
  std::mt19937_64 random(7);
  for (size_t split = 0; split < 60; ++split) {
    SCOPED_TRACE(split);
    PayloadReader reader = ReaderOf(tree);
    size_t position = 0;
    while (position < payload.size()) {
      // Pieces of 1 to 40 bytes, of everything, and of random sizes.
      const size_t wish = split < 40 ? split + 1 : split == 40 ? payload.size() : random() % 700;
      const size_t count = std::min(wish, payload.size() - position);
      EXPECT_EQ(reader.remaining_bytes(), payload.size() - position);
      ASSERT_OK(reader.Write(payload.substr(position, count)));
      position += count;
    }
    EXPECT_EQ(reader.remaining_bytes(), 0u);
    ASSERT_OK_AND_ASSIGN(const ValueTree received, std::move(reader).Finish());
    EXPECT_EQ(PayloadOf(received), payload);
  }
}

TEST(PayloadReaderTest, RegionsFilledInPlaceGiveTheSameTree) {
  const ValueTree tree = MixedTree();
  const std::string payload = PayloadOf(tree);
  PayloadReader reader = ReaderOf(tree);
  size_t position = 0;
  while (!reader.NextRegion().empty()) {
    const std::span<uint8_t> region = reader.NextRegion();
    const size_t count = std::min<size_t>(region.size(), 100);
    std::memcpy(region.data(), payload.data() + position, count);
    ASSERT_OK(reader.Advance(count));
    position += count;
  }
  EXPECT_EQ(position, payload.size());
  EXPECT_THAT(reader.Advance(1), StatusIs(absl::StatusCode::kInternal));
  ASSERT_OK_AND_ASSIGN(const ValueTree received, std::move(reader).Finish());
  EXPECT_EQ(PayloadOf(received), payload);
}

TEST(PayloadReaderTest, AChildIsThereOnceItsLastByteIs) {
  const ValueTree tree = MixedTree();
  const std::string payload = PayloadOf(tree);
  PayloadReader reader = ReaderOf(tree);
  std::vector<uint64_t> ends;
  uint64_t end = 0;
  for (const ValueTree& child : tree.children()) {
    ends.push_back(end += static_cast<uint64_t>(value::ValueTreeNbytes(child)));
  }
  for (size_t at = 0; at <= payload.size(); ++at) {
    for (size_t i = 0; i < ends.size(); ++i) {
      ASSERT_OK_AND_ASSIGN(const std::optional<ValueTree> child, reader.CompletedChild(i));
      ASSERT_EQ(child.has_value(), ends[i] <= at) << "child " << i << " after " << at;
      if (child.has_value() && ends[i] == at) {
        EXPECT_EQ(PayloadOf(*child), PayloadOf(tree[i]));
      }
    }
    if (at < payload.size()) {
      ASSERT_OK(reader.Write(std::string_view(payload).substr(at, 1)));
    }
  }
}

TEST(PayloadReaderTest, AChildWithAResidueThatIsNotBelowItsPrimeIsNoChild) {
  const ValueTree tree = ValueTree::Tuple({ValueTree::Value(MakeCiphertext(*SmallContext(), 0))});
  PayloadReader reader = ReaderOf(tree);
  ASSERT_OK(reader.Write(std::string(PayloadOf(tree).size(), '\xff')));
  EXPECT_THAT(reader.CompletedChild(0), StatusIs(kInvalid, HasSubstr("residues below the prime")));
}

TEST(PayloadReaderTest, AnEmptyPayloadFinishesAtOnce) {
  PayloadReader reader = ReaderOf(ValueTree::List({}));
  EXPECT_EQ(reader.total_bytes(), 0u);
  EXPECT_OK(reader.Write(std::string_view()));
  EXPECT_OK(std::move(reader).Finish());
}

TEST(PayloadReaderTest, SurplusIsRefusedAndNoneOfItsPieceIsTaken) {
  const ValueTree tree = MixedTree();
  const std::string payload = PayloadOf(tree);
  PayloadReader reader = ReaderOf(tree);
  ASSERT_OK(reader.Write(payload.substr(0, payload.size() - 3)));
  EXPECT_THAT(reader.Write("four"), IsRefusal(kInvalid, kMalformed, "inputs.payload"));
  EXPECT_EQ(reader.remaining_bytes(), 3u);
}

TEST(PayloadReaderTest, AnEarlyEndIsRefusedAtEveryLength) {
  const ValueTree tree = ValueTree::Value(MakeCiphertext(*SmallContext(), 3));
  const std::string payload = PayloadOf(tree);
  for (size_t length = 0; length < payload.size(); ++length) {
    PayloadReader reader = ReaderOf(tree);
    ASSERT_OK(reader.Write(payload.substr(0, length)));
    EXPECT_THAT(std::move(reader).Finish(), IsRefusal(kInvalid, kMalformed, "inputs.payload"));
  }
}

TEST(PayloadReaderTest, EachResidueOfEachTensorMustBeBelowItsPrime) {
  // 12 rows of primes 2 and 3 in turn, then 2 rows of prime 3.
  const ValueTree tree =
      ValueTree::Tuple({ValueTree::Value(MakeCiphertext(*SmallContext(), 2, 3, {2})),
                        ValueTree::Value(MakeCiphertext(*SmallContext(), 3))});
  const std::string payload = PayloadOf(tree);
  ASSERT_EQ(payload.size(), (12 + 2) * 16 * 8u);
  const std::vector<uint64_t>& primes = SmallContext()->primes();
  for (size_t index = 0; index < payload.size() / 8; ++index) {
    const size_t row = index / 16;
    const bool in_first = row < 12;
    const uint64_t prime = primes[in_first ? 2 + row % 2 : 3];
    const std::string path = in_first ? "inputs[0].data[row " + std::to_string(row) + "]"
                                      : "inputs[1].data[row " + std::to_string(row - 12) + "]";
    for (const uint64_t residue : {prime, prime + 1, uint64_t{1} << 63, ~uint64_t{0}}) {
      std::string wrong = payload;
      std::memcpy(&wrong[index * 8], &residue, 8);
      for (const size_t chunk : {size_t{13}, wrong.size()}) {
        PayloadReader reader = ReaderOf(tree);
        for (size_t at = 0; at < wrong.size(); at += chunk) {
          ASSERT_OK(reader.Write(wrong.substr(at, chunk)));
        }
        const absl::Status status = std::move(reader).Finish().status();
        ASSERT_THAT(status, IsRefusal(kInvalid, kMalformed, path));
        // The prime is public, the residue is payload.
        if (residue != prime) {
          EXPECT_THAT(std::string(status.message()), Not(HasSubstr(std::to_string(residue))));
        }
      }
    }
  }
}

TEST(PayloadReaderTest, TheLengthIsJudgedBeforeTheResidues) {
  const ValueTree tree = ValueTree::Value(MakeCiphertext(*SmallContext(), 3));
  const std::string wrong(PayloadOf(tree).size(), '\xff');
  PayloadReader shorter = ReaderOf(tree);
  ASSERT_OK(shorter.Write(wrong.substr(1)));
  EXPECT_THAT(std::move(shorter).Finish(), IsRefusal(kInvalid, kMalformed, "inputs.payload"));
  PayloadReader longer = ReaderOf(tree);
  EXPECT_THAT(longer.Write(wrong + "x"), IsRefusal(kInvalid, kMalformed, "inputs.payload"));
}

TEST(PayloadReaderTest, NumbersThatAreNoResiduesTravelWithAllTheirBits) {
  const ValueTree tree = ValueTree::Leaf(CountingTensor(DType::kUint64, {100}));
  PayloadReader reader = ReaderOf(tree);
  const std::string payload(800, '\xff');
  ASSERT_OK(reader.Write(payload));
  ASSERT_OK_AND_ASSIGN(const ValueTree received, std::move(reader).Finish());
  EXPECT_EQ(PayloadOf(received), payload);
}

TEST(PayloadSourceTest, ChunksOfEverySizeAddUpToThePayload) {
  const ValueTree tree = MixedTree();
  const std::string payload = PayloadOf(tree);
  v1::ValueTree message;
  ASSERT_OK_AND_ASSIGN(PayloadSource source, EncodeTree(tree, "tree", &message));
  EXPECT_EQ(source.total_bytes(), payload.size());
  for (const uint64_t size : {1, 7, 8, 13, 64, 100, 512, 4096, 1 << 20}) {
    source.Rewind();
    std::string all;
    std::string chunk;
    while (source.remaining_bytes() > 0) {
      const uint64_t expected = std::min(size, source.remaining_bytes());
      source.TakeInto(size, &chunk);
      EXPECT_EQ(chunk.size(), expected);
      all += chunk;
    }
    EXPECT_EQ(all, payload);
  }
  EXPECT_TRUE(source.Take(1).empty());
}

TEST(PayloadSourceTest, PiecesPointIntoTheTensors) {
  const ValueTree tree = ValueTree::Value(MakeCiphertext(*SmallContext(), 0));
  v1::ValueTree message;
  ASSERT_OK_AND_ASSIGN(PayloadSource source, EncodeTree(tree, "tree", &message));
  source.Take(24);
  const std::vector<std::span<const uint8_t>> pieces = source.Take(1000);
  ASSERT_EQ(pieces.size(), 1u);
  const value::Tensor& data = tree.exact_value().tensors[0].second;
  EXPECT_EQ(pieces[0].data(), data.data_as<uint8_t>() + 24);
  EXPECT_EQ(pieces[0].size(), 1000u);
}

TEST(ResidueCheckTest, FindsOneResidueThatIsNotBelowAnywhere) {
  for (const uint64_t prime :
       {uint64_t{2}, uint64_t{97}, (uint64_t{1} << 61) - 1, uint64_t{1} << 63}) {
    std::vector<uint64_t> residues(37, prime - 1);
    residues[3] = 0;
    EXPECT_TRUE(internal::AllBelow(residues, prime));
    for (size_t i = 0; i < residues.size(); ++i) {
      for (const uint64_t wrong :
           {prime, prime + 1, (uint64_t{1} << 63) + prime / 2, ~uint64_t{0}}) {
        std::vector<uint64_t> one_wrong = residues;
        one_wrong[i] = wrong;
        EXPECT_FALSE(internal::AllBelow(one_wrong, prime)) << prime << " " << wrong;
      }
    }
  }
  EXPECT_TRUE(internal::AllBelow({}, 97));
}

}  // namespace
}  // namespace cipherd::codec

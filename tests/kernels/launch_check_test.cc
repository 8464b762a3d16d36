// What every launch has in common: checks of arguments, accesses declared to captures, errors that
// stick.
#include "core/kernels/launch_check.h"

#include <cstdint>
#include <functional>
#include <vector>

#include "core/ring/basis_conversion.h"
#include "tests/kernels/kernel_fixture.h"
#include "tests/kernels/operations.h"

namespace cipherd::kernels {
namespace {

using ::cipherd::testing::AllOperations;
using ::cipherd::testing::Operands;
using ::cipherd::testing::Operation;
using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kLogN = 5;
constexpr int64_t kPolyWords = 2 << kLogN;

class LaunchCheckTest : public testing::KernelFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(KernelFixture::SetUp());
    ASSERT_NO_FATAL_FAILURE(UseRing(kLogN, {50, 61, 40}));
    ASSERT_OK_AND_ASSIGN(conversion_block_, PlaceConversion());
    good_.ring = ring_;
    good_.limbs = testing::LimbsOf({0, 1});
    for (runtime::StoragePtr* block : {&a_, &b_, &out_, &key_}) {
      ASSERT_OK_AND_ASSIGN(*block, Block());
    }
    good_.a = Words(a_);
    good_.b = Words(b_);
    good_.out = Words(out_);
    ASSERT_OK_AND_ASSIGN(slot_, Slot());
    good_.slot = static_cast<const uint64_t* const*>(slot_->data());
  }

  static uint64_t* Words(const runtime::StoragePtr& block) {
    return static_cast<uint64_t*>(block->data());
  }
  // Room for three polynomials, zero.
  absl::StatusOr<runtime::StoragePtr> Block() {
    return testing::Upload(std::vector<uint64_t>(3 * kPolyWords), *device_, *stream_);
  }
  absl::StatusOr<runtime::StoragePtr> Slot() {
    return testing::Upload(std::vector<void*>{key_->data()}, *device_, *stream_);
  }
  absl::StatusOr<runtime::StoragePtr> PlaceConversion() {
    const std::vector<uint16_t> source = {0, 1};
    const std::vector<uint16_t> target = {2};
    CIPHERD_ASSIGN_OR_RETURN(const ring::BasisConversion conversion,
                             ring::BasisConversion::Create(*basis_, source, target));
    CIPHERD_ASSIGN_OR_RETURN(runtime::StoragePtr block, Place(conversion.image()));
    good_.conversion = conversion.TablesAt(block->data());
    return block;
  }

  // What `operation` says to the good operands after `change`.
  absl::Status After(const Operation& operation, const std::function<void(Operands&)>& change) {
    Operands operands = good_;
    change(operands);
    return operation.run(kernels(), operands, *stream_);
  }

  Operands good_;
  runtime::StoragePtr conversion_block_;
  runtime::StoragePtr a_, b_, out_, key_, slot_;
};

auto Refused(const Operation& operation, const std::string& what) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(operation.name + ": "), HasSubstr(what)));
}

TEST_P(LaunchCheckTest, GoodOperandsPassEverywhere) {
  for (const Operation& operation : AllOperations()) {
    EXPECT_OK(After(operation, [](Operands&) {})) << operation.name;
  }
  EXPECT_OK(stream_->Synchronize());
}

TEST_P(LaunchCheckTest, EveryOperationRefusesBadAddresses) {
  for (const Operation& operation : AllOperations()) {
    EXPECT_THAT(After(operation, [](Operands& x) { x.a = nullptr; }),
                Refused(operation, "expected an address, got 0"));
    EXPECT_THAT(After(operation, [](Operands& x) { x.out = nullptr; }),
                Refused(operation, "expected an address, got 0"));
    EXPECT_THAT(After(operation, [](Operands& x) { x.ring.primes = nullptr; }),
                Refused(operation, "ring.primes: expected an address, got 0"));
    const auto misaligned = [](auto* address) {
      return reinterpret_cast<decltype(address)>(reinterpret_cast<uintptr_t>(address) + 4);
    };
    EXPECT_THAT(After(operation, [&](Operands& x) { x.a = misaligned(x.a); }),
                Refused(operation, "aligned to 8 bytes"));
    if (operation.reads_b) {
      EXPECT_THAT(After(operation, [](Operands& x) { x.b = nullptr; }),
                  Refused(operation, "expected an address, got 0"));
    }
  }
  EXPECT_OK(stream_->Synchronize());
}

TEST_P(LaunchCheckTest, EveryOperationRefusesAForeignRing) {
  for (const Operation& operation : AllOperations()) {
    EXPECT_THAT(After(operation, [](Operands& x) { x.ring.log_n = 3; }),
                Refused(operation, "ring.log_n: expected 4 to 17, got 3"));
    EXPECT_THAT(After(operation, [](Operands& x) { x.ring.log_n = 18; }),
                Refused(operation, "ring.log_n: expected 4 to 17, got 18"));
    EXPECT_THAT(After(operation, [](Operands& x) { x.ring.prime_count = 0; }),
                Refused(operation, "ring.prime_count"));
  }
}

TEST_P(LaunchCheckTest, LimbsAreCountedAndHavePrimes) {
  for (const Operation& operation : AllOperations()) {
    if (operation.name == "convert_basis") continue;
    for (int count : {0, -1, kMaxLimbs + 1}) {
      EXPECT_THAT(After(operation, [&](Operands& x) { x.limbs.count = count; }),
                  Refused(operation, operation.name == "copy" ? "limb_count: expected 1 to 64"
                                                              : "limbs.count: expected 1 to 64"));
    }
    if (operation.name == "copy") continue;
    EXPECT_THAT(After(operation, [](Operands& x) { x.limbs.prime[1] = 3; }),
                Refused(operation, "limbs.prime: expected 0 to 2, got 3"));
  }
}

TEST_P(LaunchCheckTest, OverlapIsRefusedUnlessExactlyInPlace) {
  for (const Operation& operation : AllOperations()) {
    const auto in_place = [](Operands& x) { x.out = const_cast<uint64_t*>(x.a); };
    if (operation.may_be_in_place) {
      EXPECT_OK(After(operation, in_place)) << operation.name;
    } else {
      EXPECT_THAT(After(operation, in_place), Refused(operation, "overlaps"));
    }
    EXPECT_THAT(After(operation, [](Operands& x) { x.out = const_cast<uint64_t*>(x.a) + 1; }),
                Refused(operation, "overlaps"));
    if (operation.reads_b) {
      EXPECT_THAT(After(operation, [](Operands& x) { x.out = const_cast<uint64_t*>(x.b) + 8; }),
                  Refused(operation, "overlaps"));
    }
  }
}

TEST_P(LaunchCheckTest, CountsAndStridesMustFit) {
  const LimbPrimes& limbs = good_.limbs;
  const auto copy = [&](ConstPolyView a, PolyView out) {
    return kernels().copy(ring_, limbs.count, a, out, *stream_);
  };
  EXPECT_THAT(
      copy({good_.a, 2, kPolyWords}, {good_.out, 3, kPolyWords}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a: expected 3 polynomials, got 2")));
  EXPECT_THAT(copy({good_.a, 0, kPolyWords}, {good_.out, 0, kPolyWords}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("out: expected 1 to 65535")));
  EXPECT_THAT(
      copy({good_.a, 2, kPolyWords}, {good_.out, 2, kPolyWords - 1}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("out: expected an outer_stride")));
  EXPECT_THAT(
      copy({good_.a, 2, int64_t{1} << 62}, {good_.out, 2, kPolyWords}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a: expected an outer_stride")));
  const auto tensor = [&](int64_t in_count, int64_t out_count) {
    return kernels().tensor_product(ring_, limbs, {good_.a, in_count, kPolyWords},
                                    {good_.b, in_count, kPolyWords},
                                    {good_.out, out_count, kPolyWords}, *stream_);
  };
  EXPECT_THAT(tensor(2, 2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a multiple of 3")));
  EXPECT_THAT(tensor(1, 3), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("a: expected 2 polynomials, got 1")));
}

// Limbs of one tensor may be read while limbs beside them are written.
TEST_P(LaunchCheckTest, InterleavedViewsOfOneBlockAreDisjoint) {
  const int64_t limb_words = kPolyWords / 2;
  const auto copy = [&](int64_t in_limb, int64_t out_limb, int64_t out_stride) {
    return kernels().copy(
        ring_, /*limb_count=*/1, {good_.a + in_limb * limb_words, 2, 3 * limb_words},
        {const_cast<uint64_t*>(good_.a) + out_limb * limb_words, 2, out_stride}, *stream_);
  };
  EXPECT_OK(copy(0, 1, 3 * limb_words));
  EXPECT_OK(copy(2, 0, 3 * limb_words));
  EXPECT_OK(copy(0, 2, 3 * limb_words));
  EXPECT_THAT(copy(0, 1, 2 * limb_words),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overlaps")));
  EXPECT_THAT(copy(1, 1, 3 * limb_words),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overlaps")));
}

TEST_P(LaunchCheckTest, KeyAndElementArgumentsAreInRange) {
  const auto product = [&](int digit_count, uint32_t element, const KeySlot& key) {
    return kernels().key_inner_product(ring_, good_.limbs, digit_count, element,
                                       good_.ViewOf(good_.a, digit_count), key,
                                       {good_.out, 2, kPolyWords}, *stream_);
  };
  KeySlot good;
  good.slot = good_.slot;
  good.key_limb_count = 2;
  EXPECT_OK(product(1, 1, good));
  const auto refused = [](const char* what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  for (uint32_t element : {0u, 2u, 65u}) {
    EXPECT_THAT(product(1, element, good), refused("galois_element: expected"));
    EXPECT_THAT(kernels().automorphism_ntt(ring_, good_.limbs, element, good_.ViewOf(good_.a, 1),
                                           {good_.out, 1, 0}, *stream_),
                refused("galois_element: expected"));
  }
  EXPECT_THAT(product(0, 1, good), refused("digit_count: expected 1 to 64, got 0"));
  EXPECT_THAT(product(kMaxDigits + 1, 1, good), refused("digit_count: expected 1 to 64, got 65"));
  KeySlot bad = good;
  bad.key_digits[0] = kMaxDigits;
  EXPECT_THAT(product(1, 1, bad), refused("key.key_digits: expected 0 to 63, got 64"));
  bad = good;
  bad.first_limb = 1;
  EXPECT_THAT(product(1, 1, bad), refused("key.first_limb: expected 0 to 0, got 1"));
  bad = good;
  bad.key_limb_count = 1;
  EXPECT_THAT(product(1, 1, bad), refused("key.first_limb: expected 0 to -1, got 0"));
  bad = good;
  bad.slot = nullptr;
  EXPECT_THAT(product(1, 1, bad), refused("key.slot: expected an address"));
}

// Doubles do not hold the products of greater primes.
TEST_P(LaunchCheckTest, ArithmeticOnDoublesRefusesRingsWithPrimesOfFiftyBitsAndMore) {
  for (const Operation& operation : AllOperations()) {
    const absl::Status status = After(operation, [](Operands& x) { x.ring.all_fma = false; });
    if (arithmetic_ == Arithmetic::kFma) {
      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ring.all_fma: expected")))
          << operation.name;
    } else {
      EXPECT_OK(status) << operation.name;
    }
  }
}

// A captured launch which touches a freed block is refused, whichever operand it is.
TEST_P(LaunchCheckTest, EveryOperationDeclaresAllItsOperandsToACapture) {
  using Replace = std::function<void(Operands&, const runtime::StoragePtr&)>;
  const auto set_a = [](Operands& x, const runtime::StoragePtr& block) { x.a = Words(block); };
  const auto set_b = [](Operands& x, const runtime::StoragePtr& block) { x.b = Words(block); };
  const auto set_out = [](Operands& x, const runtime::StoragePtr& block) { x.out = Words(block); };
  const auto set_slot = [](Operands& x, const runtime::StoragePtr& block) {
    x.slot = static_cast<const uint64_t* const*>(block->data());
  };
  const auto set_ring = [](Operands& x, const runtime::StoragePtr& block) {
    x.ring.primes = static_cast<const ring::PrimeConstants*>(block->data());
  };
  for (const Operation& operation : AllOperations()) {
    std::vector<Replace> operands = {set_a, set_out, set_ring};
    if (operation.reads_b) operands.push_back(set_b);
    if (operation.reads_slot) operands.push_back(set_slot);
    for (size_t k = 0; k < operands.size(); ++k) {
      SCOPED_TRACE(operation.name + " operand " + std::to_string(k));
      Operands freed = good_;
      {
        ASSERT_OK_AND_ASSIGN(const runtime::StoragePtr block, Block());
        operands[k](freed, block);
      }
      ASSERT_OK(stream_->BeginCapture(/*check_liveness=*/true));
      EXPECT_THAT(operation.run(kernels(), freed, *stream_),
                  StatusIs(absl::StatusCode::kFailedPrecondition));
      EXPECT_FALSE(stream_->EndCapture().ok());
    }
    ASSERT_OK(stream_->BeginCapture(/*check_liveness=*/true));
    EXPECT_OK(operation.run(kernels(), good_, *stream_));
    EXPECT_OK(stream_->EndCapture());
  }
}

TEST_P(LaunchCheckTest, LaunchesOnAFailedStreamReturnItsError) {
  ASSERT_OK(testing::FailStream(*stream_, absl::InternalError("injected")));
  EXPECT_THAT(stream_->Synchronize(), StatusIs(absl::StatusCode::kInternal));
  for (const Operation& operation : AllOperations()) {
    EXPECT_THAT(After(operation, [](Operands&) {}),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("injected")))
        << operation.name;
  }
}

CIPHERD_INSTANTIATE_KERNEL_SUITE(LaunchCheckTest);

}  // namespace
}  // namespace cipherd::kernels

#include "core/execution/tensor_signature.h"

#include <vector>

#include "absl/hash/hash_testing.h"
#include "tests/execution/execution_fixture.h"

namespace cipherd::testing {
namespace {

using execution::TensorSignature;
using value::DType;
using value::Tensor;

const TensorSignature kExample{{2, 3}, {3, 1}, DType::kUint64, value::Layout::kStrided, false};

// One that differs from kExample in each field.
std::vector<TensorSignature> Variants() {
  std::vector<TensorSignature> variants(5, kExample);
  variants[0].shape = {1, 2, 3};
  variants[1].strides = {1, 2};
  variants[2].dtype = DType::kInt64;
  variants[3].requires_grad = true;
  variants[4].shape = {2, 4};
  return variants;
}

class TensorSignatureTest : public ExecutionTest {};

TEST_P(TensorSignatureTest, S1_HostAndDeviceCopiesHaveEqualSignatures) {
  const TensorSignature host = TensorSignature::FromTensor(HostWords({1, 2, 3}));
  EXPECT_EQ(host, TensorSignature::FromTensor(PinnedWords({4, 5, 6})));
  EXPECT_EQ(host, TensorSignature::FromTensor(DeviceWords({7, 8, 9})));
  EXPECT_EQ(host, (TensorSignature{{3}, {1}, DType::kUint64, value::Layout::kStrided, false}));
}

INSTANTIATE_ON_DEVICES(TensorSignatureTest);

TEST(TensorSignatureFieldTest, S1_EveryFieldCounts) {
  for (const TensorSignature& variant : Variants()) {
    EXPECT_NE(kExample, variant) << variant;
    EXPECT_FALSE(kExample.CheckSame(variant, "x").ok()) << variant;
  }
  EXPECT_OK(kExample.CheckSame(kExample, "x"));
}

TEST(TensorSignatureFieldTest, S1_RequiresGradComesFromTheTensor) {
  Tensor tensor;
  tensor.set_requires_grad(true);
  EXPECT_TRUE(TensorSignature::FromTensor(tensor).requires_grad);
}

TEST(TensorSignatureFieldTest, S5_NamesTheFirstFieldThatDiffers) {
  const std::vector<std::string> messages = {
      "x.shape: expected [2, 3], got [1, 2, 3]", "x.stride: expected [3, 1], got [1, 2]",
      "x.dtype: expected uint64, got int64", "x.requires_grad: expected false, got true",
      "x.shape: expected [2, 3], got [2, 4]"};
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_THAT(kExample.CheckSame(Variants()[i], "x"),
                StatusIs(absl::StatusCode::kInvalidArgument, messages[i]));
  }
}

TEST(TensorSignatureFieldTest, S6_HashesAgreeWithEquality) {
  std::vector<TensorSignature> signatures = Variants();
  signatures.push_back(kExample);
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(signatures));
}

TEST(TensorSignatureFieldTest, S6_PrintsWhatDiffersFromAPlainTensor) {
  EXPECT_EQ(kExample.ToString(), "uint64[2, 3]");
  EXPECT_EQ(Variants()[1].ToString(), "uint64[2, 3] strides [1, 2]");
  EXPECT_EQ(Variants()[3].ToString(), "uint64[2, 3] requires_grad");
}

}  // namespace
}  // namespace cipherd::testing

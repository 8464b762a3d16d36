#include "proto/codec/tensor_plan.h"

namespace cipherd::codec {

TensorAllocator PageableTensors() {
  return [](const TensorPlan& plan) { return value::Tensor::AllocateHost(plan.dtype, plan.shape); };
}

TensorAllocator PinnedTensors(runtime::Device& device) {
  return [&device](const TensorPlan& plan) {
    return value::Tensor::AllocatePinned(device, plan.dtype, plan.shape);
  };
}

}  // namespace cipherd::codec

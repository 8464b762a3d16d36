#include "server/engine/batch_function.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/runtime/event.h"
#include "core/value/tensor.h"
#include "core/value/value_tree.h"

namespace cipherd::engine {
namespace {

using value::ValueTree;

// A stream beside the caller's, and the events that fork it and join it.
struct Branch {
  std::unique_ptr<runtime::Stream> stream;
  std::shared_ptr<runtime::Event> done;
};

class BatchFunction {
 public:
  static absl::StatusOr<std::shared_ptr<BatchFunction>> Make(
      const FunctionFactory& make_function, int batch_size, runtime::Device& device,
      std::span<const execution::OutputEvents> output_events) {
    auto batch = std::make_shared<BatchFunction>();
    for (int item = 0; item < batch_size; ++item) {
      CIPHERD_ASSIGN_OR_RETURN(
          batch->functions_.emplace_back(),
          make_function(output_events.empty() ? execution::OutputEvents() : output_events[item]));
    }
    CIPHERD_ASSIGN_OR_RETURN(batch->forked_, device.CreateEvent());
    for (int item = 1; item < batch_size; ++item) {
      Branch& branch = batch->branches_.emplace_back();
      CIPHERD_ASSIGN_OR_RETURN(branch.stream,
                               device.CreateStream(absl::StrCat("batch item ", item)));
      CIPHERD_ASSIGN_OR_RETURN(branch.done, device.CreateEvent());
    }
    return batch;
  }

  absl::StatusOr<ValueTree> operator()(std::span<const ValueTree> inputs,
                                       runtime::Stream& stream) const {
    const size_t batch_size = branches_.size() + 1;
    const std::span<const ValueTree> values = inputs.first(inputs.size() - 1);
    const size_t value_count = values.size() / batch_size;
    if (!branches_.empty()) CIPHERD_RETURN_IF_ERROR(stream.Record(*forked_));
    std::vector<ValueTree> results;
    results.reserve(batch_size);
    for (size_t item = 0; item < batch_size; ++item) {
      runtime::Stream& on = item == 0 ? stream : *branches_[item - 1].stream;
      if (item > 0) CIPHERD_RETURN_IF_ERROR(on.Wait(*forked_));
      const std::span<const ValueTree> own = values.subspan(item * value_count, value_count);
      CIPHERD_ASSIGN_OR_RETURN(ValueTree result, RunItem(own, inputs.back().tensor(), item, on));
      if (item > 0) {
        // Made on the branch, and used by whoever uses the caller's stream.
        for (const value::Tensor* tensor : value::TensorsOf(result)) {
          tensor->storage()->RecordUse(stream);
        }
        CIPHERD_RETURN_IF_ERROR(on.Record(*branches_[item - 1].done));
      }
      results.push_back(std::move(result));
    }
    for (const Branch& branch : branches_) CIPHERD_RETURN_IF_ERROR(stream.Wait(*branch.done));
    return ValueTree::Tuple(std::move(results));
  }

 private:
  absl::StatusOr<ValueTree> RunItem(std::span<const ValueTree> values,
                                    const value::Tensor& key_table, size_t item,
                                    runtime::Stream& on) const {
    const int64_t key_count = key_table.shape().back();
    CIPHERD_ASSIGN_OR_RETURN(
        value::Tensor row,
        value::Tensor::FromStorage(key_table.storage(), item * key_count * sizeof(uint64_t),
                                   key_table.dtype(), {key_count}));
    std::vector<ValueTree> arguments(values.begin(), values.end());
    arguments.push_back(ValueTree::Leaf(std::move(row)));
    for (const ValueTree& argument : arguments) {
      for (const value::Tensor* tensor : value::TensorsOf(argument)) {
        tensor->storage()->RecordUse(on);
      }
    }
    return functions_[item](arguments, on);
  }

  // By item.
  std::vector<execution::ProgramFunction> functions_;
  std::shared_ptr<runtime::Event> forked_;
  std::vector<Branch> branches_;
};

}  // namespace

absl::StatusOr<execution::ProgramFunction> MakeBatchFunction(
    const FunctionFactory& make_function, int batch_size, runtime::Device& device,
    std::span<const execution::OutputEvents> output_events) {
  CIPHERD_ASSIGN_OR_RETURN(const std::shared_ptr<BatchFunction> batch,
                           BatchFunction::Make(make_function, batch_size, device, output_events));
  return [batch](std::span<const ValueTree> inputs, runtime::Stream& stream) {
    return (*batch)(inputs, stream);
  };
}

}  // namespace cipherd::engine

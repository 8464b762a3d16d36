#include "core/planning/operation_costs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/linear_transform.h"
#include "core/programs/placeholder_key.h"
#include "core/runtime/event.h"
#include "core/runtime/graph.h"
#include "core/runtime/stream.h"

namespace cipherd::planning {
namespace {

using ckks::Ciphertext;
using ckks::Plaintext;
using programs::EdgeState;
using programs::Operation;
using programs::OperationKind;

// Of a program's: more than caches hold where keys are large, and memory for a moment only.
constexpr int kMostKeys = 32;

class Meter {
 public:
  static absl::StatusOr<Meter> Make(const std::shared_ptr<const programs::CheckedProgram>& program,
                                    runtime::Device& device, const CostOptions& options) {
    Meter meter(program, options);
    CIPHERD_ASSIGN_OR_RETURN(meter.stream_, device.CreateStream("costs"));
    CIPHERD_ASSIGN_OR_RETURN(meter.begin_, device.CreateEvent());
    CIPHERD_ASSIGN_OR_RETURN(meter.end_, device.CreateEvent());
    CIPHERD_ASSIGN_OR_RETURN(meter.context_,
                             ckks::DeviceContext::Create(program->context, device, *meter.stream_));
    CIPHERD_RETURN_IF_ERROR(meter.MakeKeys());
    return meter;
  }

  // Seconds of `operation`, of an earlier one where that did the same.
  absl::StatusOr<double> Seconds(const Operation& operation) {
    const std::string work = WorkOf(operation);
    const auto known = seconds_.find(work);
    if (known != seconds_.end()) return known->second;
    CIPHERD_ASSIGN_OR_RETURN(const double seconds, Measure(operation));
    seconds_.emplace(work, seconds);
    return seconds;
  }

 private:
  Meter(std::shared_ptr<const programs::CheckedProgram> program, const CostOptions& options)
      : program_(std::move(program)), options_(options) {}

  // A table for each copy, in which no key has the place that it has in another: a program reads
  // each of its keys from memory, not the last one again from a cache.
  absl::Status MakeKeys() {
    const int key_count = std::max(1, program_->keys.size());
    for (int i = 0; i < std::clamp(key_count, kOperationCopies, kMostKeys); ++i) {
      CIPHERD_ASSIGN_OR_RETURN(keys_.emplace_back(),
                               programs::PlaceholderKey::Make(*context_, *stream_));
    }
    for (int copy = 0; copy < kOperationCopies; ++copy) {
      std::vector<uint64_t> addresses;
      for (int i = 0; i < key_count; ++i) {
        addresses.push_back(keys_[(i + copy) % keys_.size()]->address());
      }
      CIPHERD_ASSIGN_OR_RETURN(
          const value::Tensor table,
          value::Tensor::AllocateOn(*stream_, value::DType::kUint64, {key_count}));
      key_tables_.push_back(table);
      CIPHERD_RETURN_IF_ERROR(stream_->CopyAsync(table.data(), addresses.data(), table.bytes()));
      CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
    }
    return absl::OkStatus();
  }

  const EdgeState& StateOf(const std::string& edge) const {
    return program_->edges.find(edge)->second;
  }

  // Equal for operations that do the same work.
  std::string WorkOf(const Operation& operation) const {
    const EdgeState& a = StateOf(operation.a);
    std::string work =
        absl::StrCat(std::string(ToString(operation.kind)), " ", a.depth, " ", a.component_count);
    if (!operation.b.empty()) absl::StrAppend(&work, " ", StateOf(operation.b).component_count);
    if (operation.kind == OperationKind::kDropToDepth) absl::StrAppend(&work, " ", operation.depth);
    if (operation.kind == OperationKind::kRotate) {
      absl::StrAppend(&work, " ", operation.step % program_->spec.context.slot_count() != 0);
    }
    if (operation.kind == OperationKind::kLinearTransform) {
      const ckks::BsgsPlan& plan = program_->plans.find(operation.name)->second;
      int64_t term_count = 0;
      for (const auto& [giant, terms] : plan.giants()) term_count += std::ssize(terms);
      absl::StrAppend(&work, " ", plan.BabySteps().size(), " ", plan.GiantSteps().size(), " ",
                      term_count);
    }
    return work;
  }

  absl::StatusOr<value::Tensor> Zeros(std::vector<int64_t> shape) {
    CIPHERD_ASSIGN_OR_RETURN(
        value::Tensor zeros,
        value::Tensor::AllocateOn(*stream_, value::DType::kUint64, std::move(shape)));
    CIPHERD_RETURN_IF_ERROR(stream_->FillAsync(zeros.data(), 0, zeros.bytes()));
    return zeros;
  }

  absl::StatusOr<Ciphertext> ZeroCiphertext(const EdgeState& state) {
    const ckks::ContextParameters& parameters = program_->spec.context;
    Ciphertext zero;
    zero.depth = state.depth;
    zero.scale = state.scale;
    CIPHERD_ASSIGN_OR_RETURN(zero.data,
                             Zeros({state.component_count, parameters.active_q_count(state.depth),
                                    parameters.ring_degree()}));
    return zero;
  }

  absl::StatusOr<Plaintext> ZeroPlaintext(const Operation& operation, value::ModulusBasis basis) {
    const ckks::ContextParameters& parameters = program_->spec.context;
    Plaintext zero;
    zero.depth = StateOf(operation.a).depth;
    zero.scale = program_->constant_scales.find(operation.name)->second;
    zero.basis = basis;
    const int limbs = parameters.active_q_count(zero.depth) +
                      (basis == value::ModulusBasis::kQP ? parameters.p_count() : 0);
    CIPHERD_ASSIGN_OR_RETURN(zero.data, Zeros({limbs, parameters.ring_degree()}));
    return zero;
  }

  // What enqueues `operation` once, on operands that it holds and the given keys.
  using Run = std::function<absl::StatusOr<Ciphertext>(const ckks::KeyTable& keys)>;
  absl::StatusOr<Run> Runner(const Operation& operation) {
    const ckks::Evaluator evaluator(*context_);
    runtime::Stream& stream = *stream_;
    CIPHERD_ASSIGN_OR_RETURN(const Ciphertext a, ZeroCiphertext(StateOf(operation.a)));
    switch (operation.kind) {
      case OperationKind::kAdd:
      case OperationKind::kSubtract:
      case OperationKind::kMultiply: {
        CIPHERD_ASSIGN_OR_RETURN(const Ciphertext b, ZeroCiphertext(StateOf(operation.b)));
        const OperationKind kind = operation.kind;
        return [=, &stream](const ckks::KeyTable&) {
          return kind == OperationKind::kAdd        ? evaluator.Add(a, b, stream)
                 : kind == OperationKind::kSubtract ? evaluator.Subtract(a, b, stream)
                                                    : evaluator.Multiply(a, b, stream);
        };
      }
      case OperationKind::kAddPlain:
      case OperationKind::kSubtractPlain:
      case OperationKind::kMultiplyPlain: {
        CIPHERD_ASSIGN_OR_RETURN(const Plaintext b,
                                 ZeroPlaintext(operation, value::ModulusBasis::kQ));
        const OperationKind kind = operation.kind;
        return [=, &stream](const ckks::KeyTable&) {
          return kind == OperationKind::kAddPlain        ? evaluator.AddPlain(a, b, stream)
                 : kind == OperationKind::kSubtractPlain ? evaluator.SubtractPlain(a, b, stream)
                                                         : evaluator.MultiplyPlain(a, b, stream);
        };
      }
      case OperationKind::kNegate:
        return [=, &stream](const ckks::KeyTable&) { return evaluator.Negate(a, stream); };
      case OperationKind::kSquare:
        return [=, &stream](const ckks::KeyTable&) { return evaluator.Square(a, stream); };
      case OperationKind::kRelinearize:
        return [=, &stream](const ckks::KeyTable& keys) {
          return evaluator.Relinearize(a, keys, stream);
        };
      case OperationKind::kRescale:
        return [=, &stream](const ckks::KeyTable&) { return evaluator.Rescale(a, stream); };
      case OperationKind::kDropToDepth:
        return [=, &stream, depth = operation.depth](const ckks::KeyTable&) {
          return evaluator.DropToDepth(a, depth, stream);
        };
      case OperationKind::kRotate:
        return [=, &stream, step = operation.step](const ckks::KeyTable& keys) {
          return evaluator.Rotate(a, step, keys, stream);
        };
      case OperationKind::kConjugate:
        return [=, &stream](const ckks::KeyTable& keys) {
          return evaluator.Conjugate(a, keys, stream);
        };
      case OperationKind::kLinearTransform: {
        const ckks::BsgsPlan& plan = program_->plans.find(operation.name)->second;
        std::map<int64_t, Plaintext> diagonals;
        for (const auto& [giant, terms] : plan.giants()) {
          for (const ckks::BsgsPlan::Term& term : terms) {
            CIPHERD_ASSIGN_OR_RETURN(diagonals[term.offset],
                                     ZeroPlaintext(operation, plan.diagonal_basis()));
          }
        }
        return [=, &stream, &plan](const ckks::KeyTable& keys) {
          return ckks::ApplyLinearTransform(evaluator, plan, diagonals, a, keys, stream);
        };
      }
    }
    return absl::InternalError("unknown kind of operation");
  }

  absl::StatusOr<double> Measure(const Operation& operation) {
    CIPHERD_ASSIGN_OR_RETURN(const auto run, Runner(operation));
    // Once without a graph: what is done at first use is done.
    CIPHERD_RETURN_IF_ERROR(run({program_->keys, key_tables_[0]}).status());
    CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
    CIPHERD_RETURN_IF_ERROR(stream_->BeginCapture(/*check_liveness=*/false));
    absl::Status enqueued;
    for (int i = 0; i < kOperationCopies && enqueued.ok(); ++i) {
      enqueued = run({program_->keys, key_tables_[i]}).status();
    }
    CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Graph> graph, stream_->EndCapture());
    CIPHERD_RETURN_IF_ERROR(enqueued);
    std::vector<double> seconds;
    for (int i = -1; i < options_.repetitions; ++i) {
      CIPHERD_RETURN_IF_ERROR(stream_->Record(*begin_));
      CIPHERD_RETURN_IF_ERROR(graph->Launch(*stream_));
      CIPHERD_RETURN_IF_ERROR(stream_->Record(*end_));
      CIPHERD_RETURN_IF_ERROR(end_->Synchronize());
      CIPHERD_ASSIGN_OR_RETURN(const double elapsed, end_->SecondsSince(*begin_));
      // The first one warms up.
      if (i >= 0) seconds.push_back(elapsed / kOperationCopies);
    }
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    return seconds[seconds.size() / 2];
  }

  std::shared_ptr<const programs::CheckedProgram> program_;
  CostOptions options_;
  std::unique_ptr<runtime::Stream> stream_;
  std::shared_ptr<runtime::Event> begin_;
  std::shared_ptr<runtime::Event> end_;
  std::unique_ptr<ckks::DeviceContext> context_;
  std::vector<std::shared_ptr<const programs::PlaceholderKey>> keys_;
  std::vector<value::Tensor> key_tables_;
  std::map<std::string, double> seconds_;
};

}  // namespace

double OperationCosts::total_seconds() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

absl::StatusOr<OperationCosts> MeasureOperations(
    const std::shared_ptr<const programs::CheckedProgram>& program, runtime::Device& device,
    const CostOptions& options) {
  CIPHERD_ASSIGN_OR_RETURN(Meter meter, Meter::Make(program, device, options));
  OperationCosts costs;
  for (const Operation& operation : program->spec.operations) {
    CIPHERD_ASSIGN_OR_RETURN(costs.seconds.emplace_back(), meter.Seconds(operation));
  }
  return costs;
}

}  // namespace cipherd::planning

#include "client/planning/model_planner.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/planning/local_program.h"
#include "core/base/status_macros.h"
#include "core/planning/circuit.h"
#include "core/planning/circuit_twin.h"
#include "core/planning/edge_magnitudes.h"
#include "core/planning/interval.h"
#include "core/planning/model_check.h"
#include "core/planning/model_lowering.h"

namespace cipherd::client {
namespace {

using planning::TensorBatch;

constexpr int64_t kMadeSampleCount = 64;
constexpr uint64_t kSampleSeed = 20210711;
// Plans that are tried until the measured error is small enough.
constexpr int kMostPlans = 3;

// Uniform within the bounds of each input; the first two lie at either end.
TensorBatch MakeSamples(const planning::Model& model) {
  std::mt19937_64 random(kSampleSeed);
  TensorBatch samples;
  for (const planning::ModelInput& input : model.inputs) {
    int64_t count = 1;
    for (const int64_t size : input.shape) count *= size;
    std::uniform_real_distribution<double> uniform(input.lower, input.upper);
    std::vector<std::vector<double>>& items = samples[input.name];
    items.assign(kMadeSampleCount, std::vector<double>(count));
    for (size_t k = 0; k < items.size(); ++k) {
      for (double& number : items[k]) {
        number = k == 0 ? input.lower : k == 1 ? input.upper : uniform(random);
      }
    }
  }
  return samples;
}

// The first `count` samples, inputs of one item each.
std::vector<planning::NamedNumbers> ItemsOf(const TensorBatch& samples, size_t count) {
  std::vector<planning::NamedNumbers> items(count);
  for (const auto& [name, tensors] : samples) {
    for (size_t k = 0; k < count; ++k) items[k][name] = tensors[k];
  }
  return items;
}

NamedVectors FirstOf(const TensorBatch& samples, size_t count) {
  NamedVectors vectors;
  for (const auto& [name, tensors] : samples) {
    vectors[name].assign(tensors.begin(), tensors.begin() + static_cast<int64_t>(count));
  }
  return vectors;
}

programs::MeasuredErrors ErrorsOf(const Vectors& actual,
                                  const std::vector<std::vector<double>>& expected) {
  programs::MeasuredErrors errors;
  double squares = 0;
  for (size_t k = 0; k < actual.size(); ++k) {
    for (size_t j = 0; j < actual[k].size(); ++j) {
      const double error = std::abs(actual[k][j] - expected[k][j]);
      errors.largest = std::max(errors.largest, error);
      squares += error * error;
      ++errors.element_count;
    }
  }
  errors.root_mean_square = std::sqrt(squares / static_cast<double>(errors.element_count));
  return errors;
}

// What `input` states and `items` hold, `margin` times as wide about its middle.
planning::Interval RangeOf(const planning::ModelInput& input,
                           const std::vector<std::vector<double>>& items, double margin) {
  planning::Interval range(input.lower, input.upper);
  for (const std::vector<double>& numbers : items) {
    for (const double number : numbers) {
      range = {std::min(range.lower, number), std::max(range.upper, number)};
    }
  }
  const double middle = range.lower / 2 + range.upper / 2;
  const double half_width = (range.upper / 2 - range.lower / 2) * margin;
  return {middle - half_width, middle + half_width};
}

class ModelPlanner {
 public:
  ModelPlanner(const planning::Model& model, TensorBatch samples, runtime::Device& device,
               const ModelPlanOptions& options)
      : model_(model), samples_(std::move(samples)), device_(device), options_(options) {}

  absl::StatusOr<PlannedModel> Run() {
    if (!(options_.magnitude_margin >= 1) || !std::isfinite(options_.magnitude_margin)) {
      return absl::InvalidArgumentError(
          absl::StrCat("magnitude_margin: expected at least 1, got ", options_.magnitude_margin));
    }
    if (options_.encrypted_sample_count < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "encrypted_sample_count: expected at least 1, got ", options_.encrypted_sample_count));
    }
    CIPHERD_RETURN_IF_ERROR(planning::CheckModel(model_).status());
    if (samples_.empty()) samples_ = MakeSamples(model_);
    CIPHERD_RETURN_IF_ERROR(Lower());
    planning::PlanOptions plan_options = options_.plan;
    CIPHERD_ASSIGN_OR_RETURN(PlannedModel best, PlanAndMeasure(plan_options));
    for (int i = 1; i < kMostPlans && !IsGoodEnough(best); ++i) {
      const double scale = best.program->spec.context.default_scale;
      const double excess = best.measured_error / options_.plan.max_error;
      plan_options.log2_scale =
          static_cast<int>(std::lround(std::log2(scale)) + std::ceil(std::log2(excess)) + 1);
      absl::StatusOr<PlannedModel> next = PlanAndMeasure(plan_options);
      // No context has room for it, or the scale is not what errors come from.
      if (!next.ok() || next->measured_error > best.measured_error / 2) break;
      best = *std::move(next);
    }
    return best;
  }

 private:
  bool IsGoodEnough(const PlannedModel& planned) const {
    return options_.plan.log2_scale || planned.measured_error <= options_.plan.max_error;
  }

  absl::Status CheckExpected() const {
    for (const planning::ModelOutput& output : model_.outputs) {
      const std::vector<std::vector<double>>& items = ExpectedOf(output.name);
      for (size_t k = 0; k < items.size(); ++k) {
        if (std::ranges::all_of(items[k], [](double number) { return std::isfinite(number); })) {
          continue;
        }
        return absl::InvalidArgumentError(
            absl::StrCat("model '", model_.name, "', output '", output.name,
                         "': expected finite numbers, got another one for sample ", k));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Lower() {
    CIPHERD_ASSIGN_OR_RETURN(expected_, planning::EvaluateModel(model_, samples_));
    CIPHERD_RETURN_IF_ERROR(CheckExpected());
    range_excesses_ = planning::FindRangeExcesses(model_, expected_);
    planning::LoweringOptions lowering;
    lowering.magnitudes = planning::MagnitudesOf(expected_, options_.magnitude_margin);
    CIPHERD_ASSIGN_OR_RETURN(circuit_, planning::LowerModel(model_, lowering));
    const std::vector<planning::NamedNumbers> items =
        ItemsOf(samples_, samples_.begin()->second.size());
    CIPHERD_ASSIGN_OR_RETURN(magnitudes_, planning::MeasureMagnitudes(circuit_, items));
    for (auto& [edge, magnitude] : magnitudes_) magnitude *= options_.magnitude_margin;
    return absl::OkStatus();
  }

  absl::StatusOr<PlannedModel> PlanAndMeasure(const planning::PlanOptions& options) {
    CIPHERD_ASSIGN_OR_RETURN(const planning::Plan plan,
                             planning::MakePlan(circuit_, magnitudes_, options));
    PlannedModel planned;
    planned.range_excesses = range_excesses_;
    planned.item_count = plan.item_count;
    planned.estimated_error = plan.estimated_error;
    CIPHERD_ASSIGN_OR_RETURN(planned.predicted, planning::MeasureOperations(plan.program, device_));
    CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<LocalProgram> local,
                             LocalProgram::Make(plan.program, device_));
    const size_t count = std::min(samples_.begin()->second.size(),
                                  static_cast<size_t>(options_.encrypted_sample_count));
    CIPHERD_ASSIGN_OR_RETURN(const NamedVectors outputs, local->Evaluate(FirstOf(samples_, count)));
    planned.sample_count = static_cast<int64_t>(count);
    planned.measured_seconds = local->replay_seconds();

    programs::ProgramSpec spec = plan.program->spec;
    StateRanges(spec);
    for (programs::ProgramOutput& output : spec.outputs) {
      output.errors = ErrorsOf(outputs.find(output.name)->second, ExpectedOf(output.name));
      planned.measured_error = std::max(planned.measured_error, output.errors.largest);
    }
    CIPHERD_ASSIGN_OR_RETURN(planned.program,
                             programs::CheckProgram(std::move(spec), *plan.program->constants,
                                                    ckks::SecurityPolicy::k128BitClassical));
    return planned;
  }

  void StateRanges(programs::ProgramSpec& spec) const {
    for (programs::ProgramInput& input : spec.inputs) {
      const auto stated =
          std::find_if(model_.inputs.begin(), model_.inputs.end(),
                       [&](const auto& candidate) { return candidate.name == input.name; });
      const planning::Interval range =
          RangeOf(*stated, samples_.find(input.name)->second, options_.magnitude_margin);
      input.lower = range.lower;
      input.upper = range.upper;
    }
  }

  const std::vector<std::vector<double>>& ExpectedOf(const std::string& output_name) const {
    const auto output =
        std::find_if(model_.outputs.begin(), model_.outputs.end(),
                     [&](const auto& candidate) { return candidate.name == output_name; });
    return expected_.find(output->edge)->second;
  }

  const planning::Model& model_;
  TensorBatch samples_;
  runtime::Device& device_;
  const ModelPlanOptions& options_;
  // Every edge of the model, in float64.
  TensorBatch expected_;
  std::vector<planning::RangeExcess> range_excesses_;
  planning::Circuit circuit_;
  planning::EdgeMagnitudes magnitudes_;
};

}  // namespace

absl::StatusOr<PlannedModel> PlanModel(const planning::Model& model, planning::TensorBatch samples,
                                       runtime::Device& device, const ModelPlanOptions& options) {
  return ModelPlanner(model, std::move(samples), device, options).Run();
}

}  // namespace cipherd::client

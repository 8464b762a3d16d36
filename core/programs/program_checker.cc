#include "core/programs/program_checker.h"

#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/refusal.h"
#include "core/base/status_macros.h"
#include "core/programs/names.h"
#include "core/programs/operation_rules.h"
#include "core/programs/slot_layout.h"

namespace cipherd::programs {
namespace {

using base::At;
using base::Named;
using base::Refuse;

class Checker {
 public:
  Checker(const ProgramSpec& spec, const Constants& constants)
      : spec_(spec), place_(Named("program", spec.name)), inference_(spec.context, constants) {}

  absl::Status Check() {
    if (spec_.inputs.empty() || spec_.operations.empty() || spec_.outputs.empty()) {
      return At(place_, Refuse("expected at least one input, operation and output, got ",
                               spec_.inputs.size(), ", ", spec_.operations.size(), " and ",
                               spec_.outputs.size()));
    }
    for (const ProgramInput& input : spec_.inputs) {
      CIPHERD_RETURN_IF_ERROR(AtPart("input", input.name, CheckInput(input)));
    }
    for (const Operation& operation : spec_.operations) {
      CIPHERD_RETURN_IF_ERROR(AtPart("operation", operation.name, CheckOperation(operation)));
    }
    for (const ProgramOutput& output : spec_.outputs) {
      CIPHERD_RETURN_IF_ERROR(AtPart("output", output.name, CheckOutput(output)));
    }
    return At(place_, CheckEveryEdgeIsRead());
  }

  internal::Inference& inference() { return inference_; }

 private:
  absl::Status AtPart(const char* kind, const std::string& name, const absl::Status& status) const {
    return At(absl::StrCat(place_, ", ", Named(kind, name)), status);
  }

  absl::Status AddEdge(const std::string& name, const EdgeState& state) {
    if (!inference_.edges.emplace(name, state).second) {
      return Refuse("name: another edge has it already");
    }
    return absl::OkStatus();
  }

  absl::Status CheckInput(const ProgramInput& input) {
    CIPHERD_RETURN_IF_ERROR(CheckEdgeName(input.name));
    if (input.depth < 0 || input.depth > spec_.context.max_depth()) {
      return Refuse("depth: expected 0 to ", spec_.context.max_depth(), ", got ", input.depth);
    }
    const double scale = input.scale == 0 ? spec_.context.default_scale : input.scale;
    CIPHERD_RETURN_IF_ERROR(internal::CheckScale(spec_.context, scale, input.depth));
    CIPHERD_RETURN_IF_ERROR(internal::CheckLayout(input.layout, spec_.context.slot_count()));
    if (input.states_range() &&
        !(std::isfinite(input.lower) && std::isfinite(input.upper) && input.lower < input.upper)) {
      return Refuse(
          "lower and upper: expected finite numbers, lower < upper, or 0 and 0 where they "
          "are not stated, got ",
          input.lower, " and ", input.upper);
    }
    return AddEdge(input.name, {.depth = input.depth, .scale = scale, .component_count = 2});
  }

  absl::Status CheckOperation(const Operation& operation) {
    CIPHERD_RETURN_IF_ERROR(CheckEdgeName(operation.name));
    for (const std::string_view operand : OperandsOf(operation)) {
      if (!inference_.edges.contains(operand)) {
        return Refuse(std::string(ToString(operation.kind)), " reads '",
                      absl::CHexEscape(std::string(operand)),
                      "', which is no input and no operation before it");
      }
      read_.insert(std::string(operand));
    }
    CIPHERD_ASSIGN_OR_RETURN(const EdgeState state, internal::ApplyRule(operation, inference_));
    operation_names_.insert(operation.name);
    return AddEdge(operation.name, state);
  }

  absl::Status CheckOutput(const ProgramOutput& output) {
    CIPHERD_RETURN_IF_ERROR(CheckEdgeName(output.name));
    if (!output_names_.insert(output.name).second) {
      return Refuse("name: another output has it already");
    }
    const auto edge = inference_.edges.find(output.edge);
    if (edge == inference_.edges.end()) {
      return Refuse("edge: '", absl::CHexEscape(output.edge), "' is no input and no operation");
    }
    // The tensors of outputs are storage of their own, no one else's.
    if (!operation_names_.contains(output.edge)) {
      return Refuse("edge: '", output.edge, "' is an input; expected an operation");
    }
    if (!output_edges_.insert(output.edge).second) {
      return Refuse("edge: '", output.edge, "' is another output already");
    }
    read_.insert(output.edge);
    CIPHERD_RETURN_IF_ERROR(internal::CheckLayout(output.layout, spec_.context.slot_count()));
    const EdgeState& state = edge->second;
    if (state.component_count != 2) {
      return Refuse("expected two components, got ", state.component_count, " of '", output.edge,
                    "'; relinearize '", output.edge, "' first");
    }
    if (!std::isfinite(output.magnitude_bound) || output.magnitude_bound < 0) {
      return Refuse("magnitude_bound: expected a finite number, 0 where it is not stated, got ",
                    output.magnitude_bound);
    }
    const MeasuredErrors& errors = output.errors;
    if (!(errors.largest >= 0 && errors.root_mean_square >= 0 && errors.element_count >= 0) ||
        !std::isfinite(errors.largest) || !std::isfinite(errors.root_mean_square)) {
      return Refuse("errors: expected finite numbers of at least 0, got ", errors.largest, ", ",
                    errors.root_mean_square, " and ", errors.element_count, " elements");
    }
    const double log_room = spec_.context.log_q(state.depth) - 1 - std::log2(state.scale);
    if (output.magnitude_bound > 0 && std::log2(output.magnitude_bound) >= log_room) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "magnitude_bound: expected below 2^%.2f, which the modulus holds of %s, got %g; rescale "
          "'%s', or use a larger base prime",
          log_room, internal::EdgeText(output.edge, state), output.magnitude_bound, output.edge));
    }
    return absl::OkStatus();
  }

  absl::Status CheckEveryEdgeIsRead() const {
    for (const auto& [name, state] : inference_.edges) {
      if (!read_.contains(name)) {
        return Refuse("edge '", name, "': nothing reads it; make it an output or leave it out");
      }
    }
    return absl::OkStatus();
  }

  const ProgramSpec& spec_;
  const std::string place_;
  internal::Inference inference_;
  std::set<std::string, std::less<>> read_;
  std::set<std::string> operation_names_;
  std::set<std::string> output_names_;
  std::set<std::string> output_edges_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const CheckedProgram>> CheckProgram(ProgramSpec spec,
                                                                   Constants constants,
                                                                   ckks::SecurityPolicy policy) {
  const std::string place = Named("program", spec.name);
  CIPHERD_RETURN_IF_ERROR(At(place, CheckProgramName(spec.name)));
  if (spec.version < 1) {
    return At(place, Refuse("version: expected at least 1, got ", spec.version));
  }
  absl::StatusOr<std::shared_ptr<const ckks::Context>> context =
      ckks::Context::Create(spec.context, policy);
  if (!context.ok()) {
    return At(place, Refuse("context: ", std::string(context.status().message())));
  }
  Checker checker(spec, constants);
  CIPHERD_RETURN_IF_ERROR(checker.Check());

  internal::Inference& inference = checker.inference();
  auto checked = std::make_shared<CheckedProgram>();
  checked->context = *std::move(context);
  checked->edges = std::move(inference.edges);
  checked->keys = ckks::KeyLayout(std::move(inference.keys));
  checked->plans = std::move(inference.plans);
  checked->constant_scales = std::move(inference.constant_scales);
  checked->constants = std::make_shared<const Constants>(std::move(constants));
  checked->spec = std::move(spec);
  return std::shared_ptr<const CheckedProgram>(std::move(checked));
}

}  // namespace cipherd::programs

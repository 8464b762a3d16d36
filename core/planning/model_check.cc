#include "core/planning/model_check.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/refusal.h"
#include "core/base/status_macros.h"
#include "core/planning/model_rules.h"
#include "core/planning/tensor_shapes.h"
#include "core/programs/names.h"

namespace cipherd::planning {
namespace {

using base::At;
using base::Named;
using base::Refuse;

class Checker {
 public:
  explicit Checker(const Model& model) : model_(model), place_(Named("model", model.name)) {}

  absl::StatusOr<ModelShapes> Check() {
    CIPHERD_RETURN_IF_ERROR(At(place_, CheckModelItself()));
    for (const ModelInput& input : model_.inputs) {
      CIPHERD_RETURN_IF_ERROR(AtPart("input", input.name, CheckInput(input)));
    }
    for (const ModelOperation& operation : model_.operations) {
      CIPHERD_RETURN_IF_ERROR(AtPart("operation", operation.name, CheckOperation(operation)));
    }
    for (const ModelOutput& output : model_.outputs) {
      CIPHERD_RETURN_IF_ERROR(AtPart("output", output.name, CheckOutput(output)));
    }
    for (const auto& [name, shape] : shapes_) {
      if (read_.contains(name)) continue;
      return At(place_,
                Refuse("edge '", name, "': nothing reads it; make it an output or leave it out"));
    }
    return std::move(shapes_);
  }

 private:
  absl::Status AtPart(const char* kind, const std::string& name, const absl::Status& status) const {
    return At(absl::StrCat(place_, ", ", Named(kind, name)), status);
  }

  absl::Status CheckModelItself() const {
    CIPHERD_RETURN_IF_ERROR(programs::CheckProgramName(model_.name));
    if (model_.version < 1) return Refuse("version: expected at least 1, got ", model_.version);
    if (model_.inputs.empty()) return Refuse("inputs: expected at least one, got none");
    if (model_.operations.empty()) return Refuse("operations: expected at least one, got none");
    if (model_.outputs.empty()) return Refuse("outputs: expected at least one, got none");
    return absl::OkStatus();
  }

  absl::Status AddEdge(const std::string& name, const Shape& shape) {
    if (!ElementCount(shape).has_value()) {
      return Refuse("expected 1 to ", kMaxElements,
                    " numbers, what a ciphertext of the largest ring carries, got shape ",
                    ToString(shape));
    }
    if (shapes_.emplace(name, shape).second) return absl::OkStatus();
    return Refuse("name: another input or operation has it already");
  }

  absl::Status CheckInput(const ModelInput& input) {
    CIPHERD_RETURN_IF_ERROR(programs::CheckEdgeName(input.name));
    if (!std::isfinite(input.lower) || !std::isfinite(input.upper) || input.lower > input.upper) {
      return Refuse("lower, upper: expected bounds of the values, got [", input.lower, ", ",
                    input.upper, "]");
    }
    return AddEdge(input.name, input.shape);
  }

  absl::Status CheckOperation(const ModelOperation& operation) {
    CIPHERD_RETURN_IF_ERROR(programs::CheckEdgeName(operation.name));
    for (std::string_view operand : OperandsOf(operation)) {
      if (!shapes_.contains(operand)) {
        return Refuse("operand '", absl::CHexEscape(std::string(operand)),
                      "': no input and no operation before this one has that name");
      }
      read_.insert(std::string(operand));
    }
    const absl::StatusOr<Shape> shape =
        internal::ApplyShapeRule(operation, shapes_, model_.constants);
    CIPHERD_RETURN_IF_ERROR(At(std::string(ToString(operation.kind)), shape.status()));
    operation_names_.insert(operation.name);
    return AddEdge(operation.name, *shape);
  }

  absl::Status CheckOutput(const ModelOutput& output) {
    CIPHERD_RETURN_IF_ERROR(programs::CheckEdgeName(output.name));
    if (!output_names_.insert(output.name).second) {
      return Refuse("name: another output has it already");
    }
    if (!operation_names_.contains(output.edge)) {
      return Refuse("edge: expected the name of an operation, got '", absl::CHexEscape(output.edge),
                    "'");
    }
    read_.insert(output.edge);
    return absl::OkStatus();
  }

  const Model& model_;
  const std::string place_;
  ModelShapes shapes_;
  std::set<std::string> operation_names_;
  std::set<std::string> output_names_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace

absl::StatusOr<ModelShapes> CheckModel(const Model& model) { return Checker(model).Check(); }

}  // namespace cipherd::planning

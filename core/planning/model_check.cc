#include "core/planning/model_check.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/planning/model_rules.h"
#include "core/planning/tensor_shapes.h"

namespace cipherd::planning {
namespace {

// A circuit and a program name what they add to an edge after it: their names have 64.
constexpr size_t kMaxEdgeNameBytes = 40;
constexpr size_t kMaxModelNameBytes = 64;

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

std::string Named(const char* kind, const std::string& name) {
  return absl::StrCat(kind, " '", absl::CHexEscape(name), "'");
}

absl::Status At(const std::string& place, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(place, ": ", std::string(status.message())));
}

// [a-z0-9_-]{1,64}; edges [A-Za-z0-9_.-]{1,40}.
absl::Status CheckName(const std::string& name, bool is_edge) {
  const auto is_lawful = [is_edge](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           (is_edge && ((c >= 'A' && c <= 'Z') || c == '.'));
  };
  const size_t most = is_edge ? kMaxEdgeNameBytes : kMaxModelNameBytes;
  if (!name.empty() && name.size() <= most && std::all_of(name.begin(), name.end(), is_lawful)) {
    return absl::OkStatus();
  }
  return Refuse("name: expected 1 to ", most, " of ", is_edge ? "A-Z . " : "", "a-z 0-9 _ -, got ",
                name.size());
}

class Checker {
 public:
  explicit Checker(const Model& model) : model_(model) {}

  absl::Status Check() {
    CIPHERD_RETURN_IF_ERROR(CheckName(model_.name, /*is_edge=*/false));
    if (model_.version < 1) return Refuse("version: expected at least 1, got ", model_.version);
    if (model_.inputs.empty()) return Refuse("inputs: expected at least one, got none");
    if (model_.operations.empty()) return Refuse("operations: expected at least one, got none");
    if (model_.outputs.empty()) return Refuse("outputs: expected at least one, got none");
    for (const ModelInput& input : model_.inputs) {
      CIPHERD_RETURN_IF_ERROR(At(Named("input", input.name), CheckInput(input)));
    }
    for (const ModelOperation& operation : model_.operations) {
      CIPHERD_RETURN_IF_ERROR(At(Named("operation", operation.name), CheckOperation(operation)));
    }
    for (const ModelOutput& output : model_.outputs) {
      CIPHERD_RETURN_IF_ERROR(At(Named("output", output.name), CheckOutput(output)));
    }
    for (const auto& [name, shape] : shapes_) {
      if (!read_.contains(name)) {
        return Refuse("edge '", name, "': nothing reads it; make it an output or leave it out");
      }
    }
    return absl::OkStatus();
  }

  ModelShapes TakeShapes() { return std::move(shapes_); }

 private:
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
    CIPHERD_RETURN_IF_ERROR(CheckName(input.name, /*is_edge=*/true));
    if (!std::isfinite(input.lower) || !std::isfinite(input.upper) || input.lower > input.upper) {
      return Refuse("lower, upper: expected bounds of the values, got [", input.lower, ", ",
                    input.upper, "]");
    }
    return AddEdge(input.name, input.shape);
  }

  absl::Status CheckOperation(const ModelOperation& operation) {
    CIPHERD_RETURN_IF_ERROR(CheckName(operation.name, /*is_edge=*/true));
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
    CIPHERD_RETURN_IF_ERROR(CheckName(output.name, /*is_edge=*/true));
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
  ModelShapes shapes_;
  std::set<std::string> operation_names_;
  std::set<std::string> output_names_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace

absl::StatusOr<ModelShapes> CheckModel(const Model& model) {
  Checker checker(model);
  CIPHERD_RETURN_IF_ERROR(At(Named("model", model.name), checker.Check()));
  return checker.TakeShapes();
}

}  // namespace cipherd::planning

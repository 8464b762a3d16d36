#include "core/planning/circuit_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/refusal.h"
#include "core/base/status_macros.h"
#include "core/programs/names.h"
#include "core/value/tensor.h"

namespace cipherd::planning {
namespace {

using base::At;
using base::Named;
using base::Refuse;

bool IsPowerOfTwo(int64_t number) {
  return number > 0 && std::has_single_bit(static_cast<uint64_t>(number));
}

// "float64 [4, 16]".
std::string TypeText(const value::Tensor& tensor) {
  return absl::StrCat(std::string(value::ToString(tensor.dtype())), " [",
                      absl::StrJoin(tensor.shape(), ", "), "]");
}

absl::Status CheckMagnitudeBound(double bound) {
  if (std::isfinite(bound) && bound > 0) return absl::OkStatus();
  return Refuse("magnitude_bound: expected a finite number above 0, got ", bound);
}

class Checker {
 public:
  explicit Checker(const Circuit& circuit)
      : circuit_(circuit), place_(Named("circuit", circuit.name)) {}

  absl::Status Check() {
    CIPHERD_RETURN_IF_ERROR(At(place_, CheckHead()));
    for (const CircuitInput& input : circuit_.inputs) {
      CIPHERD_RETURN_IF_ERROR(AtPart("input", input.name, CheckInput(input)));
    }
    for (const CircuitOperation& operation : circuit_.operations) {
      CIPHERD_RETURN_IF_ERROR(AtPart("operation", operation.name, CheckOperation(operation)));
    }
    for (const CircuitOutput& output : circuit_.outputs) {
      CIPHERD_RETURN_IF_ERROR(AtPart("output", output.name, CheckOutput(output)));
    }
    return At(place_, CheckEveryEdgeIsRead());
  }

 private:
  absl::Status AtPart(const char* kind, const std::string& name, const absl::Status& status) const {
    return At(absl::StrCat(place_, ", ", Named(kind, name)), status);
  }

  absl::Status CheckHead() const {
    CIPHERD_RETURN_IF_ERROR(programs::CheckProgramName(circuit_.name));
    if (circuit_.version < 1) {
      return Refuse("version: expected at least 1, got ", circuit_.version);
    }
    if (!IsPowerOfTwo(circuit_.position_count)) {
      return Refuse("position_count: expected a power of two, got ", circuit_.position_count);
    }
    if (circuit_.inputs.empty() || circuit_.operations.empty() || circuit_.outputs.empty()) {
      return Refuse("expected at least one input, operation and output, got ",
                    circuit_.inputs.size(), ", ", circuit_.operations.size(), " and ",
                    circuit_.outputs.size());
    }
    return absl::OkStatus();
  }

  absl::Status AddEdge(const std::string& name) {
    if (!edges_.insert(name).second) return Refuse("name: another edge has it already");
    return absl::OkStatus();
  }

  absl::Status CheckInput(const CircuitInput& input) {
    CIPHERD_RETURN_IF_ERROR(programs::CheckEdgeName(input.name));
    if (input.element_count < 1 || input.element_count > circuit_.position_count) {
      return Refuse("element_count: expected 1 to ", circuit_.position_count,
                    ", the position_count, got ", input.element_count);
    }
    CIPHERD_RETURN_IF_ERROR(CheckMagnitudeBound(input.magnitude_bound));
    return AddEdge(input.name);
  }

  absl::Status CheckOperation(const CircuitOperation& operation) {
    CIPHERD_RETURN_IF_ERROR(programs::CheckEdgeName(operation.name));
    for (const std::string_view operand : OperandsOf(operation)) {
      if (!edges_.contains(operand)) {
        return Refuse(std::string(ToString(operation.kind)), " reads '",
                      absl::CHexEscape(std::string(operand)),
                      "', which is no input and no operation before it");
      }
      read_.insert(std::string(operand));
    }
    switch (operation.kind) {
      case CircuitKind::kAddPlain:
      case CircuitKind::kSubtractPlain:
      case CircuitKind::kMultiplyPlain:
        CIPHERD_RETURN_IF_ERROR(CheckNumbers(operation, /*rank=*/1).status());
        break;
      case CircuitKind::kLinearTransform:
        CIPHERD_RETURN_IF_ERROR(CheckDiagonals(operation));
        break;
      default:
        break;
    }
    made_.insert(operation.name);
    return AddEdge(operation.name);
  }

  absl::StatusOr<const value::Tensor*> Find(const CircuitOperation& operation,
                                            const std::string& constant) const {
    const auto found = circuit_.constants.find(constant);
    if (found != circuit_.constants.end()) return &found->second;
    return Refuse(std::string(ToString(operation.kind)), " reads constant '",
                  absl::CHexEscape(constant), "', which the circuit does not have");
  }

  // A float64 constant of `rank` dimensions whose last one is a period.
  absl::StatusOr<const value::Tensor*> CheckNumbers(const CircuitOperation& operation,
                                                    size_t rank) const {
    CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* tensor, Find(operation, operation.constant));
    const std::string place = Named("constant", operation.constant);
    if (tensor->dtype() != value::DType::kFloat64 || tensor->shape().size() != rank) {
      return At(place, Refuse("expected float64 ", rank == 1 ? "[length]" : "[count, length]",
                              ", got ", TypeText(*tensor)));
    }
    const int64_t length = tensor->shape().back();
    if (!IsPowerOfTwo(length) || length > circuit_.position_count) {
      const bool can_grow = length > 0 && length < circuit_.position_count;
      return At(place,
                Refuse("expected a length that is a power of two and at most ",
                       circuit_.position_count, ", got ", length,
                       can_grow ? absl::StrCat("; fill up with zeros to ", circuit_.position_count)
                                : ""));
    }
    const double* numbers = tensor->data_as<const double>();
    const double* last = numbers + tensor->element_count();
    const double* odd = std::find_if(numbers, last, [](double x) { return !std::isfinite(x); });
    if (odd != last) return At(place, Refuse("expected finite numbers, got ", *odd));
    return tensor;
  }

  absl::Status CheckDiagonals(const CircuitOperation& operation) const {
    CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* diagonals, CheckNumbers(operation, /*rank=*/2));
    CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* offsets, Find(operation, operation.offsets));
    const std::string place = Named("constant", operation.offsets);
    const int64_t count = diagonals->shape()[0];
    if (count < 1) {
      return At(Named("constant", operation.constant), Refuse("expected at least one diagonal"));
    }
    if (offsets->dtype() != value::DType::kInt64 ||
        offsets->shape() != std::vector<int64_t>{count}) {
      return At(place, Refuse("expected int64 [", count, "], one for each row of '",
                              operation.constant, "', got ", TypeText(*offsets)));
    }
    std::set<int64_t> seen;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t offset = offsets->data_as<const int64_t>()[i];
      if (offset < 0 || offset >= circuit_.position_count) {
        return At(place, Refuse("expected offsets in [0, ", circuit_.position_count, "), got ",
                                offset, "; take them modulo the position_count"));
      }
      if (!seen.insert(offset).second) {
        return At(place, Refuse("offset ", offset, " is given twice; add its diagonals up"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckOutput(const CircuitOutput& output) {
    CIPHERD_RETURN_IF_ERROR(programs::CheckEdgeName(output.name));
    if (!output_names_.insert(output.name).second) {
      return Refuse("name: another output has it already");
    }
    if (!edges_.contains(output.edge)) {
      return Refuse("edge: '", absl::CHexEscape(output.edge), "' is no input and no operation");
    }
    if (!made_.contains(output.edge)) {
      return Refuse("edge: '", output.edge, "' is an input; expected an operation");
    }
    if (!output_edges_.insert(output.edge).second) {
      return Refuse("edge: '", output.edge, "' is another output already");
    }
    read_.insert(output.edge);
    // Compared by division: both factors come from callers.
    if (output.element_count < 1 || output.element_stride < 1 ||
        output.element_count - 1 > (circuit_.position_count - 1) / output.element_stride) {
      return Refuse("expected elements at positions below ", circuit_.position_count,
                    " with a stride of at least 1, got ", output.element_count, " elements ",
                    output.element_stride, " apart");
    }
    return CheckMagnitudeBound(output.magnitude_bound);
  }

  absl::Status CheckEveryEdgeIsRead() const {
    for (const std::string& edge : edges_) {
      if (!read_.contains(edge)) {
        return Refuse("edge '", edge, "': nothing reads it; make it an output or leave it out");
      }
    }
    return absl::OkStatus();
  }

  const Circuit& circuit_;
  const std::string place_;
  // Inputs and operations so far; of these, the operations; and what is read.
  std::set<std::string, std::less<>> edges_;
  std::set<std::string> made_;
  std::set<std::string> read_;
  std::set<std::string> output_names_;
  std::set<std::string> output_edges_;
};

}  // namespace

absl::Status CheckCircuit(const Circuit& circuit) { return Checker(circuit).Check(); }

}  // namespace cipherd::planning

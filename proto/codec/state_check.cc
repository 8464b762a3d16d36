#include "proto/codec/state_check.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/tensor_admission.h"

namespace cipherd::codec::internal {
namespace {

using value::ValueType;

class StateCheck {
 public:
  StateCheck(ValueType type, const value::ValueMetadata& metadata, const TensorPlan& data,
             const ValueSchema& schema, const KnownContext& context, std::string_view path)
      : type_(type),
        metadata_(metadata),
        data_(data),
        schema_(schema),
        context_(context),
        path_(path) {}

  absl::Status Run() {
    CIPHERD_RETURN_IF_ERROR(CheckRingAndPrimes());
    CIPHERD_RETURN_IF_ERROR(CheckDepth());
    CIPHERD_RETURN_IF_ERROR(CheckLeadingAxes());
    CIPHERD_RETURN_IF_ERROR(CheckByteCount(data_, /*least_dimension=*/1));
    CIPHERD_RETURN_IF_ERROR(CheckFlags());
    CIPHERD_RETURN_IF_ERROR(CheckScale());
    return CheckKey();
  }

 private:
  int64_t dim(int axis) const { return data_.shape[static_cast<size_t>(axis)]; }
  int rank() const { return static_cast<int>(data_.shape.size()); }
  const ckks::ContextParameters& parameters() const { return context_.parameters(); }
  absl::Status ShapeMismatch(std::string_view expected) const {
    return Mismatch(data_.path, ".shape", expected, ListOf(data_.shape));
  }

  absl::Status CheckRingAndPrimes() {
    const int64_t last = dim(rank() - 1);
    if (schema_.slots) {
      if (last < 1 || last > parameters().slot_count()) {
        return ShapeMismatch(absl::StrCat("a last dimension of 1 to ", parameters().slot_count()));
      }
    } else if (last != parameters().ring_degree()) {
      return ShapeMismatch(
          absl::StrCat("a last dimension of ", parameters().ring_degree(), " (the ring degree)"));
    }
    if (!schema_.is_residues()) return absl::OkStatus();

    const std::vector<int64_t>& ids = *metadata_.prime_ids;
    const int64_t prime_count = parameters().q_count() + parameters().p_count();
    if (ids.empty()) return Mismatch(path_, ".prime_ids", "at least 1", "none");
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= prime_count || (i > 0 && ids[i] <= ids[i - 1])) {
        return Mismatch(path_, ".prime_ids",
                        absl::StrCat("ascending ids from 0 to ", prime_count - 1), ListOf(ids));
      }
    }
    if (dim(rank() - 2) != static_cast<int64_t>(ids.size())) {
      return ShapeMismatch(absl::StrCat(ids.size(), " limbs, one for each of prime_ids"));
    }
    if (schema_.limbs == LimbPrimes::kAtDepth) return absl::OkStatus();
    return CheckPrimeIds(parameters().ActivePrimeIds(0, schema_.limbs == LimbPrimes::kQP));
  }

  absl::Status CheckPrimeIds(const std::vector<int64_t>& expected) {
    if (*metadata_.prime_ids == expected) return absl::OkStatus();
    return Mismatch(path_, ".prime_ids", ListOf(expected), ListOf(*metadata_.prime_ids));
  }

  absl::Status CheckDepth() {
    if (schema_.limbs != LimbPrimes::kAtDepth) return absl::OkStatus();
    const int64_t depth = *metadata_.depth;
    if (depth < 0 || depth > parameters().max_depth()) {
      return Mismatch(path_, ".depth", absl::StrCat("0 to ", parameters().max_depth()),
                      absl::StrCat(depth));
    }
    return CheckPrimeIds(parameters().ActivePrimeIds(static_cast<int>(depth), false));
  }

  absl::Status CheckLeadingAxes() {
    const auto digits = static_cast<int64_t>(parameters().digits.size());
    switch (schema_.leading) {
      case LeadingAxes::kBatch:
        return absl::OkStatus();
      case LeadingAxes::kComponentBatch:
        if (dim(0) == 2 || dim(0) == 3) return absl::OkStatus();
        return ShapeMismatch("2 or 3 components");
      case LeadingAxes::kPair:
        if (dim(0) == 2) return absl::OkStatus();
        return ShapeMismatch("2 components");
      case LeadingAxes::kDigitPair:
        if (dim(0) == digits && dim(1) == 2) return absl::OkStatus();
        return ShapeMismatch(absl::StrCat(digits, " digits of 2 components"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckFlags() {
    if (!schema_.is_residues()) return absl::OkStatus();
    const bool with_p = schema_.limbs == LimbPrimes::kQP;
    const auto basis = with_p ? value::ModulusBasis::kQP : value::ModulusBasis::kQ;
    if (*metadata_.basis != basis) {
      return Mismatch(path_, ".basis", value::ToString(basis), ToString(*metadata_.basis));
    }
    if (schema_.domain.has_value() && metadata_.domain != schema_.domain) {
      return Mismatch(path_, ".domain", value::ToString(*schema_.domain),
                      ToString(*metadata_.domain));
    }
    constexpr auto kStandard = value::ResidueRepresentation::kStandard;
    if (*metadata_.residue_representation != kStandard) {
      return Mismatch(path_, ".residue_representation", value::ToString(kStandard),
                      ToString(*metadata_.residue_representation));
    }
    return absl::OkStatus();
  }

  absl::Status CheckScale() {
    if (!metadata_.scale.has_value()) return absl::OkStatus();
    const double scale = *metadata_.scale;
    const int depth = static_cast<int>(metadata_.depth.value_or(0));
    const double log2_bound = parameters().log_q(depth);
    if (std::isfinite(scale) && scale >= 1 && std::log2(scale) < log2_bound) {
      return absl::OkStatus();
    }
    return Mismatch(path_, ".scale",
                    absl::StrFormat("from 1 to below 2^%.2f, the active modulus", log2_bound),
                    absl::StrFormat("%.17g", scale));
  }

  absl::Status CheckKey() {
    if (schema_.leading != LeadingAxes::kDigitPair) return absl::OkStatus();
    const auto digits = static_cast<int64_t>(parameters().digits.size());
    if (metadata_.digit_count != digits) {
      return Mismatch(path_, ".digit_count", absl::StrCat(digits),
                      absl::StrCat(*metadata_.digit_count));
    }
    if (type_ == ValueType::kRotationKey) {
      const int64_t step = *metadata_.rotation_step;
      if (step < 1 || step >= parameters().slot_count()) {
        return Mismatch(path_, ".rotation_step",
                        absl::StrCat("1 to ", parameters().slot_count() - 1), absl::StrCat(step));
      }
      return CheckGaloisElement(parameters().RotationElement(step));
    }
    if (type_ == ValueType::kConjugationKey) {
      return CheckGaloisElement(parameters().ConjugationElement());
    }
    return absl::OkStatus();
  }

  absl::Status CheckGaloisElement(int64_t expected) {
    const int64_t element = *metadata_.galois_element;
    const int64_t bound = 2 * parameters().ring_degree();
    if (element < 1 || element >= bound || element % 2 == 0) {
      return Mismatch(path_, ".galois_element", absl::StrCat("an odd number below ", bound),
                      absl::StrCat(element));
    }
    if (element == expected) return absl::OkStatus();
    return Mismatch(path_, ".galois_element", absl::StrCat(expected), absl::StrCat(element));
  }

  const ValueType type_;
  const value::ValueMetadata& metadata_;
  const TensorPlan& data_;
  const ValueSchema& schema_;
  const KnownContext& context_;
  const std::string_view path_;
};

}  // namespace

absl::Status CheckState(ValueType type, const value::ValueMetadata& metadata,
                        const TensorPlan& data, const ValueSchema& schema,
                        const KnownContext& context, std::string_view path) {
  return StateCheck(type, metadata, data, schema, context, path).Run();
}

}  // namespace cipherd::codec::internal

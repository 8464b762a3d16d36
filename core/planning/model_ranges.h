// Whether the polynomials of a model get what they were fitted for.
//
//   CIPHERD_ASSIGN_OR_RETURN(const TensorBatch values, EvaluateModel(model, samples));
//   for (const RangeExcess& excess : FindRangeExcesses(model, values)) LOG(excess.ToString());
//   // operation 'sigmoid': 3 of 640 arguments are outside [-8, 8], where the polynomial is fitted:
//   // they reach from -11.2 to 6.5; fit it over a larger range, or scale its argument
//
// A polynomial that stands for a function does so on its range only, and is far off soon behind its
// ends: a result is then wrong however exact the encrypted evaluation is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/planning/model.h"
#include "core/planning/model_twin.h"

namespace cipherd::planning {

struct RangeExcess {
  std::string operation;
  // Its polynomial's.
  double lower = 0;
  double upper = 0;
  // Over the samples.
  double least_argument = 0;
  double largest_argument = 0;
  int64_t outside_count = 0;
  int64_t argument_count = 0;

  // As above.
  std::string ToString() const;
};

// Those of polynomials of degree 2 or more some of whose arguments are outside by more than
// roundings, in the model's order. `values` are what EvaluateModel returned. Thread-safe.
std::vector<RangeExcess> FindRangeExcesses(const Model& model, const TensorBatch& values);

}  // namespace cipherd::planning

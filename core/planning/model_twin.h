// A model in float64: what its circuit must agree with, and how large its numbers become.
//
//   TensorBatch samples = {{"x", {{0.1, 0.2}, {0.3, 0.4}}}};   // two items
//   CIPHERD_ASSIGN_OR_RETURN(TensorBatch values, EvaluateModel(model, samples));
//   values.at("logits")[1]                                     // of the second item
//
// Written operation by operation, from their definitions in model.h: it shares nothing with the
// lowering. All functions require a model that CheckModel accepts, and are thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/planning/model.h"

namespace cipherd::planning {

// By name of an edge: for each item its tensor, row-major.
using TensorBatch = std::map<std::string, std::vector<std::vector<double>>, std::less<>>;

// Every edge of the model, from its inputs. InvalidArgument where an input is missing, their item
// counts differ, or a tensor is not of its input's size.
absl::StatusOr<TensorBatch> EvaluateModel(const Model& model, const TensorBatch& inputs);

// By name of an edge: the largest magnitude of its numbers.
using Magnitudes = std::map<std::string, double, std::less<>>;

// Of what EvaluateModel returned, times `margin`, since others come later.
Magnitudes MagnitudesOf(const TensorBatch& values, double margin);

// Over these samples, the same. Errors of EvaluateModel.
absl::StatusOr<Magnitudes> MeasureMagnitudes(const Model& model, const TensorBatch& samples,
                                             double margin);

// From the bounds of the inputs by interval arithmetic, number by number: it holds for whatever
// keeps the bounds, and is often much too large after several layers. A polynomial is taken to get
// what it is meant for: an operand outside [lower, upper] counts as cut off there.
Magnitudes BoundMagnitudes(const Model& model);

}  // namespace cipherd::planning

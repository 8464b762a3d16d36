// From a circuit to the schedule of a program: which operations run, at which depth and scale.
//
//   const DepthPlan depths = PlanDepths(circuit);
//   CIPHERD_ASSIGN_OR_RETURN(PlacedCircuit placed, PlaceCircuit(circuit, depths, context, spans));
//
// Every value at depth d has the one scale CanonicalScales(context)[d], so that any two of a depth
// can be summed: products of two of them have its square, and so have products by constants, which
// are encoded at what is missing (Operation::result_scale). A value that is needed at a greater
// depth is multiplied by one there. No rounding is left to chance, and no precision is lost to
// scales that only nearly meet (one scale a level: Kim, Papadimitriou, Polyakov, "Approximate
// Homomorphic Encryption with Reduced Approximation Error", CT-RSA 2022).
//
// A product is rescaled, and relinearized before that, when it is first read by what is no sum: so
// a sum of products is relinearized and rescaled once. What an output takes comes right behind its
// operation, so that the output is there while later ones are computed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/context_parameters.h"
#include "core/planning/circuit.h"
#include "core/planning/depth_plan.h"
#include "core/programs/constants.h"
#include "core/programs/program_spec.h"

namespace cipherd::planning {

// By depth, 0 to max_depth: the default scale, then the square of the one before over the primes
// that the rescale drops, computed in binary64 as the checker of programs does.
std::vector<double> CanonicalScales(const ckks::ContextParameters& context);

// Baby spans of linear transforms in positions, by operation name; absent or 0: left to the plan of
// the transform.
using BabySpans = std::map<std::string, int64_t, std::less<>>;

// A program's parts; its context, name and constants file are the caller's.
struct PlacedCircuit {
  std::vector<programs::ProgramInput> inputs;
  std::vector<programs::Operation> operations;
  std::vector<programs::ProgramOutput> outputs;
  programs::Constants constants;
};

// `circuit` has passed CheckCircuit; `depths` are its own. InvalidArgument where the context has
// fewer slots than the circuit has positions, or fewer depths. Operations of the circuit keep their
// names; what comes between gets theirs with a suffix: "_unscaled" (a product before its rescale),
// "_relinearized", "_dropped_D" and "_lifted_D" (the value at depth D, at its own scale and at that
// of D).
absl::StatusOr<PlacedCircuit> PlaceCircuit(const Circuit& circuit, const DepthPlan& depths,
                                           const ckks::ContextParameters& context,
                                           const BabySpans& spans);

}  // namespace cipherd::planning

// How large the values of a circuit's edges become.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/planning/circuit.h"
#include "core/planning/circuit_twin.h"

namespace cipherd::planning {

// The largest magnitude of any position, by edge; at least 2^-20.
using EdgeMagnitudes = std::map<std::string, double, std::less<>>;

// Over `samples`, each the elements of every input of one item. Requires a circuit that
// CheckCircuit accepts. InvalidArgument for no samples, or one that does not fit the inputs.
absl::StatusOr<EdgeMagnitudes> MeasureMagnitudes(const Circuit& circuit,
                                                 std::span<const NamedNumbers> samples);

// Samples where there are none: elements uniform in [-bound, bound] of each input, from `seed`, and
// before them two whose elements are all at one end or the other.
std::vector<NamedNumbers> RandomSamples(const Circuit& circuit, int64_t count, uint64_t seed);

}  // namespace cipherd::planning

#include "core/planning/edge_magnitudes.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/status/status.h"
#include "core/base/status_macros.h"

namespace cipherd::planning {
namespace {

constexpr double kLeastMagnitude = 0x1p-20;

}  // namespace

absl::StatusOr<EdgeMagnitudes> MeasureMagnitudes(const Circuit& circuit,
                                                 std::span<const NamedNumbers> samples) {
  if (samples.empty()) {
    return absl::InvalidArgumentError("samples: expected at least one, got none");
  }
  EdgeMagnitudes magnitudes;
  for (const NamedNumbers& sample : samples) {
    CIPHERD_ASSIGN_OR_RETURN(const NamedNumbers edges, EvaluateCircuitEdges(circuit, sample));
    for (const auto& [edge, positions] : edges) {
      double& largest = magnitudes.try_emplace(edge, kLeastMagnitude).first->second;
      for (const double number : positions) largest = std::max(largest, std::abs(number));
    }
  }
  return magnitudes;
}

std::vector<NamedNumbers> RandomSamples(const Circuit& circuit, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<NamedNumbers> samples(count + 2);
  for (size_t i = 0; i < samples.size(); ++i) {
    for (const CircuitInput& input : circuit.inputs) {
      std::vector<double>& elements = samples[i][input.name];
      for (int64_t j = 0; j < input.element_count; ++j) {
        const double unit = i == 0 ? 1 : i == 1 ? -1 : uniform(random);
        elements.push_back(input.magnitude_bound * unit);
      }
    }
  }
  return samples;
}

}  // namespace cipherd::planning

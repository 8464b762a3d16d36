#include "core/planning/span_choice.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/ckks/bsgs_plan.h"

namespace cipherd::planning {
namespace {

// One way to split a transform.
struct Split {
  int64_t span = 1;
  double cost = 0;
  std::vector<int64_t> steps;
};

struct Transform {
  std::string name;
  // Ascending by cost; those within the slack of the first.
  std::span<const Split> splits;
  size_t chosen = 0;
};

Split SplitBy(const std::vector<int64_t>& offsets, int64_t span) {
  std::set<int64_t> babies;
  std::set<int64_t> giants;
  for (const int64_t offset : offsets) {
    babies.insert(offset % span);
    giants.insert(offset - offset % span);
  }
  babies.erase(0);
  giants.erase(0);
  Split split = {.span = span,
                 .cost = static_cast<double>(babies.size()) +
                         static_cast<double>(ckks::BsgsPlan::kGiantStepCost * giants.size())};
  std::set_union(babies.begin(), babies.end(), giants.begin(), giants.end(),
                 std::back_inserter(split.steps));
  return split;
}

std::vector<Split> GoodSplits(const std::vector<int64_t>& offsets, int64_t position_count) {
  std::vector<Split> splits;
  for (int64_t span = 1; span <= position_count; ++span) splits.push_back(SplitBy(offsets, span));
  std::stable_sort(splits.begin(), splits.end(),
                   [](const Split& a, const Split& b) { return a.cost < b.cost; });
  const double limit = splits.front().cost * (1 + kSpanSlack);
  size_t count = 0;
  while (count < splits.size() && splits[count].cost <= limit) ++count;
  splits.resize(count);
  return splits;
}

// Rotations that are there, with how many transforms and operations need each.
class StepCounts {
 public:
  void Add(const std::vector<int64_t>& steps) {
    for (const int64_t step : steps) ++counts_[step];
  }
  void Remove(const std::vector<int64_t>& steps) {
    for (const int64_t step : steps) {
      if (--counts_[step] == 0) counts_.erase(step);
    }
  }
  // How many of `steps` are new.
  int64_t NewAmong(const std::vector<int64_t>& steps) const {
    return std::count_if(steps.begin(), steps.end(),
                         [&](int64_t step) { return !counts_.contains(step); });
  }

 private:
  std::map<int64_t, int> counts_;
};

}  // namespace

BabySpans ChooseSpans(const Circuit& circuit) {
  StepCounts counts;
  std::vector<Transform> transforms;
  // By offsets: the blocks of a large matrix have the same.
  std::map<std::vector<int64_t>, std::vector<Split>> splits;
  for (const CircuitOperation& operation : circuit.operations) {
    if (operation.kind == CircuitKind::kRotate) {
      const int64_t count = circuit.position_count;
      const int64_t step = (operation.step % count + count) % count;
      if (step != 0) counts.Add({step});
    }
    if (operation.kind != CircuitKind::kLinearTransform) continue;
    const value::Tensor& offsets = circuit.constants.find(operation.offsets)->second;
    const int64_t* begin = offsets.data_as<const int64_t>();
    const std::vector<int64_t> list(begin, begin + offsets.element_count());
    std::vector<Split>& good = splits[list];
    if (good.empty()) good = GoodSplits(list, circuit.position_count);
    transforms.push_back({.name = operation.name, .splits = good});
    counts.Add(transforms.back().splits.front().steps);
  }
  // Each in turn takes what adds least to the others, until none changes: every change leaves fewer
  // rotations, or as many at less cost.
  for (bool changed = true; changed;) {
    changed = false;
    for (Transform& transform : transforms) {
      counts.Remove(transform.splits[transform.chosen].steps);
      size_t best = 0;
      int64_t fewest = INT64_MAX;
      for (size_t i = 0; i < transform.splits.size(); ++i) {
        const int64_t added = counts.NewAmong(transform.splits[i].steps);
        if (added < fewest) {
          fewest = added;
          best = i;
        }
      }
      changed |= best != transform.chosen;
      transform.chosen = best;
      counts.Add(transform.splits[best].steps);
    }
  }
  BabySpans spans;
  for (const Transform& transform : transforms) {
    spans[transform.name] = transform.splits[transform.chosen].span;
  }
  return spans;
}

}  // namespace cipherd::planning

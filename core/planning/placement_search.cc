#include "core/planning/placement_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/planning/packing_cost.h"

namespace cipherd::planning {
namespace {

// More positions than needed are tried up to this factor.
constexpr int64_t kMostSpareFactor = 4;

// Nodes that are placed alike, each named by one of them.
class Groups {
 public:
  explicit Groups(const AffineGraph& graph) : parents_(graph.nodes.size()) {
    std::iota(parents_.begin(), parents_.end(), 0);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const AffineNode& node = graph.nodes[i];
      for (int operand : node.operands) Join(i, operand);
      for (const AffineForm::Term& term : node.form.terms) {
        if (term.matrix.IsDiagonal()) Join(i, term.node);
      }
    }
  }

  int Of(int node) const {
    while (parents_[node] != node) node = parents_[node];
    return node;
  }

 private:
  // The first node of a group names it.
  void Join(int a, int b) {
    const int group_a = Of(a), group_b = Of(b);
    parents_[std::max(group_a, group_b)] = std::min(group_a, group_b);
  }

  std::vector<int> parents_;
};

// A matrix that leads to or from a group, before the periods are chosen.
struct Link {
  PackingCosts costs;
  int64_t input_period;
  int64_t least_input_period;
};

class Search {
 public:
  Search(const AffineGraph& graph, const Groups& groups, int64_t position_count)
      : graph_(graph), groups_(groups), position_count_(position_count) {
    const size_t count = graph.nodes.size();
    placements_.resize(count);
    must_be_uniform_.assign(count, false);
    for (int output : graph.outputs) must_be_uniform_[groups.Of(output)] = true;
    packed_.position_count = position_count;
    packed_.placements.resize(count);
    packed_.input_periods.resize(count);
  }

  PackedGraph Run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const AffineNode& node = graph_.nodes[i];
      std::optional<ElementPlacement>& placement = placements_[groups_.Of(i)];
      if (node.kind == NodeKind::kInput) {
        placement = CompactPlacement(node.shape);
        placement->period = position_count_;
      } else if (!placement.has_value()) {
        placement = Choose(groups_.Of(i));
      }
      packed_.placements[i] = *placement;
      ChoosePeriods(i);
    }
    return std::move(packed_);
  }

 private:
  bool IsInGroup(int node, int group) const { return groups_.Of(node) == group; }

  // The least period that `node`, placed so, can be brought to.
  int64_t LeastPeriod(int node, const ElementPlacement& placement) const {
    const Interval& elsewhere = graph_.nodes[node].elsewhere;
    return elsewhere.magnitude() == 0 ? placement.LeastPeriod() : placement.period;
  }

  Link MakeLink(const AffineForm::Term& term, const ElementPlacement& source,
                const ElementPlacement& target) const {
    return {PackingCosts(term.matrix, source.positions, target.positions, position_count_),
            source.period, LeastPeriod(term.node, source)};
  }

  // How the matrices of a node that is placed are packed.
  void ChoosePeriods(int node) {
    const ElementPlacement& target = packed_.placements[node];
    for (const AffineForm::Term& term : graph_.nodes[node].form.terms) {
      const ElementPlacement& source = packed_.placements[term.node];
      Packing packing = {source.period, 0};
      if (!IsInGroup(term.node, groups_.Of(node))) {
        const Link link = MakeLink(term, source, target);
        packing = link.costs.Best(link.input_period, link.least_input_period, target.period);
      }
      packed_.input_periods[node].push_back(packing.input_period);
      packed_.cost += packing.cost;
    }
  }

  // Where the nodes of `group` may stand, in the least periods. `source_of` gives the placement of
  // a node outside, or null.
  template <typename SourceOf>
  std::vector<ElementPlacement> Candidates(int group, SourceOf source_of) const {
    const Shape* shape = &graph_.nodes[group].shape;
    std::vector<ElementPlacement> candidates;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const AffineNode& node = graph_.nodes[i];
      if (!IsInGroup(i, group)) continue;
      if (shape->size() != 3) shape = &node.shape;
      if (!node.form.strides.has_value()) continue;
      for (const AffineForm::Term& term : node.form.terms) {
        const ElementPlacement* source =
            IsInGroup(term.node, group) ? nullptr : source_of(term.node);
        if (source == nullptr) continue;
        for (ElementPlacement& spread :
             ImagePlacements(node.shape, *source, *node.form.strides, position_count_)) {
          candidates.push_back(std::move(spread));
        }
      }
    }
    candidates.push_back(CompactPlacement(*shape));
    if (must_be_uniform_[group]) {
      std::erase_if(candidates, [](const auto& candidate) { return candidate.Stride() == 0; });
    }
    return candidates;
  }

  ElementPlacement Choose(int group) const {
    const auto placed = [this](int node) -> const ElementPlacement* {
      const auto& placement = packed_.placements[node];
      return placement.positions.empty() ? nullptr : &placement;
    };
    double least_cost = INFINITY;
    ElementPlacement best;
    for (ElementPlacement& candidate : Candidates(group, placed)) {
      const std::vector<Link> links = LinksTo(group, candidate);
      const std::vector<Reader> readers = ReadersOf(group, candidate);
      for (; candidate.period <= position_count_; candidate.period *= 2) {
        double cost = 0;
        for (const Link& link : links) {
          cost +=
              link.costs.Best(link.input_period, link.least_input_period, candidate.period).cost;
        }
        for (const Reader& reader : readers) cost += reader.Cost(candidate.period);
        if (cost < least_cost) {
          least_cost = cost;
          best = candidate;
        }
      }
    }
    return best;
  }

  // The matrices that lead to `group`, placed so, from what is placed.
  std::vector<Link> LinksTo(int group, const ElementPlacement& target) const {
    std::vector<Link> links;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!IsInGroup(i, group)) continue;
      for (const AffineForm::Term& term : graph_.nodes[i].form.terms) {
        const ElementPlacement& source = packed_.placements[term.node];
        if (IsInGroup(term.node, group) || source.positions.empty()) continue;
        links.push_back(MakeLink(term, source, target));
      }
    }
    return links;
  }

  // A matrix that reads the group that is being placed, and where its result may be.
  struct Reader {
    struct Target {
      Link link;
      // Those that are tried: from this one on, up to the most.
      int64_t least_period;
      int64_t most_period;
    };
    std::vector<Target> targets;

    double Cost(int64_t input_period) const {
      double least = INFINITY;
      for (const Target& target : targets) {
        const int64_t least_input = std::min(target.link.least_input_period, input_period);
        for (int64_t period = target.least_period; period <= target.most_period; period *= 2) {
          least = std::min(least, target.link.costs.Best(input_period, least_input, period).cost);
        }
      }
      return least;
    }
  };

  std::vector<Reader> ReadersOf(int group, const ElementPlacement& placement) const {
    std::vector<Reader> readers;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (IsInGroup(i, group)) continue;
      for (const AffineForm::Term& term : graph_.nodes[i].form.terms) {
        if (!IsInGroup(term.node, group)) continue;
        const bool is_zero = graph_.nodes[term.node].elsewhere.magnitude() == 0;
        const int64_t least_input = is_zero ? placement.LeastPeriod() : position_count_;
        Reader reader;
        const auto& placed = placements_[groups_.Of(i)];
        const auto add = [&](const ElementPlacement& target, int64_t most_period) {
          reader.targets.push_back(
              {{PackingCosts(term.matrix, placement.positions, target.positions, position_count_),
                0, least_input},
               target.period,
               most_period});
        };
        if (placed.has_value()) {
          add(*placed, placed->period);
        } else {
          const auto source_of = [&](int node) { return node == term.node ? &placement : nullptr; };
          for (const ElementPlacement& target : Candidates(groups_.Of(i), source_of)) {
            add(target, position_count_);
          }
        }
        readers.push_back(std::move(reader));
      }
    }
    return readers;
  }

  const AffineGraph& graph_;
  const Groups& groups_;
  const int64_t position_count_;
  // By group.
  std::vector<std::optional<ElementPlacement>> placements_;
  std::vector<bool> must_be_uniform_;
  PackedGraph packed_;
};

}  // namespace

absl::StatusOr<PackedGraph> PackGraph(const AffineGraph& graph, int64_t least, int64_t most) {
  bool has_images = false;
  for (const AffineNode& node : graph.nodes) {
    const int64_t count = node.element_count();
    if (count > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("edge '", node.name, "': expected at most ", most,
                       " numbers, the most positions that are allowed, got ", count));
    }
    least = std::max(least, PowerOfTwoFor(count));
    has_images = has_images || (node.kind == NodeKind::kAffine && node.form.strides.has_value() &&
                                node.shape.size() == 3);
  }
  const Groups groups(graph);
  PackedGraph best = Search(graph, groups, least).Run();
  // Only images have placements that need more room.
  if (!has_images) return best;
  for (int64_t factor = 2; factor <= kMostSpareFactor && least * factor <= most; factor *= 2) {
    PackedGraph packed = Search(graph, groups, least * factor).Run();
    // Half as many items fit into a ciphertext.
    if (packed.cost * packed.position_count < best.cost * best.position_count) {
      best = std::move(packed);
    }
  }
  return best;
}

}  // namespace cipherd::planning

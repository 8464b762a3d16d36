// The least number of ciphertext multiplications with which a polynomial of given coefficients can
// be evaluated at a depth, by trying everything: all sets of powers that are sums of two before,
// and all trees of products of those powers with sums of terms. It shares nothing with
// core/planning.
//
// What a tree evaluates is a cover: a sum of depth D is a constant and the powers of depth below D
// (each times a number), and powers g of depth below D times sums of depth D - 1. Its polynomials
// have the coefficients {0} and S, and g + i for all coefficients i of such a sum. The same numbers
// hold in every basis with elements of each degree, for only leading terms are counted.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace cipherd::planning {

class ExhaustiveSplit {
 public:
  // Coefficients as bits, below 63. `count` multiplications suffice?
  static bool Suffices(uint64_t coefficients, int depth, int count) {
    ExhaustiveSplit search(coefficients, depth);
    for (int power_count = 0; power_count <= count; ++power_count) {
      if (search.TryPowers(power_count, count - power_count)) return true;
    }
    return false;
  }

 private:
  ExhaustiveSplit(uint64_t coefficients, int depth)
      : coefficients_(coefficients), degree_(std::bit_width(coefficients) - 1), depth_(depth) {}

  // With `power_count` more powers and `product_count` products.
  bool TryPowers(int power_count, int product_count) {
    if (power_count == 0) {
      covers_.clear();
      return std::any_of(Covers(depth_, product_count).begin(), Covers(depth_, product_count).end(),
                         [this](uint64_t cover) { return (coefficients_ & ~cover) == 0; });
    }
    std::map<int, int> depths;
    for (const auto& [a, a_depth] : powers_) {
      for (const auto& [b, b_depth] : powers_) {
        const int depth = std::max(a_depth, b_depth) + 1;
        if (a + b <= powers_.back().first || a + b > degree_) continue;
        if (depth >= depth_) continue;
        const auto entry = depths.emplace(a + b, depth).first;
        entry->second = std::min(entry->second, depth);
      }
    }
    for (const auto& power : depths) {
      powers_.push_back(power);
      const bool suffices = TryPowers(power_count - 1, product_count);
      powers_.pop_back();
      if (suffices) return true;
    }
    return false;
  }

  // What sums of `depth` with up to `product_count` products cover, without what others cover too.
  const std::vector<uint64_t>& Covers(int depth, int product_count) {
    const auto known = covers_.find({depth, product_count});
    if (known != covers_.end()) return known->second;
    std::vector<uint64_t> covers;
    if (product_count == 0) {
      covers = {1};
      for (const auto& [power, power_depth] : powers_) {
        if (power_depth < depth) covers[0] |= uint64_t{1} << power;
      }
    } else {
      covers = Covers(depth, product_count - 1);
      // The last product: its quotient takes some of the products, the rest of the sum the others.
      for (int inner = 0; depth > 1 && inner < product_count; ++inner) {
        for (const uint64_t rest : Covers(depth, product_count - 1 - inner)) {
          for (const uint64_t quotient : Covers(depth - 1, inner)) {
            for (const auto& [power, power_depth] : powers_) {
              if (power_depth < depth) covers.push_back(rest | (quotient << power & InRange()));
            }
          }
        }
      }
    }
    return covers_[{depth, product_count}] = Maximal(std::move(covers));
  }

  uint64_t InRange() const { return (uint64_t{2} << degree_) - 1; }

  static std::vector<uint64_t> Maximal(std::vector<uint64_t> covers) {
    std::sort(covers.begin(), covers.end(), [](uint64_t a, uint64_t b) {
      const int a_count = __builtin_popcountll(a), b_count = __builtin_popcountll(b);
      return a_count != b_count ? a_count > b_count : a < b;
    });
    covers.erase(std::unique(covers.begin(), covers.end()), covers.end());
    std::vector<uint64_t> maximal;
    for (const uint64_t cover : covers) {
      const bool is_within = std::any_of(maximal.begin(), maximal.end(),
                                         [cover](uint64_t m) { return (cover & ~m) == 0; });
      if (!is_within) maximal.push_back(cover);
    }
    return maximal;
  }

  const uint64_t coefficients_;
  const int degree_;
  const int depth_;
  // With their depths, ascending.
  std::vector<std::pair<int, int>> powers_ = {{1, 0}};
  // By depth and number of products.
  std::map<std::pair<int, int>, std::vector<uint64_t>> covers_;
};

}  // namespace cipherd::planning

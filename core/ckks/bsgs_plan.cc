#include "core/ckks/bsgs_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cipherd::ckks {
namespace {

// Cost of a span in baby steps, or `limit` as soon as it is no less. `offsets` ascending;
// `last_span` holds, by baby step, the last span that met it.
int64_t CostOfSpan(const std::vector<int64_t>& offsets, int64_t span, int64_t limit,
                   std::vector<int64_t>& last_span) {
  int64_t cost = 0;
  int64_t last_giant = 0;
  for (int64_t offset : offsets) {
    const int64_t baby = offset % span;
    const int64_t giant = offset - baby;
    if (giant != last_giant) {
      cost += BsgsPlan::kGiantStepCost;
      last_giant = giant;
    }
    if (baby != 0 && last_span[baby] != span) {
      ++cost;
      last_span[baby] = span;
    }
    if (cost >= limit) return limit;
  }
  return cost;
}

int64_t BestSpan(const std::vector<int64_t>& offsets, int64_t slot_count) {
  std::vector<int64_t> last_span(slot_count, 0);
  int64_t best_span = 1;
  int64_t best = CostOfSpan(offsets, 1, INT64_MAX, last_span);
  for (int64_t span = 2; span <= slot_count && best > 0; ++span) {
    const int64_t cost = CostOfSpan(offsets, span, best, last_span);
    if (cost < best) {
      best = cost;
      best_span = span;
    }
  }
  return best_span;
}

}  // namespace

absl::StatusOr<BsgsPlan> BsgsPlan::Make(std::vector<int64_t> offsets, int64_t slot_count,
                                        int64_t baby_span) {
  if (slot_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("slot_count: expected at least 1, got ", slot_count));
  }
  if (baby_span < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("baby_span: expected at least 0, got ", baby_span));
  }
  if (offsets.empty()) {
    return absl::InvalidArgumentError("offsets: expected at least 1 diagonal, got 0");
  }
  std::sort(offsets.begin(), offsets.end());
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < 0 || offsets[i] >= slot_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("offsets: expected numbers in [0, ", slot_count, "), got ", offsets[i]));
    }
    if (i > 0 && offsets[i] == offsets[i - 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("offsets: expected distinct numbers, got ", offsets[i], " twice"));
    }
  }
  BsgsPlan plan;
  plan.slot_count_ = slot_count;
  plan.baby_span_ = baby_span == 0 ? BestSpan(offsets, slot_count) : baby_span;
  for (int64_t offset : offsets) {
    const int64_t baby = offset % plan.baby_span_;
    plan.giants_[offset - baby].push_back({.offset = offset, .baby = baby});
  }
  const size_t babies = plan.BabySteps().size();
  const size_t giants = plan.GiantSteps().size();
  plan.hoists_twice_ = giants + 2 < 2 * babies + (giants > 0 ? 2 : 0);
  return plan;
}

std::vector<int64_t> BsgsPlan::BabySteps() const {
  std::set<int64_t> steps;
  for (const auto& [giant, terms] : giants_) {
    for (const Term& term : terms) {
      if (term.baby != 0) steps.insert(term.baby);
    }
  }
  return {steps.begin(), steps.end()};
}

std::vector<int64_t> BsgsPlan::GiantSteps() const {
  std::vector<int64_t> steps;
  for (const auto& [giant, terms] : giants_) {
    if (giant != 0) steps.push_back(giant);
  }
  return steps;
}

std::vector<KeyId> BsgsPlan::Keys() const {
  std::vector<KeyId> keys;
  for (int64_t step : BabySteps()) keys.push_back(KeyId::Rotation(step, slot_count_));
  for (int64_t step : GiantSteps()) keys.push_back(KeyId::Rotation(step, slot_count_));
  return KeyLayout(std::move(keys)).ids();
}

}  // namespace cipherd::ckks

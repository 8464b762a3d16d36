#include "core/planning/index_set.h"

#include <random>
#include <set>

#include "gtest/gtest.h"

namespace cipherd::planning {
namespace {

TEST(IndexSet, IsASetOfNumbers) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    IndexSet set, other;
    std::set<int> expected, expected_other;
    for (int i = 0; i < round; ++i) {
      const int index = static_cast<int>(random() % IndexSet::kCapacity);
      if (i % 5 == 4) {
        set.Erase(index);
        expected.erase(index);
      } else if (i % 5 == 3) {
        other.Insert(index);
        expected_other.insert(index);
      } else {
        set.Insert(index);
        expected.insert(index);
      }
    }
    EXPECT_EQ(set.Count(), static_cast<int>(expected.size()));
    EXPECT_EQ(set.Highest(), expected.empty() ? -1 : *expected.rbegin());
    EXPECT_EQ(set.IsEmpty(), expected.empty());
    const int at = static_cast<int>(random() % IndexSet::kCapacity);
    for (int i = 0; i < IndexSet::kCapacity; ++i) {
      EXPECT_EQ(set.Contains(i), expected.count(i) == 1);
      EXPECT_EQ(set.Without(other).Contains(i),
                expected.count(i) == 1 && expected_other.count(i) == 0);
      EXPECT_EQ(set.Below(at).Contains(i), i < at && expected.count(i) == 1);
      EXPECT_EQ(set.From(at).Contains(i), expected.count(i + at) == 1);
    }
  }
}

TEST(IndexSet, EqualSetsHashAlikeAndTheHalvesMatter) {
  IndexSet low, high, built;
  low.Insert(3);
  high.Insert(67);
  built.Insert(67);
  built.Insert(5);
  built.Erase(5);
  EXPECT_EQ(high, built);
  EXPECT_EQ(high.Hash(), built.Hash());
  EXPECT_NE(low, high);
  EXPECT_NE(low.Hash(), high.Hash());
}

}  // namespace
}  // namespace cipherd::planning

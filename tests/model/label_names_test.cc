// Rows of a classification head by the names of their labels.
#include "model/label_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>

namespace teratron::testing {
namespace {

using Names = std::vector<std::string>;

TEST(LabelNames, GiveTheRowsOfEveryOrder) {
  const Names stored = {"a", "b", "c", "d"};
  Names asked = stored;
  do {
    const auto rows = rows_by_label(stored, asked);
    ASSERT_TRUE(rows);
    for (std::size_t label = 0; label < asked.size(); ++label) EXPECT_EQ(stored[(*rows)[label]], asked[label]);
  } while (std::ranges::next_permutation(asked).found);
}

TEST(LabelNames, ThatAreUnknownLeaveTheRowsInTheirOrder) {
  const std::vector<std::size_t> in_order = {0, 1, 2};
  EXPECT_EQ(rows_by_label({}, Names{"c", "a", "b"}), in_order);
  EXPECT_EQ(rows_by_label(Names{"c", "a", "b"}, {}), in_order);
}

TEST(LabelNames, AreNoneForOtherLabels) {
  EXPECT_FALSE(rows_by_label(Names{"a", "b"}, Names{"a", "b", "c"}));
  EXPECT_FALSE(rows_by_label(Names{"a", "b", "d"}, Names{"a", "b", "c"}));
  EXPECT_FALSE(rows_by_label(Names{"a", "a", "c"}, Names{"a", "b", "c"}));
  EXPECT_FALSE(rows_by_label(Names{"a", "b", "c"}, Names{"a", "a", "c"}));
}

// Comparing every two of these names would take minutes to hours.
TEST(LabelNames, AreFoundInTimeProportionalToTheirNumber) {
  constexpr std::size_t kLabels = 300'000;
  Names stored, asked;
  for (std::size_t label = 0; label < kLabels; ++label) stored.push_back("Label " + std::to_string(label));
  for (std::size_t label = kLabels; label-- > 0;) asked.push_back("label-" + std::to_string(label));
  const auto rows = rows_by_label(stored, asked);
  ASSERT_TRUE(rows);
  EXPECT_TRUE(std::ranges::equal(*rows, std::views::iota(std::size_t{0}, kLabels) | std::views::reverse));
}

TEST(LabelNames, AreTheSameWhateverTheirCaseAndTheirHyphens) {
  EXPECT_TRUE(is_same_label("not_duplicate", "Not Duplicate"));
  EXPECT_TRUE(is_same_label("NOT-DUPLICATE", "not_duplicate"));
  EXPECT_FALSE(is_same_label("not_duplicate", "notduplicate"));
  EXPECT_FALSE(is_same_label("duplicate", "duplicates"));
}

TEST(LabelNames, ThatCountFromZeroSayNothing) {
  EXPECT_TRUE(are_numbers(Names{"LABEL_0", "LABEL_1"}));
  EXPECT_TRUE(are_numbers(Names{"0", "1", "2"}));
  EXPECT_FALSE(are_numbers(Names{"LABEL_1", "LABEL_0"}));
  EXPECT_FALSE(are_numbers(Names{"LABEL_0", "neutral"}));
}

}  // namespace
}  // namespace teratron::testing

// Dealings of layers against all compositions of a number.
#include "plan/search/layer_dealing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace teratron::testing {
namespace {

using namespace plan;

using Numbers = std::vector<std::int64_t>;

// Every way to write `sum` as so many positive numbers.
std::vector<Numbers> compositions(std::int64_t sum, std::int64_t count) {
  if (count == 1) return sum < 1 ? std::vector<Numbers>{} : std::vector<Numbers>{{sum}};
  std::vector<Numbers> all;
  for (std::int64_t first = 1; first <= sum - count + 1; ++first) {
    for (Numbers& rest : compositions(sum - first, count - 1)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

Numbers of_stages(const Numbers& cells, const pipeline::CellMap& map) {
  Numbers stages(static_cast<std::size_t>(map.stages));
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    stages[static_cast<std::size_t>(map.stage_of(static_cast<int>(cell)))] += cells[cell];
  }
  return stages;
}

TEST(LayerDealing, LooksAtEveryNumberOfUpToThreeStages) {
  for (const std::int64_t stages : {2, 3}) {
    for (const std::int64_t layers : {3, 4, 7, 12}) {
      const std::vector<Numbers> dealings = layer_dealings(layers, {.stages = static_cast<int>(stages)}, 1);
      const std::set<Numbers> found(dealings.begin(), dealings.end());
      EXPECT_EQ(found.size(), dealings.size());
      const std::vector<Numbers> all = compositions(layers, stages);
      // Stages between the ends have a share each; with three there is one.
      EXPECT_EQ(found, std::set<Numbers>(all.begin(), all.end())) << stages << " " << layers;
    }
  }
}

TEST(LayerDealing, GivesEveryCellALayerAndAllLayersToCells) {
  for (const pipeline::Placement placement : {pipeline::Placement::kInTurns, pipeline::Placement::kFolded}) {
    for (const int stages : {2, 3, 4, 8}) {
      for (const std::int64_t cells : {1, 2, 3}) {
        if (placement == pipeline::Placement::kFolded && cells != 2) continue;
        for (const std::int64_t layers :
             {stages * cells, stages * cells + 1, stages * cells * 2 - 1, stages * cells * 4}) {
          const pipeline::CellMap map{stages, placement};
          const std::vector<Numbers> dealings = layer_dealings(layers, map, cells);
          ASSERT_FALSE(dealings.empty());
          EXPECT_LE(std::ranges::max(dealings.front()) - std::ranges::min(dealings.front()), 1);
          EXPECT_EQ(std::set<Numbers>(dealings.begin(), dealings.end()).size(), dealings.size());
          bool lightens_head = false;
          const auto head = static_cast<std::size_t>(map.stage_of(static_cast<int>(stages * cells) - 1));
          for (const Numbers& one : dealings) {
            ASSERT_EQ(std::ssize(one), stages * cells);
            EXPECT_GE(std::ranges::min(one), 1);
            EXPECT_EQ(std::accumulate(one.begin(), one.end(), std::int64_t{0}), layers);
            lightens_head = lightens_head || of_stages(one, map)[head] == cells;
          }
          EXPECT_TRUE(lightens_head) << stages << " " << cells << " " << layers;  // down to one layer a cell
        }
      }
    }
  }
}

}  // namespace
}  // namespace teratron::testing

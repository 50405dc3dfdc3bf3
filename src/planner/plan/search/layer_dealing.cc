#include "plan/search/layer_dealing.h"

#include <algorithm>
#include <functional>
#include <set>

#include "pipeline/token_slices.h"

namespace teratron::plan {
namespace {

using Numbers = std::vector<std::int64_t>;

// Whole numbers that add up to `sum`; the first or the last ones take one more.
Numbers shared_evenly(std::int64_t sum, std::int64_t count, bool first_take_more) {
  Numbers shares = pipeline::even_slices(sum, static_cast<int>(count));
  if (!first_take_more) std::ranges::reverse(shares);
  return shares;
}

class Dealings {
 public:
  Dealings(std::int64_t layers, const pipeline::CellMap& map, std::int64_t cells_of_stage)
      : layers_(layers), map_(map), cells_(cells_of_stage) {}

  std::vector<Numbers> all() {
    add(pipeline::even_slices(layers_, static_cast<int>(map_.stages * cells_)));
    const auto head = static_cast<std::size_t>(map_.stage_of(static_cast<int>(map_.stages * cells_) - 1));
    const std::int64_t mean = layers_ / map_.stages;
    const bool few = map_.stages <= kFewStages;
    const std::int64_t most = layers_ - cells_ * (map_.stages - 1);
    const std::int64_t last = few ? most : std::min(most, mean + 2), least = few ? cells_ : std::max(cells_, mean - 2);
    for (std::int64_t of_head = cells_; of_head <= last; ++of_head) {
      if (head == 0) {  // on the first stage
        add_stages({of_head}, layers_ - of_head, {});
      } else if (map_.stages == 2) {
        add_stages({layers_ - of_head}, 0, {of_head});
      } else {
        for (std::int64_t first = least; first <= (few ? most : mean + 1); ++first) {
          add_stages({first}, layers_ - first - of_head, {of_head});
        }
      }
    }
    return std::move(all_);
  }

 private:
  // `rest`: of the stages between.
  void add_stages(const Numbers& before, std::int64_t rest, const Numbers& after) {
    const std::int64_t between = map_.stages - std::ssize(before) - std::ssize(after);
    if (rest < between * cells_) return;
    for (const bool first_take_more : {true, false}) {
      Numbers stages = before;
      if (between > 0) {
        const Numbers shares = shared_evenly(rest, between, first_take_more);
        stages.insert(stages.end(), shares.begin(), shares.end());
      }
      stages.insert(stages.end(), after.begin(), after.end());
      if (map_.stages <= kFewStages && cells_ > 1) {
        for (unsigned bits = 0; bits < 1U << map_.stages; ++bits) {
          add_cells(stages, [bits](int stage) { return (bits >> stage & 1U) != 0; });
        }
        continue;
      }
      for (const bool first_cells_take_more : {true, false}) {
        add_cells(stages, [first_cells_take_more](int) { return first_cells_take_more; });
      }
    }
  }

  // `first_take_more`: of a stage's cells.
  void add_cells(const Numbers& stages, const std::function<bool(int stage)>& first_take_more) {
    Numbers cells(stages.size() * static_cast<std::size_t>(cells_));
    for (int stage = 0; stage < map_.stages; ++stage) {
      const Numbers shares = shared_evenly(stages[static_cast<std::size_t>(stage)], cells_, first_take_more(stage));
      for (int chunk = 0; chunk < static_cast<int>(cells_); ++chunk) {
        cells[static_cast<std::size_t>(map_.cell(stage, chunk))] = shares[static_cast<std::size_t>(chunk)];
      }
    }
    add(std::move(cells));
  }

  void add(Numbers cells) {
    if (known_.insert(cells).second) all_.push_back(std::move(cells));
  }

  const std::int64_t layers_;
  const pipeline::CellMap map_;
  const std::int64_t cells_;
  std::set<Numbers> known_;
  std::vector<Numbers> all_;
};

}  // namespace

std::vector<Numbers> layer_dealings(std::int64_t layers, const pipeline::CellMap& map, std::int64_t cells_of_stage) {
  return Dealings(layers, map, cells_of_stage).all();
}

}  // namespace teratron::plan

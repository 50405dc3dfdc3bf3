#include "plan/search/recompute_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "plan/search/layout_memory.h"

namespace teratron::plan {
namespace {

constexpr std::int64_t kMostNumbers = 8;

// Numbers of first slices that are recomputed; 0: all, as in StageRecompute.
std::vector<std::int64_t> slice_numbers(std::int64_t slices) {
  const std::int64_t step = (slices + kMostNumbers - 1) / kMostNumbers;
  std::vector<std::int64_t> numbers = {0};
  for (std::int64_t number = slices - step; number >= 1; number -= step) numbers.push_back(number);
  return numbers;
}

// The least costly way of one stage.
class StageChoice {
 public:
  using BytesOf = std::function<std::int64_t(const StageRecompute&)>;  // of a rank of the stage

  StageChoice(std::vector<std::int64_t> cells, const RecomputeLimits& limits, BytesOf bytes_of)
      : cells_(std::move(cells)), limits_(limits), bytes_of_(std::move(bytes_of)), bytes_kept_(bytes_of_({})) {
    bytes_ = bytes_kept_;
  }

  bool fits() const { return bytes_ <= limits_.room; }
  const StageRecompute& best() const { return best_; }
  std::int64_t bytes() const { return bytes_; }

  // `of_layer`: [slice] seconds of recomputing a layer in that way.
  void look_at(Recompute kind, const std::vector<double>& of_layer) {
    for (const std::int64_t slices : slice_numbers(std::ssize(of_layer))) {
      const auto way = [&](std::int64_t layers) {
        return StageRecompute{.kind = kind, .layers = layers == deepest() ? 0 : layers, .slices = slices};
      };
      const auto seconds = [&](std::int64_t layers) { return again_of(way(layers), cells_, of_layer); };
      std::int64_t most = deepest();
      while (most > 0 && seconds(most) >= seconds_) --most;
      const auto [layers, bytes] = fewest_layers(most, [&](std::int64_t count) { return bytes_of_(way(count)); });
      if (layers == 0) continue;
      best_ = way(layers);
      seconds_ = seconds(layers);
      bytes_ = bytes;
    }
  }

  void make_all_again() {
    best_ = {.kind = Recompute::kFull};
    bytes_ = bytes_of_(best_);
  }

 private:
  std::int64_t deepest() const { return std::ranges::max(cells_); }

  // The fewest layers that fit, up to `most`, and their bytes; 0 layers: none. Bytes fall nearly in a line.
  template <class Bytes>
  std::pair<std::int64_t, std::int64_t> fewest_layers(std::int64_t most, const Bytes& bytes) const {
    if (most == 0) return {0, 0};
    std::pair<std::int64_t, std::int64_t> above{0, bytes_kept_}, fitting{most, bytes(most)};
    if (fitting.second > limits_.room) return {0, 0};
    while (fitting.first - above.first > 1) {
      const auto share = static_cast<double>(above.second - limits_.room) /
                         static_cast<double>(std::max<std::int64_t>(above.second - fitting.second, 1));
      const auto guess = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(fitting.first - above.first)));
      const std::int64_t layers = std::clamp(above.first + guess, above.first + 1, fitting.first - 1);
      const std::pair tried{layers, bytes(layers)};
      (tried.second > limits_.room ? above : fitting) = tried;
    }
    return fitting;
  }

  const std::vector<std::int64_t> cells_;  // layers of each
  const RecomputeLimits limits_;
  const BytesOf bytes_of_;
  const std::int64_t bytes_kept_;  // where nothing is made again
  StageRecompute best_;
  double seconds_ = std::numeric_limits<double>::infinity();
  std::int64_t bytes_ = 0;
};

}  // namespace

ChosenRecomputation choose_recomputation(const TrainConfig& config, const MemoryPlanContext& context, Layout layout,
                                         const RecomputeLimits& limits, LayoutCosts& times) {
  layout.recompute = {};
  const TrainConfig kept = with_layout(config, layout);
  const StageMemoryPlans plans(kept, context);
  const std::vector<std::vector<std::int64_t>> cells = stage_cells(config, layout);
  std::vector<StageRecompute> ways(cells.size());
  ChosenRecomputation chosen;
  for (std::size_t stage = 0; stage < cells.size(); ++stage) {
    const auto number = static_cast<int>(stage);
    const std::int64_t left_out = bytes_left_out(kept, context, stage).all();
    StageChoice choice(cells[stage], limits, [&](const StageRecompute& way) {
      ++chosen.plans;
      return plans.bytes(number, Recomputation(std::vector{way})) - left_out;
    });
    if (!choice.fits()) {
      for (const Recompute kind : {Recompute::kSelective, Recompute::kFull}) {
        choice.look_at(kind, times.again(layout, number, kind));
      }
      if (!choice.fits()) choice.make_all_again();
    }
    ways[stage] = choice.best();
    chosen.bytes = std::max(chosen.bytes, choice.bytes());
    chosen.recompute = Recomputation(ways);
    layout.recompute = chosen.recompute;
    chosen.is_slow = times.least(layout) >= limits.seconds;
    if (chosen.is_slow || chosen.bytes > limits.room) break;
  }
  return chosen;
}

}  // namespace teratron::plan

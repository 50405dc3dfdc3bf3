#include "plan/search/memory_wall.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "console/readable.h"
#include "model/make_model.h"

namespace teratron::plan {
namespace {

Layout saving_layout(const TrainConfig& config, std::int64_t tensor, std::int64_t stages) {
  return {.tensor = tensor,
          .pipeline = stages,
          .recompute = Recompute::kFull,
          .sequence_parallel = tensor > 1 && config.model.seq_length % tensor == 0};
}

// Best of several layouts. Only those that a bound does not rule out are planned.
class Wall {
 public:
  explicit Wall(const PlanRequest& request)
      : config_(request.config),
        room_(static_cast<std::int64_t>(request.cluster.device.memory)),
        memory_(config_, request.context()) {
    config_.pipeline.layout.clear();
    // 1F1B holds no more micro-batches than there are stages, however many follow, and plans of thousands take seconds.
    std::int64_t& batch = config_.batch.global_batch_size;
    batch = std::min(batch, 2 * config_.model.config.num_layers);
  }

  std::optional<WallLayout> tensor_alone() const {
    for (std::int64_t tensor = 1; tensor <= config_.model.config.num_attention_heads; ++tensor) {
      if (const std::optional<WallLayout> found = planned(tensor, 1)) return found;
    }
    return std::nullopt;
  }

  std::optional<WallLayout> fewest(std::int64_t from) const {
    const std::int64_t heads = config_.model.config.num_attention_heads, layers = config_.model.config.num_layers;
    for (std::int64_t devices = std::max<std::int64_t>(from, 1); devices <= heads * layers; ++devices) {
      std::optional<WallLayout> least;
      for (std::int64_t tensor = 1; tensor <= std::min(heads, devices); ++tensor) {
        if (devices % tensor != 0 || devices / tensor > layers) continue;
        const std::optional<WallLayout> found = planned(tensor, devices / tensor);
        if (found && (!least || found->bytes < least->bytes)) least = found;
      }
      if (least) return least;
    }
    return std::nullopt;
  }

 private:
  std::optional<WallLayout> planned(std::int64_t tensor, std::int64_t stages) const {
    if (!config_.model.config.splits_over(tensor)) return std::nullopt;
    const Layout layout = saving_layout(config_, tensor, stages);
    if (memory_.least(layout) > room_) return std::nullopt;
    const std::int64_t bytes = memory_.fullest_end(layout);
    if (bytes > room_) return std::nullopt;
    return WallLayout{layout, bytes};
  }

  TrainConfig config_;
  const std::int64_t room_;
  LayoutMemory memory_;
};

MemoryWall::Bytes bytes_of_parameter(const PlanRequest& request) {
  const std::shared_ptr<const Optimizer> optimizer = request.config.optimizer.make_optimizer();
  const std::unique_ptr<Model> model = make_model(request.config.model.model_for(request.vocab_size));
  ParameterBytes all;
  double elements = 0;
  model->visit([&](Parameter& parameter) {
    all.add(parameter, *optimizer, request.config.backend.compute_dtype(), request.config.backend.weight_tiles);
    elements += static_cast<double>(parameter.shape.elements());
  });
  const auto mean = [&](std::int64_t bytes) { return static_cast<double>(bytes) / elements; };
  return {.weight = mean(all.weight), .gradient = mean(all.gradient), .optimizer = mean(all.optimizer)};
}

std::string bytes_text(std::int64_t bytes) { return readable_bytes(static_cast<std::uint64_t>(bytes)); }

// A layout that fits: the first by the lower bound of its memory.
std::optional<Change> fitting(const PlanRequest& request, std::string text) {
  const auto room = static_cast<std::int64_t>(request.cluster.device.memory);
  const LayoutMemory memory(request.config, request.context());
  std::vector<std::pair<std::int64_t, Layout>> layouts;
  for (Layout& layout : layouts_on(request.cluster.devices, request.config, request.fixed)) {
    layout.deals_layers = false;
    const std::int64_t least = memory.least(layout);
    if (least <= room && !layout.slicing.is_open()) layouts.emplace_back(least, std::move(layout));
  }
  std::ranges::stable_sort(layouts, {}, &std::pair<std::int64_t, Layout>::first);
  for (const auto& [least, layout] : layouts) {
    const std::int64_t bytes = memory.fullest_end(layout);
    if (bytes <= room) return Change{std::move(text), layout, bytes};
  }
  return std::nullopt;
}

}  // namespace

MemoryWall memory_wall(const PlanRequest& request) {
  const Wall found(request);
  MemoryWall wall{.parameters = static_cast<double>(request.config.model.model_for(request.vocab_size).parameters()),
                  .bytes = bytes_of_parameter(request),
                  .room = static_cast<std::int64_t>(request.cluster.device.memory)};
  wall.least_devices =
      static_cast<std::int64_t>(std::ceil(wall.parameters * wall.bytes.all() / static_cast<double>(wall.room)));
  wall.tensor_alone = found.tensor_alone();
  // Gradients may lie where activations lay, so the state alone is no bound to begin from.
  wall.fewest = found.fewest(1);
  return wall;
}

std::vector<Change> fitting_changes(const PlanRequest& request) {
  std::vector<Change> changes;
  const auto add = [&](std::optional<Change> change) {
    if (change) changes.push_back(std::move(*change));
  };
  PlanRequest changed = request;
  changed.fixed = {};
  if (!request.fixed.is_empty()) add(fitting(changed, "leave out the flags of the layout"));
  if (const std::optional<WallLayout> fewest = memory_wall(request).fewest) {
    if (fewest->layout.devices() > request.cluster.devices) {
      changes.push_back({fmt::format("take {} devices", fewest->layout.devices()), fewest->layout, fewest->bytes});
    }
  }
  changed = request;
  std::int64_t& tokens = changed.config.model.seq_length;
  for (tokens /= 2; tokens >= 1 && changes.empty(); tokens /= 2) {
    add(fitting(changed, fmt::format("--seq-length {}", tokens)));
  }
  return changes;
}

void throw_too_large(const PlanRequest& request, const SearchResult& result) {
  const auto room = static_cast<std::int64_t>(request.cluster.device.memory);
  std::vector<std::string> texts;
  for (const Change& change : fitting_changes(request)) {
    texts.push_back(fmt::format("{} ({}: {})", change.text, change.layout.text(), bytes_text(change.bytes)));
  }
  throw TooLargeError(fmt::format(
      "the model does not fit: of {} on {} x {}, the one that needs least takes {} on a rank, {} "
      "more than the {} there are ({}); {}",
      counted(result.layouts, "layout"), result.devices, request.cluster.device.name, bytes_text(result.smallest_bytes),
      bytes_text(result.smallest_bytes - room), bytes_text(room), result.smallest ? result.smallest->text() : "",
      texts.empty() ? "no number of devices and no shorter sequence makes it fit: take a smaller model or devices "
                      "with more memory"
                    : fmt::format("what makes it fit: {}", fmt::join(texts, "; or "))));
}

}  // namespace teratron::plan

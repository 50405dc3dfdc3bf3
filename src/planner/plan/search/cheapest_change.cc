#include "plan/search/cheapest_change.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/error.h"
#include "console/readable.h"
#include "plan/search/layout_memory.h"
#include "plan/search/memory_wall.h"

namespace teratron::plan {
namespace {

std::string bytes_text(std::int64_t bytes) { return readable_bytes(static_cast<std::uint64_t>(bytes)); }

// Some layout that fits, of those that take least.
std::optional<Change> fitting(const PlanRequest& request, std::string text) {
  const auto room = static_cast<std::int64_t>(request.cluster.device.memory);
  const LayoutMemory memory(request.model, request.context());
  std::vector<std::pair<std::int64_t, Layout>> layouts;
  for (Layout& layout : layouts_on(request.cluster.devices, request.model, request.fixed)) {
    const std::int64_t least = memory.least(layout);
    if (least <= room && !is_to_be_chosen(layout)) layouts.emplace_back(least, std::move(layout));
  }
  std::ranges::stable_sort(layouts, {}, &std::pair<std::int64_t, Layout>::first);
  for (const auto& [least, layout] : layouts) {
    const std::int64_t bytes = memory.fullest_end(layout);
    if (bytes <= room) return Change{std::move(text), layout, bytes};
  }
  return std::nullopt;
}

// One flag less, the first that helps; else none of them.
std::optional<Change> with_less_fixed(const PlanRequest& request) {
  using Free = std::function<void(FixedLayout&)>;
  const std::pair<const char*, Free> frees[] = {
      {"--use-distributed-optimizer=false", [](FixedLayout& f) { f.distributed_optimizer.reset(); }},
      {"--sequence-parallel=false", [](FixedLayout& f) { f.sequence_parallel.reset(); }},
      {"--recompute-granularity", [](FixedLayout& f) { f.recompute.reset(); }},
      {"--schedule", [](FixedLayout& f) { f.schedule.reset(); }},
      {"--token-slices", [](FixedLayout& f) { f.token_slices.reset(); }},
      {"--virtual-stages", [](FixedLayout& f) { f.virtual_stages.reset(); }},
      {"--micro-batch-size", [](FixedLayout& f) { f.micro_batch.reset(); }},
      {"--dp", [](FixedLayout& f) { f.data.reset(); }},
      {"--pp", [](FixedLayout& f) { f.pipeline.reset(); }},
      {"--tp", [](FixedLayout& f) { f.tensor.reset(); }}};
  for (const auto& [flag, free] : frees) {
    PlanRequest changed = request;
    free(changed.fixed);
    if (changed.fixed == request.fixed) continue;
    if (std::optional<Change> change = fitting(changed, fmt::format("leave out {}", flag))) return change;
  }
  if (request.fixed.is_empty()) return std::nullopt;
  PlanRequest changed = request;
  changed.fixed = {};
  return fitting(changed, "leave out every flag of the layout");
}

std::optional<Change> with_shorter_sequences(const PlanRequest& request) {
  PlanRequest changed = request;
  for (std::int64_t tokens = request.model.model.seq_length / 2; tokens >= 1; tokens /= 2) {
    changed.model.model.seq_length = tokens;
    if (std::optional<Change> change = fitting(changed, fmt::format("--seq-length {}", tokens))) return change;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Change> cheapest_changes(const PlanRequest& request) {
  std::vector<Change> changes;
  if (std::optional<Change> change = with_less_fixed(request)) changes.push_back(std::move(*change));
  if (const std::optional<WallLayout> fewest = memory_wall(request).fewest) {
    if (fewest->layout.devices() > request.cluster.devices) {
      changes.push_back({fmt::format("take {} devices", fewest->layout.devices()), fewest->layout, fewest->bytes});
    }
  }
  if (!changes.empty()) return changes;
  if (std::optional<Change> change = with_shorter_sequences(request)) changes.push_back(std::move(*change));
  return changes;
}

void throw_too_large(const PlanRequest& request, const SearchResult& result) {
  const auto room = static_cast<std::int64_t>(request.cluster.device.memory);
  std::vector<std::string> texts;
  for (const Change& change : cheapest_changes(request)) {
    texts.push_back(fmt::format("{} ({}: {})", change.text, change.layout.text(), bytes_text(change.bytes)));
  }
  throw_user_error(
      "the model does not fit: of {} layouts on {} x {}, the one that needs least takes {} on a rank, {} "
      "more than the {} there are ({}); {}",
      result.layouts, result.devices, request.cluster.device.name, bytes_text(result.smallest_bytes),
      bytes_text(result.smallest_bytes - room), bytes_text(room), result.smallest ? result.smallest->text() : "",
      texts.empty() ? "no number of devices and no shorter sequence makes it fit: take a smaller model or devices "
                      "with more memory"
                    : fmt::format("what makes it fit: {}", fmt::join(texts, "; or ")));
}

}  // namespace teratron::plan

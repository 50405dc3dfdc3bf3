#include "plan/search/layout.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "model/family.h"
#include "plan/search/layer_dealing.h"

namespace teratron::plan {
namespace {

using pipeline::ScheduleKind;

// 1, 2, 4, .. `most`, or what is fixed.
std::vector<std::int64_t> powers_of_two(std::int64_t most, const std::optional<std::int64_t>& fixed) {
  if (fixed) return {*fixed};
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size <= most; size *= 2) sizes.push_back(size);
  return sizes;
}

// All ways of one mesh.
class MeshLayouts {
 public:
  MeshLayouts(const StepSettings& settings, const FixedLayout& fixed, std::vector<Layout>& found)
      : settings_(settings), fixed_(fixed), found_(found) {}

  void add(const Layout& mesh) {
    const std::int64_t share = share_of_batch(settings_, mesh.data);
    for (const std::int64_t size : powers_of_two(share, given_micro_batch())) {
      Layout layout = mesh;
      layout.micro_batch = size;
      add_schedules(layout, micro_batches_of(settings_, layout));
    }
  }

 private:
  std::optional<std::int64_t> given_micro_batch() const {
    if (fixed_.micro_batch || !fixed_.slicing) return fixed_.micro_batch;
    const pipeline::TokenSlices slices = fixed_.slicing->slices();
    return slices.cuts.empty() ? std::nullopt : std::optional(slices.cuts.front().sequences);
  }

  void add_schedules(const Layout& layout, std::int64_t micro_batches) {
    if (fixed_.schedule) return add_slices(layout, *fixed_.schedule);
    // One stage runs its micro-batches one after another whatever the schedule's name is.
    add_slices(layout, ScheduleKind::k1F1B);
    if (layout.pipeline == 1 && !fixed_.slicing) return;
    if (layout.pipeline > 1 && micro_batches > 1) add_slices(layout, ScheduleKind::kGpipe);
    for (const ScheduleKind kind : {ScheduleKind::kInterleaved, ScheduleKind::kSeq1F1B, ScheduleKind::kTeraPipe}) {
      add_slices(layout, kind);
    }
    if (fixed_.has_mesh() || fixed_.virtual_stages) add_slices(layout, ScheduleKind::kSeq1F1BInterleaved);
    if (!fixed_.has_mesh()) return;
    for (const ScheduleKind kind : {ScheduleKind::kVMin, ScheduleKind::kVHalf, ScheduleKind::kVZeroBubble}) {
      add_slices(layout, kind);
    }
  }

  void add_slices(Layout layout, ScheduleKind kind) {
    layout.schedule = kind;
    const pipeline::ScheduleTraits& traits = pipeline::traits_of(kind);
    if (!traits.takes_slices || fixed_.slicing) {
      layout.slicing = fixed_.slicing.value_or(Slicing());
      return add_cells(layout);
    }
    // Sequences whole, which another schedule does as well unless cells lie in a V.
    const bool is_folded = traits.placement == pipeline::Placement::kFolded;
    if (fixed_.schedule || is_folded) add_cells(layout);
    if (!settings_.model.config.family().continues_text || layout.pipeline == 1) return;
    for (std::int64_t count = 2; count <= kMostSlices && settings_.model.seq_length / count >= kFewestSliceTokens;
         count *= 2) {
      layout.slicing.text = fmt::format("uniform:{}", count);
      add_cells(layout);
    }
    layout.slicing = {.text = "", .open = Slicing::Open::kAlike};
    add_cells(layout);
  }

  // Numbers of cells a stage; equal layers in each, where they are not given or dealt.
  void add_cells(Layout layout) {
    layout.deals_layers = fixed_.has_mesh() && !fixed_.keeps_layers && layout.pipeline > 1;
    if (pipeline::traits_of(layout.schedule).most_cells == 1) return add_ends(layout);
    const std::int64_t layers = settings_.model.config.num_layers / layout.pipeline;
    const std::int64_t first = fixed_.virtual_stages ? *fixed_.virtual_stages : fixed_.schedule ? 1 : 2;
    const std::int64_t last = fixed_.virtual_stages.value_or(layers);
    for (std::int64_t count = first; count <= last; ++count) {
      if (!pipeline::traits_of(layout.schedule).has_cells(static_cast<int>(count))) continue;
      layout.virtual_stages = count;
      const bool are_equal = settings_.model.config.num_layers % (layout.pipeline * count) == 0;
      // Unequal cells of many stages in slices are too many ways for what they gain.
      const bool is_small = layout.pipeline <= kFewStages || layout.slicing.is_whole();
      const bool deals_cells = layout.deals_layers && (is_small || fixed_.virtual_stages);
      if (are_equal || deals_cells || !settings_.pipeline.layout.empty()) add_ends(layout);
    }
  }

  void add_ends(Layout layout) {
    const bool may_share = fixed_.has_mesh() && layout.pipeline > 1 && settings_.model.config.family().continues_text;
    for (const bool shared : {false, true}) {
      layout.vocabulary_parallel = shared;
      if (fixed_.vocabulary_parallel ? *fixed_.vocabulary_parallel == shared : !shared || may_share) {
        add_memory_ways(layout);
      }
    }
  }

  // Choices that trade time for memory.
  void add_memory_ways(Layout layout) {
    layout.defer_weight_gradients = fixed_.defer_weight_gradients.value_or(false);
    std::vector<Recomputation> kinds = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
    if (fixed_.recompute) kinds = {*fixed_.recompute};
    for (const Recomputation& recompute : kinds) {
      layout.recompute = recompute;
      for (const bool sequence : {false, true}) {
        layout.sequence_parallel = sequence;
        if (sequence && (layout.tensor == 1 || settings_.model.seq_length % layout.tensor != 0)) continue;
        if (sequence && !layout.slicing.is_whole() && layout.micro_batch > 1) continue;
        for (const bool sharded : {false, true}) {
          layout.distributed_optimizer = sharded;
          if (sharded && layout.data == 1 && !fixed_.distributed_optimizer) continue;
          if (fixed_.allows(layout)) found_.push_back(layout);
        }
      }
    }
  }

  const StepSettings& settings_;
  const FixedLayout& fixed_;
  std::vector<Layout>& found_;
};

template <class Value>
bool agrees(const std::optional<Value>& fixed, const Value& value) {
  return !fixed || *fixed == value;
}

// "3,4,4,1"; a long list as its runs: "24x1,8x2".
template <class Element>
std::string short_list(const std::vector<Element>& elements) {
  constexpr std::size_t kMost = 8;
  if (elements.size() <= kMost) return fmt::format("{}", fmt::join(elements, ","));
  std::vector<std::string> runs;
  for (auto begin = elements.begin(); begin != elements.end();) {
    const auto end = std::find_if(begin, elements.end(), [&](const Element& other) { return other != *begin; });
    runs.push_back(fmt::format("{}x{}", end - begin, *begin));
    begin = end;
  }
  return fmt::format("{}", fmt::join(runs, ","));
}

// "full recompute", "recompute full:3,none"; empty: none.
std::string recompute_text(const Recomputation& recompute) {
  const std::optional<Recompute> uniform = recompute.uniform();
  if (uniform) return *uniform == Recompute::kNone ? "" : fmt::format("{} recompute", name_of(*uniform));
  std::vector<std::string> ways;
  for (int stage = 0; stage < static_cast<int>(recompute.stages()); ++stage) ways.push_back(recompute.of(stage).text());
  return "recompute " + short_list(ways);
}

bool has_fault(const StepSettings& settings, Layout layout) {
  // The lengths are not known yet; two slices have the faults of several. Settings check joint ones.
  if (layout.slicing.open == Slicing::Open::kAlike) layout.slicing = {.text = "uniform:2"};
  return !with_layout(settings, layout).faults().empty();
}

}  // namespace

pipeline::TokenSlices Slicing::slices() const {
  return text.empty() ? pipeline::TokenSlices() : pipeline::parse_token_slices("--token-slices", text);
}

Slicing slicing_of(const PipelineSettings& settings) {
  if (settings.chooses_slices()) return {.text = "", .open = Slicing::Open::kAlike};
  if (settings.chooses_micro_batches()) return {.text = "", .open = Slicing::Open::kJoint};
  return {.text = settings.token_slices};
}

std::string Layout::text() const {
  std::vector<std::string> parts = {fmt::format("tp {} pp {} dp {}", tensor, pipeline, data),
                                    fmt::format("micro-batch {}", micro_batch)};
  if (const std::string of_pipeline = pipeline_text(); !of_pipeline.empty()) parts.push_back(of_pipeline);
  if (sequence_parallel) parts.emplace_back("sequence parallel");
  if (distributed_optimizer) parts.emplace_back("sharded optimizer");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string Layout::pipeline_text() const {
  std::vector<std::string> parts;
  if (pipeline > 1) parts.emplace_back(pipeline::name_of(schedule));
  if (virtual_stages > 1) parts.push_back(fmt::format("{} virtual stages", virtual_stages));
  if (!slicing.text.empty()) parts.push_back(fmt::format("slices {}", slicing.text));
  if (std::string again = recompute_text(recompute); !again.empty()) parts.push_back(std::move(again));
  if (defer_weight_gradients) parts.emplace_back("deferred weight gradients");
  if (!layers.empty()) parts.push_back(fmt::format("layers {}", short_list(layers)));
  if (vocabulary_parallel) parts.emplace_back("the vocabulary shared out");
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool FixedLayout::allows(const Layout& layout) const {
  return agrees(tensor, layout.tensor) && agrees(pipeline, layout.pipeline) && agrees(data, layout.data) &&
         agrees(micro_batch, layout.micro_batch) && agrees(virtual_stages, layout.virtual_stages) &&
         agrees(schedule, layout.schedule) && agrees(slicing, layout.slicing) &&
         (!keeps_layers || (layout.layers.empty() && !layout.deals_layers)) &&
         agrees(vocabulary_parallel, layout.vocabulary_parallel) && agrees(recompute, layout.recompute) &&
         agrees(sequence_parallel, layout.sequence_parallel) &&
         agrees(distributed_optimizer, layout.distributed_optimizer) &&
         agrees(defer_weight_gradients, layout.defer_weight_gradients);
}

std::optional<Layout> deferring(const Layout& layout, const FixedLayout& fixed) {
  const bool is_open = fixed.has_mesh() && !fixed.defer_weight_gradients;
  if (!is_open || layout.defer_weight_gradients || layout.pipeline == 1) return std::nullopt;
  Layout deferred = layout;
  deferred.defer_weight_gradients = true;
  return deferred;
}

std::int64_t share_of_batch(const StepSettings& settings, std::int64_t data) {
  return (settings.batch.global_batch_size + data - 1) / data;
}

std::int64_t micro_batches_of(const StepSettings& settings, const Layout& layout) {
  return (share_of_batch(settings, layout.data) + layout.micro_batch - 1) / layout.micro_batch;
}

std::vector<Layout> layouts_on(std::int64_t devices, const StepSettings& settings, const FixedLayout& fixed) {
  std::vector<Layout> found;
  MeshLayouts of_mesh(settings, fixed, found);
  for (std::int64_t tensor = 1; tensor <= devices; ++tensor) {
    if (devices % tensor != 0 || !settings.model.config.splits_over(tensor)) continue;
    for (std::int64_t stages = 1; stages <= std::min(devices / tensor, settings.model.config.num_layers); ++stages) {
      const std::int64_t data = devices / tensor / stages;
      if (tensor * stages * data != devices || data > settings.batch.global_batch_size) continue;
      if (!agrees(fixed.tensor, tensor) || !agrees(fixed.pipeline, stages) || !agrees(fixed.data, data)) continue;
      of_mesh.add({.tensor = tensor, .pipeline = stages, .data = data});
    }
  }
  std::erase_if(found, [&](const Layout& layout) { return has_fault(settings, layout); });
  return found;
}

std::vector<Layout> dealt(const StepSettings& settings, const Layout& layout) {
  const pipeline::CellMap map{static_cast<int>(layout.pipeline), pipeline::traits_of(layout.schedule).placement};
  std::vector<Layout> all;
  for (const std::vector<std::int64_t>& cells :
       layer_dealings(settings.model.config.num_layers, map, layout.virtual_stages)) {
    Layout& one = all.emplace_back(layout);
    one.deals_layers = false;
    if (all.size() > 1) one.layers = cells;
  }
  return all;
}

void set_layout(StepSettings& settings, const Layout& layout) {
  settings.layout.tensor_parallel = layout.tensor;
  settings.layout.pipeline_parallel = layout.pipeline;
  settings.layout.data_parallel = layout.data;
  settings.batch.micro_batch_size = layout.micro_batch;
  settings.pipeline.schedule = layout.schedule;
  settings.pipeline.virtual_stages = layout.virtual_stages;
  settings.pipeline.token_slices = layout.slicing.flag_value();
  settings.layout.recompute = layout.recompute.text();
  settings.layout.sequence_parallel = layout.sequence_parallel;
  settings.layout.distributed_optimizer = layout.distributed_optimizer;
  settings.pipeline.defer_weight_gradients = layout.defer_weight_gradients;
  settings.pipeline.vocabulary_parallel = layout.vocabulary_parallel;
  const std::int64_t cells = layout.pipeline * layout.virtual_stages;
  if (!layout.layers.empty()) {
    settings.pipeline.layout = fmt::format("{}", fmt::join(layout.layers, ","));
  } else if (settings.pipeline.layout.empty() && settings.model.config.num_layers % cells != 0) {
    settings.pipeline.layout = fmt::format(
        "{}", fmt::join(pipeline::even_slices(settings.model.config.num_layers, static_cast<int>(cells)), ","));
  }
}

Layout layout_of(const StepSettings& settings) {
  return {.tensor = settings.layout.tensor_parallel,
          .pipeline = settings.layout.pipeline_parallel,
          .data = settings.layout.data_parallel,
          .micro_batch = settings.batch.micro_batch_size,
          .schedule = schedule_kind(settings.pipeline),
          .virtual_stages = settings.pipeline.virtual_stages,
          .slicing = slicing_of(settings.pipeline),
          .recompute = settings.layout.recomputation(),
          .sequence_parallel = settings.layout.sequence_parallel,
          .distributed_optimizer = settings.layout.distributed_optimizer,
          .defer_weight_gradients = settings.pipeline.defer_weight_gradients,
          .vocabulary_parallel = settings.pipeline.vocabulary_parallel};
}

std::vector<std::vector<std::int64_t>> stage_cells(const StepSettings& settings, const Layout& layout) {
  std::vector<std::int64_t> cells = layout.layers;
  if (cells.empty()) {
    const auto count = static_cast<int>(layout.pipeline * layout.virtual_stages);
    const auto given = comma_separated(settings.pipeline.layout);
    cells = given ? *given : pipeline::even_slices(settings.model.config.num_layers, count);
  }
  const pipeline::CellMap map{static_cast<int>(layout.pipeline), pipeline::traits_of(layout.schedule).placement};
  std::vector<std::vector<std::int64_t>> stages(static_cast<std::size_t>(layout.pipeline));
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    stages[static_cast<std::size_t>(map.stage_of(static_cast<int>(cell)))].push_back(cells[cell]);
  }
  return stages;
}

std::vector<AlikeCuts> cuts_of(const StepSettings& settings, const Layout& layout) {
  const std::int64_t share = share_of_batch(settings, layout.data), size = std::min(layout.micro_batch, share);
  AlikeCuts alike{.cut = {.sequences = size, .slice_tokens = {settings.model.seq_length}},
                  .count = static_cast<double>(share) / static_cast<double>(size)};
  if (layout.slicing.is_whole()) return {alike};
  const pipeline::TokenSlices slices = layout.slicing.slices();
  std::vector<AlikeCuts> all;
  for (const pipeline::MicroBatchCut& cut : slices.cuts) {
    if (all.empty() || all.back().cut != cut) all.push_back({.cut = cut});
    ++all.back().count;
  }
  if (!all.empty()) return all;
  alike.cut.slice_tokens = slices.lengths;
  if (slices.lengths.empty()) {
    const std::int64_t unit = layout.sequence_parallel ? layout.tensor : 1;
    alike.cut.slice_tokens = pipeline::even_slices(settings.model.seq_length / unit, slices.count);
    for (std::int64_t& length : alike.cut.slice_tokens) length *= unit;
  }
  return {alike};
}

std::vector<Layout> cut_into(const Layout& layout, const std::vector<std::vector<std::int64_t>>& cuts) {
  std::vector<Layout> all;
  for (const std::vector<std::int64_t>& lengths : cuts) {
    if (lengths.size() == 1) continue;
    const bool is_even = std::ranges::all_of(lengths, [&](std::int64_t length) { return length == lengths.front(); });
    all.push_back(layout);
    all.back().slicing = {is_even ? fmt::format("uniform:{}", lengths.size())
                                  : fmt::format("{}", fmt::join(lengths, ","))};
  }
  return all;
}

}  // namespace teratron::plan

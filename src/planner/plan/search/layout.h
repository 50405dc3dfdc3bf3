// Layouts of an update over devices that a planner looks at: tensor, pipeline and data parallelism
// (Megatron-LM, arXiv 1909.08053 and 2104.04473), micro-batches, schedules, token slices (TeraPipe, arXiv 2102.07988),
// recomputation (arXiv 2205.05198), vocabulary parallelism over stages (arXiv 2411.05288) and the sharded optimizer
// (ZeRO, arXiv 1910.02054).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/generators.h"
#include "pipeline/token_slices.h"
#include "settings/step_settings.h"

namespace teratron::plan {

// Cuts of sequences into slices of tokens.
struct Slicing {
  // Cuts that LayoutCosts::chosen() makes at the layout's turn. kAlike: one cut for micro-batches of the layout's size.
  // kJoint: micro-batches of that size at most, each in slices of its own.
  enum class Open { kNone, kAlike, kJoint };

  std::string text;         // as --token-slices takes it; empty: sequences run whole
  Open open = Open::kNone;  // in place of it

  bool is_open() const { return open != Open::kNone; }
  bool is_whole() const { return text.empty() && !is_open(); }
  pipeline::TokenSlices slices() const;  // is_open(): one
  std::string flag_value() const { return open == Open::kJoint ? "joint" : text; }
  auto operator<=>(const Slicing&) const = default;
};
Slicing slicing_of(const PipelineSettings& settings);

struct Layout {
  std::int64_t tensor = 1, pipeline = 1, data = 1;
  std::int64_t micro_batch = 1;  // sequences
  pipeline::ScheduleKind schedule = pipeline::ScheduleKind::k1F1B;
  std::int64_t virtual_stages = 1;
  Slicing slicing;
  Recomputation recompute = {};
  bool sequence_parallel = false, distributed_optimizer = false;
  bool defer_weight_gradients = false, vocabulary_parallel = false;
  std::vector<std::int64_t> layers;  // of each cell; empty: the configuration's, or equal numbers
  bool deals_layers = false;         // in place of them: dealt once the slices are chosen (layer_dealing.h)

  std::int64_t devices() const { return tensor * pipeline * data; }
  std::string text() const;           // "tp 8 pp 4 dp 2, micro-batch 1, seq1f1b, slices uniform:4, full recompute"
  std::string pipeline_text() const;  // "seq1f1b, slices uniform:4, full recompute"
  auto operator<=>(const Layout&) const = default;
};

// Choices that the user has fixed; the rest is searched.
struct FixedLayout {
  std::optional<std::int64_t> tensor, pipeline, data, micro_batch, virtual_stages;
  std::optional<pipeline::ScheduleKind> schedule;
  std::optional<Slicing> slicing;
  std::optional<Recomputation> recompute;
  std::optional<bool> sequence_parallel, distributed_optimizer, defer_weight_gradients, vocabulary_parallel;
  bool keeps_layers = false;  // the configuration's, or equal numbers: none are dealt

  bool allows(const Layout& layout) const;
  // Whether layouts differ in the pipeline alone. There are few enough then to look at every schedule.
  bool has_mesh() const { return tensor && pipeline; }
  bool is_empty() const { return *this == FixedLayout{}; }
  bool operator==(const FixedLayout&) const = default;
};

// The model, the sequences and the global batch are those of `settings`, whose layout does not matter but for a
// --pipeline-layout. Exactly so many devices; micro-batches are powers of two (or what is fixed), slices even in powers
// of two of at least kFewestSliceTokens tokens, or the slicer's. Slices times cells, cells in a V, deferred weight
// gradients (deferring()), layers to be dealt and a shared vocabulary are there only where they or the mesh are fixed.
// None has faults. Empty: there is no way.
inline constexpr std::int64_t kFewestSliceTokens = 32, kMostSlices = 32;
std::vector<Layout> layouts_on(std::int64_t devices, const StepSettings& settings, const FixedLayout& fixed);

// The layout with deferred weight gradients. Nothing: it has them already or has one stage, they are fixed, or the mesh
// is not.
std::optional<Layout> deferring(const Layout& layout, const FixedLayout& fixed);

// The layout in every dealing of its layers (layer_dealing.h). Equal numbers are an empty Layout::layers.
std::vector<Layout> dealt(const StepSettings& settings, const Layout& layout);

// Sets the layout, with the layers of stages where they do not divide. Layers to be dealt are in equal numbers.
void set_layout(StepSettings& settings, const Layout& layout);
template <class Settings>  // StepSettings, or a TrainConfig
Settings with_layout(Settings settings, const Layout& layout) {
  set_layout(settings, layout);
  return settings;
}
// The choices that with_layout() takes.
Layout layout_of(const StepSettings& settings);

// Layers of the cells of each stage, [stage][cell of the stage]. Layers to be dealt are in equal numbers.
std::vector<std::vector<std::int64_t>> stage_cells(const StepSettings& settings, const Layout& layout);

// Sequences and micro-batches of the copy of the model that has most of the batch.
std::int64_t share_of_batch(const StepSettings& settings, std::int64_t data);  // sequences
std::int64_t micro_batches_of(const StepSettings& settings, const Layout& layout);

// Micro-batches that are cut alike, and how many of them an update has: where the last one is smaller, a fraction.
struct AlikeCuts {
  pipeline::MicroBatchCut cut;
  double count = 0;
};
// Most sequences first. The slices of `layout` are chosen.
std::vector<AlikeCuts> cuts_of(const StepSettings& settings, const Layout& layout);

// The layout in each of these cuts of its sequences. A cut of one slice leaves sequences whole.
std::vector<Layout> cut_into(const Layout& layout, const std::vector<std::vector<std::int64_t>>& cuts);

}  // namespace teratron::plan

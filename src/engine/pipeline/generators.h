// The schedules by name. Each is a pure function of its ScheduleSize.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/faults.h"
#include "pipeline/schedule.h"

namespace teratron::pipeline {

enum class ScheduleKind {
  kGpipe,               // all forward, then all backward (arXiv 1811.06965)
  k1F1B,                // backward as soon as there is one to do (PipeDream-Flush; arXiv 2006.09503)
  kInterleaved,         // 1F1B over virtual stages in Megatron-LM's order (arXiv 2104.04473, section 2.2)
  kTeraPipe,            // all forward over the slices of all micro-batches, then all backward, slices last to first
  kSeq1F1B,             // 1F1B over slices (arXiv 2406.03488)
  kSeq1F1BInterleaved,  // Seq1F1B-I of the same paper: slices and virtual stages
  kVMin,                // V placement in a third of 1F1B's memory (v_schedules.h; arXiv 2405.15362)
  kVHalf,               // in half of it
  kVZeroBubble,         // in all of it, without bubbles once the pipeline is full
};

inline constexpr std::array kScheduleKinds = {
    ScheduleKind::kGpipe,    ScheduleKind::k1F1B,    ScheduleKind::kInterleaved,
    ScheduleKind::kTeraPipe, ScheduleKind::kSeq1F1B, ScheduleKind::kSeq1F1BInterleaved,
    ScheduleKind::kVMin,     ScheduleKind::kVHalf,   ScheduleKind::kVZeroBubble};

// Properties in which kinds differ, for all that treats some of them alike.
struct ScheduleTraits {
  const char* name;
  bool takes_slices = false;            // of tokens
  bool holds_all = false;               // all activations of a step live before the first backward
  int least_cells = 1, most_cells = 1;  // a stage
  bool fills_groups = false;            // micro-batches are a multiple of the stages
  Placement placement = Placement::kInTurns;

  bool has_cells(int cells) const { return cells >= least_cells && cells <= most_cells; }
};
const ScheduleTraits& traits_of(ScheduleKind kind);

inline const char* name_of(ScheduleKind kind) { return traits_of(kind).name; }

struct ScheduleSize {
  int stages = 1, micro_batches = 1, slices = 1, virtual_stages = 1;
  // Slices of each micro-batch where they differ; `slices` are then the most.
  std::vector<int> slices_each = {};
  bool vocabulary_parallel = false;  // passes of the vocabulary are to come (vocabulary_passes.h), which take room

  int slices_of(int micro_batch) const {
    return slices_each.empty() ? slices : slices_each[static_cast<std::size_t>(micro_batch)];
  }
  void set_slices(std::vector<int> of_micro_batches);  // one each
};

// The most actions of a schedule: each rank holds them all, as a simulation does.
constexpr std::int64_t kMostActions = 4'000'000;
// Actions of a schedule of this size, or somewhat fewer or more: a double, since sizes may be anything.
double count_actions(const ScheduleSize& size);

// The options that a command takes the kind and the size of a schedule from, for messages.
struct ScheduleFlags {
  Flag stages{"stages"}, micro_batches{"micro-batches"}, slices{"slices"}, virtual_stages{"virtual-stages"};
  std::optional<Flag> kind;     // messages that offer other kinds name it
  std::string slices_as_given;  // empty: their number
};

// Reasons why this kind of schedule cannot have that size, with sizes that it can have. Empty: make_schedule() makes
// it.
Faults size_faults(ScheduleKind kind, const ScheduleSize& size, const ScheduleFlags& flags = {});

// UserError with the faults where there are any. Micro-batches are taken in order, forward and backward, so that
// gradients are summed in the order in which one rank sums them.
Schedule make_schedule(ScheduleKind kind, const ScheduleSize& size);

}  // namespace teratron::pipeline

// Pipeline settings: cuts of layers and sequences, and the schedule of the stages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/rank_coordinates.h"
#include "options/fields.h"
#include "pipeline/generators.h"

namespace teratron {

struct PipelineSettings {
  std::optional<pipeline::ScheduleKind> schedule;  // nullopt: schedule_kind() chooses
  std::int64_t virtual_stages = 1;                 // cells of a stage
  std::string layout;                              // layers of each cell, "5,7", or "auto"; empty: equal numbers
  std::string token_slices;                        // "704,688,656", "uniform:8", "auto", ..; empty: whole sequences
  std::int64_t flushes = 1;                        // per update, each after a part of the micro-batches
  bool defer_weight_gradients = false;
  bool vocabulary_parallel = false;
  std::filesystem::path profile;  // measured costs of slices, for "auto"

  // Stages that share the vocabulary out, for make_model(); one: none do.
  GroupRank vocabulary_stages(GroupRank pipeline) const { return vocabulary_parallel ? pipeline : GroupRank{}; }

  // "auto", which the planner answers; until then cells have equal numbers.
  bool chooses_layers() const { return layout == "auto"; }
  // "auto", which a profile answers.
  bool chooses_slices() const { return token_slices == "auto"; }
  // "joint", which the planner answers and training refuses.
  bool chooses_micro_batches() const { return token_slices == "joint"; }
  // "documents:N", which needs packed documents.
  bool cuts_by_documents() const { return token_slices.starts_with("documents:"); }
};

// Schedule of --schedule; auto: seq1f1b with token slices, else 1f1b; of several cells a stage, seq1f1b-i or
// interleaved.
pipeline::ScheduleKind schedule_kind(const PipelineSettings& settings);

// Numbers of "5,7"; nullopt: not such a list.
std::optional<std::vector<std::int64_t>> comma_separated(std::string_view text);

// All schedules, for --schedule.
std::vector<std::pair<std::string, pipeline::ScheduleKind>> schedule_choices();

void add_pipeline_fields(FieldList& list, PipelineSettings& settings);  // under their own heading
void add_pipeline_layout_field(FieldList& list, PipelineSettings& settings);

}  // namespace teratron

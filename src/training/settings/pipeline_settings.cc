#include "settings/pipeline_settings.h"

#include <algorithm>
#include <charconv>

namespace teratron {

using pipeline::ScheduleKind;

ScheduleKind schedule_kind(const PipelineSettings& settings) {
  if (settings.schedule) return *settings.schedule;
  if (settings.virtual_stages > 1) {
    return settings.token_slices.empty() ? ScheduleKind::kInterleaved : ScheduleKind::kSeq1F1BInterleaved;
  }
  return settings.token_slices.empty() ? ScheduleKind::k1F1B : ScheduleKind::kSeq1F1B;
}

std::optional<std::vector<std::int64_t>> comma_separated(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, numbers.emplace_back());
    if (error != std::errc() || stop != text.data() + end) return std::nullopt;
    begin = end + 1;
  }
  return numbers;
}

std::vector<std::pair<std::string, ScheduleKind>> schedule_choices() {
  std::vector<std::pair<std::string, ScheduleKind>> choices;
  for (const ScheduleKind kind : pipeline::kScheduleKinds) choices.emplace_back(pipeline::name_of(kind), kind);
  return choices;
}

void add_pipeline_fields(FieldList& list, PipelineSettings& s) {
  std::vector<std::pair<std::string, std::optional<ScheduleKind>>> schedules = {{"auto", std::nullopt}};
  for (const auto& [name, kind] : schedule_choices()) schedules.emplace_back(name, kind);
  list.group("Pipeline", FieldScope::kLayout);
  list.add_choice(
      "schedule", s.schedule, schedules,
      "order of the stages' work; not given: seq1f1b with --token-slices, else 1f1b; with --virtual-stages "
      "seq1f1b-i or interleaved; auto, given: the fastest that fits, with cells, their layers, slices, deferred "
      "weight gradients, a shared vocabulary and recompute where they are not given");
  list.add("virtual-stages", &s.virtual_stages, "V",
           "cells of layers per stage, for interleaved and seq1f1b-i; 2 for v-min, v-half and v-zb");
  add_pipeline_layout_field(list, s);
  list.add("token-slices", &s.token_slices, "L,L,..|uniform:N|documents:N|NxL,L,..+NxL,..|auto",
           "cut sequences into slices of so many tokens, into N slices, into N whose cuts follow the documents of each "
           "micro-batch (with --packing best-fit), micro-batches of N sequences each in its own "
           "way (2x512,512+1x1024, from plan --token-slices joint), or as --profile says is best");
  list.add("pipeline-flushes", &s.flushes, "N",
           "empty the pipeline N times an update, so that gpipe and terapipe hold 1/N of the activations at a time");
  list.add("defer-weight-gradients", &s.defer_weight_gradients, "",
           "compute weight gradients while a stage would wait, in the memory that the schedule needs anyway");
  list.add("vocabulary-parallel", &s.vocabulary_parallel, "",
           "share the embedding and the output projection out over all stages; stages hold a few more micro-batches");
  list.add("profile", &s.profile, "FILE",
           "measured costs of slices, for --token-slices auto (teratron profile); measured and written there if "
           "it does not exist. Without it: in the user's cache")
      .of(FieldScope::kCommand);
}

void add_pipeline_layout_field(FieldList& list, PipelineSettings& s) {
  list.add("pipeline-layout", &s.layout, "L,L,..|auto",
           "layers of each cell, in order; auto: those with which an update is fastest; equal numbers if not given");
}

}  // namespace teratron

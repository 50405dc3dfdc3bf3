#include "cli/scoring.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/monotonic_clock.h"
#include "cli/report.h"
#include "console/live_line.h"
#include "console/readable.h"
#include "runtime/loaded_model.h"

namespace teratron {

Faults ScoringOptions::faults() const {
  Faults faults = layout.faults();
  faults.add(backend.faults());
  faults.add_if(stride < 0, "{} is {}; it must not be negative", Flag{"overlapping-eval"}, stride);
  return faults;
}

void add_scoring_fields(FieldList& list, ScoringOptions& o, std::string stride_help) {
  list.add("tokenizer", &o.tokenizer, "DIR", "the one saved with the checkpoint if not given");
  list.add("overlapping-eval", &o.stride, "N", std::move(stride_help));
  list.add("micro-batch-size", &o.batch, "N", "windows computed at a time").between(1);
  add_model_parallel_fields(list, o.layout);
  add_data_parallel_field(list, o.layout, "copies of the model, each with its share of the windows");
  add_threads_field(list, o.layout);
  add_json_field(list, o.json);
  add_loaded_precision_fields(list, o.backend);
  add_backend_fields(list, o.backend);
}

ScoringObserver show_scoring(const Rank& rank) {
  const auto line = std::make_shared<LiveLine>(stderr, rank.is_first() ? terminal_columns(stderr) : 0);
  return [line, start = monotonic_seconds()](const ScoringState& state) {
    if (state.scored == state.targets) return line->clear();
    const auto scored = static_cast<double>(state.scored);
    const double left = (monotonic_seconds() - start) / scored * static_cast<double>(state.targets - state.scored);
    line->show(fmt::format("scored {} of {} targets, loss {:.4f}, {} left", state.scored, state.targets,
                           state.sum / scored, readable_duration(left)));
  };
}

}  // namespace teratron

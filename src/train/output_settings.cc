#include "train/output_settings.h"

#include <limits>

namespace teratron {

Faults OutputSettings::faults() const {
  constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();
  constexpr Flag kSaveInterval{"save-interval"};
  Faults faults;
  faults.need_between(kSaveInterval, save_interval, 0, kMostCount);
  faults.need_between({"keep-last"}, keep_last, 0, kMostCount);
  faults.need_between({"log-interval"}, log_interval, 1, kMostCount);
  faults.need_between({"eval-interval"}, eval_interval, 0, kMostCount);
  faults.need_between({"eval-iters"}, eval_iters, 1, kMostCount);
  faults.add_if(save_interval > 0 && save.empty(), "{} {} needs a place to save: {} DIR", kSaveInterval, save_interval,
                Flag{"save"});
  return faults;
}

void add_output_fields(FieldList& list, OutputSettings& s) {
  list.group("Checkpoints and reports");
  list.add("save", &s.save, "DIR", "where checkpoints, metrics.jsonl and config.toml go");
  list.add("load", &s.load, "DIR", "checkpoint to go on from");
  list.add("save-interval", &s.save_interval, "N", "updates between checkpoints; 0: one at the end");
  list.add("keep-last", &s.keep_last, "N", "checkpoints kept, older ones are deleted; 0: all");
  list.add("log-interval", &s.log_interval, "N", "updates between lines of the log");
  list.add("eval-interval", &s.eval_interval, "N", "updates between validations; 0: one at the end");
  list.add("eval-iters", &s.eval_iters, "N", "batches a validation");
  list.add("json", &s.json, "FILE", "results as JSON; - is standard output");
  list.add("trace", &s.trace, "FILE",
           "what every stage did when in the last iterations, for Perfetto or chrome://tracing");
}

}  // namespace teratron

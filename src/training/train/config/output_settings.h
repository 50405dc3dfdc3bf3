// Files that a training run writes, where and how often.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/faults.h"
#include "options/fields.h"

namespace teratron {

struct OutputSettings {
  std::filesystem::path save, load;
  std::int64_t iteration = 0;         // of the checkpoint of `load`; 0: the current one
  std::filesystem::path finetune;     // whose weights a new run starts from
  bool override_schedule = false;     // a resumed run may follow another learning rate
  std::int64_t save_interval = 0;     // 0: by time
  double save_interval_in_mins = 10;  // 0: at the end only
  bool async_save = false;            // checkpoints are written beside training, from a copy
  std::int64_t keep_last = 0;         // 0: all
  std::int64_t log_interval = 10;
  std::int64_t eval_interval = 0;  // 0: at the end only
  std::int64_t eval_iters = 10;
  std::int64_t check_replicas = 0;  // updates between comparisons; 0: none
  bool trace_numerics = false;      // by layer, in numerics.jsonl; and faults are replayed
  bool save_best = false;
  std::int64_t early_stop = 0;       // validations without a lower loss; 0: goes on
  double exit_duration_in_mins = 0;  // of the command; 0: goes on
  std::filesystem::path json;        // "-": standard output
  std::filesystem::path trace;       // what every stage did when
  bool verbose = false;              // show all settings at the start
  std::filesystem::path tensorboard_dir;
  bool tensorboard_is_recorded = false;     // it is the checkpoint's, and nobody has given it here; without a flag
  std::vector<std::string> sample_prompts;  // continued at every validation
  std::int64_t sample_tokens = 32;          // by at most so many tokens
  double peak_tflops = 0;                   // of a rank; 0: measured

  // The checkpoint that is gone on from, as load_checkpoint takes it; empty: none.
  std::filesystem::path checkpoint() const;
  Faults faults() const;
};

void add_output_fields(FieldList& list, OutputSettings& settings);  // under a heading of their own

}  // namespace teratron

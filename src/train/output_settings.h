// What a training run writes, where and how often.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/faults.h"
#include "options/fields.h"

namespace teratron {

struct OutputSettings {
  std::filesystem::path save, load;
  std::int64_t save_interval = 0;  // 0: at the end only
  std::int64_t keep_last = 0;      // 0: all
  std::int64_t log_interval = 10;
  std::int64_t eval_interval = 0;  // 0: at the end only
  std::int64_t eval_iters = 10;
  std::filesystem::path json;   // "-": standard output
  std::filesystem::path trace;  // what every stage did when

  Faults faults() const;
};

void add_output_fields(FieldList& list, OutputSettings& settings);  // under a heading of their own

}  // namespace teratron

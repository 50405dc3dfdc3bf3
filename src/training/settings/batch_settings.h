// How many samples an update takes, and how many of them are computed at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/faults.h"
#include "data/batch_schedule.h"
#include "options/fields.h"

namespace teratron {

struct BatchSettings {
  std::int64_t micro_batch_size = 4;
  std::int64_t global_batch_size = 0;           // 0: one micro-batch for each data-parallel rank
  std::vector<std::int64_t> rampup_batch_size;  // start, increment, samples (data/batch_schedule.h); empty: none
  // Samples that no layout takes apart: the sequences of a task's example. It has no flag; batches are multiples of it.
  std::int64_t samples_together = 1;

  std::int64_t largest_batch(std::int64_t data_parallel) const {  // samples of an update, at the end of a ramp
    return global_batch_size > 0 ? global_batch_size : micro_batch_size * data_parallel;
  }
  BatchSchedule batches(std::int64_t data_parallel, const BatchesDone& done = {}) const;
  Faults faults(std::int64_t data_parallel) const;
};

void add_micro_batch_size_field(FieldList& list, BatchSettings& settings);
void add_global_batch_fields(FieldList& list, BatchSettings& settings);

}  // namespace teratron

// What a Trainer trains: a model of some kind, and the samples that this kind of model learns from.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/samples.h"
#include "executor/executor.h"
#include "model/make_model.h"
#include "tasks/task.h"
#include "train/training_data.h"
#include "train/watch/text_sample.h"

namespace teratron {

// By what a resumed run knows its data set again, wherever that lies now.
struct DataCounts {
  std::int64_t documents = 0, tokens = 0;
  bool operator==(const DataCounts&) const = default;
};

struct TrainingTask {
  ModelConfig config;
  std::unique_ptr<Model> model;  // this tensor-parallel rank's part
  std::unique_ptr<const Samples> training;
  std::unique_ptr<const Samples> validation;  // null where nothing is held out
  SplitRule split_rule;
  std::string split_description;  // for people
  TextSamples samples;
  DataCounts data;  // of all parts together
  // Of fine-tuning: measured at each validation, by all ranks together and with the same result on each. Checkpoints
  // are compared by the first score then, and not by losses.
  std::function<std::vector<TaskScore>(Executor&)> scores;
};

// UserError where a corpus was made with another tokenizer than the configuration's (which is the checkpoint's where a
// run goes on: start_reading.h). A corpus or a run that knows of none is taken.
void check_corpus_tokenizer(const TrainConfig& config, const TrainingData& data);

// UserError: what the configuration, the data and the checkpoint of --load, whose split is kept to, cannot do together.
TrainingTask make_training_task(const TrainConfig& config, const TrainingData& data, std::int64_t vocab_size,
                                GroupRank tensor = {});

}  // namespace teratron

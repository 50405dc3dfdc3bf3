// A Trainer's task: a model of some kind and its samples.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/native/checkpoint.h"
#include "data/samples.h"
#include "executor/executor.h"
#include "model/make_model.h"
#include "tasks/task.h"
#include "train/training_data.h"
#include "train/watch/text_sample.h"

namespace teratron {

// Identity of a data set, by which a resumed run recognises it in any place.
struct DataIdentity {
  std::int64_t documents = 0, tokens = 0;
  std::int64_t content = 0;  // of the content (data/indexed/content_check.h)
  // Checksums of a task's examples (TaskExamples::checksum), to train on and to validate on, or of the first samples of
  // pre-training's validation; 0: not known.
  std::int64_t examples = 0, validation_examples = 0;
  bool operator==(const DataIdentity&) const = default;
};

struct TrainingTask {
  RunOrigin run;  // for its checkpoints
  ModelConfig config;
  std::unique_ptr<Model> model;  // this tensor-parallel rank's part
  std::unique_ptr<const Samples> training;
  std::unique_ptr<const Samples> validation;  // null where nothing is held out
  SplitRule split_rule;
  std::string split_description;  // for people
  TextSamples samples;
  DataIdentity data;  // of all parts together
  // Fine-tuning's scores, measured at each validation by all ranks together with the same result on each. Checkpoints
  // are then compared by the first score, not by losses.
  std::function<std::vector<TaskScore>(Executor&)> scores;
};

// Writes the data's identity to a training state, for resumed runs to compare.
void record_data(const DataIdentity& data, TrainingState& state);
// Whether the run of this state has validated on other samples, with whose losses ours do not compare.
bool validates_on_others(const TrainingState& state, const DataIdentity& data);
// UserError: the run of the checkpoint read other data. Older checkpoints without an identity pass.
void require_same_data(const CheckpointInfo& checkpoint, const RunOrigin& run, const DataIdentity& data);

// UserError where a corpus was made with another tokenizer than the configuration's (which is the checkpoint's where a
// run goes on: start_reading.h). A corpus or a run without one passes.
void check_corpus_tokenizer(const TrainConfig& config, const TrainingData& data);

// Pre-training. UserError: a model that ends in the head of a task; what the configuration, the data and the checkpoint
// of --load, whose split is kept to, cannot do together.
TrainingTask make_training_task(const TrainConfig& config, const TrainingData& data, std::int64_t vocab_size,
                                const RankCoordinates& rank = {});

}  // namespace teratron

// What a Trainer trains: a model of some kind, and the samples that this kind of model learns from.
#pragma once

#include <memory>
#include <string>

#include "data/indexed_dataset.h"
#include "data/samples.h"
#include "model/make_model.h"
#include "train/config.h"

namespace teratron {

struct TrainingTask {
  ModelConfig config;
  std::unique_ptr<Model> model;  // this tensor-parallel rank's part
  std::unique_ptr<const Samples> training;
  std::unique_ptr<const Samples> validation;  // null where the split has no validation part
  SplitRule split_rule;
  std::string split_description;  // for people
};

// UserError where the corpus was made with another tokenizer than that of --tokenizer, or of the checkpoint of --load;
// a corpus or a run that knows of none is taken.
void check_corpus_tokenizer(const TrainConfig& config);

// UserError: what the configuration, the data and the checkpoint of --load, whose split is kept to, cannot do together.
TrainingTask make_training_task(const TrainConfig& config, const std::shared_ptr<const IndexedDataset>& dataset,
                                std::int64_t vocab_size, GroupRank tensor = {});

}  // namespace teratron

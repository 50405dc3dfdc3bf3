// The corpora that a training run reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/data_path.h"
#include "data/samples.h"
#include "data/split/corpus_split.h"
#include "train/config/config.h"

namespace teratron {

// Opened once a process and shared by its ranks.
struct TrainingData {
  std::vector<WeightedCorpus> training;    // one, or those of a blend
  std::vector<WeightedCorpus> validation;  // of --valid-data-path; none: the validation part of each of `training`

  TrainingData() = default;
  TrainingData(std::shared_ptr<const IndexedDataset> corpus) { training.push_back({1, std::move(corpus)}); }  // NOLINT
};

// UserError: as open_corpora; a corpus to be validated on that is also trained on.
TrainingData open_training_data(const TrainConfig& config);

// Samples of a run, by its seed and its split.
struct TrainingSamples {
  std::unique_ptr<const Samples> training;
  std::unique_ptr<const Samples> validation;  // null where the split has no validation part
  std::string description;                    // for people: how they are split, and the shares of a blend
};

// Samples as the kind of model needs them. Each corpus of a blend is split by itself and goes through epochs of its
// own; the validation parts are blended by the same weights. UserError: a part that is too short for one sample.
TrainingSamples make_training_samples(const TrainConfig& config, const TrainingData& data, const SplitRule& rule);

}  // namespace teratron

#include "train/training_task.h"

#include "base/error.h"
#include "data/indexed/corpus_sidecar.h"

namespace teratron {
namespace {

void add_samples(TrainingTask& task, const TrainConfig& config, const TrainingData& data) {
  task.split_rule = training_split(config, config.checkpoint());
  for (const WeightedCorpus& corpus : data.training) {
    task.data.documents += corpus.dataset->documents();
    task.data.tokens += corpus.dataset->tokens();
  }
  TrainingSamples samples = make_training_samples(config, data, task.split_rule);
  task.training = std::move(samples.training);
  task.validation = std::move(samples.validation);
  task.split_description = std::move(samples.description);
  if (task.validation || (!config.save_best && config.early_stop == 0)) return;
  throw_user_error(
      "{} compares validation losses, and --split {} leaves nothing to validate on; give it a second part, or "
      "--valid-data-path",
      config.save_best ? "--save-best" : "--early-stop", config.parts());
}

}  // namespace

void check_corpus_tokenizer(const TrainConfig& config, const TrainingData& data) {
  if (config.tokenizer.empty()) return;
  const Tokenizer tokenizer = Tokenizer::load(config.tokenizer);
  for (const auto* const corpora : {&data.training, &data.validation}) {
    for (const WeightedCorpus& corpus : *corpora) {
      for (const IndexedShard& shard : corpus.dataset->shards()) {
        require_tokenizer(shard.prefix(), tokenizer, config.tokenizer.string());
      }
    }
  }
}

TrainingTask make_training_task(const TrainConfig& config, const TrainingData& data, std::int64_t vocab_size,
                                GroupRank tensor) {
  TrainingTask task{.config = config.model_for(vocab_size)};
  add_samples(task, config, data);
  for (const auto* const corpora : {&data.training, &data.validation}) {
    for (const WeightedCorpus& corpus : *corpora) corpus.dataset->check_vocabulary(task.config.vocab_size);
  }
  task.samples = text_samples(config);
  task.model = make_model(task.config, tensor);
  return task;
}

}  // namespace teratron

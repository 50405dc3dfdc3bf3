#include "train/training_task.h"

#include <bit>

#include "base/error.h"
#include "data/indexed/content_check.h"
#include "data/indexed/corpus_sidecar.h"

namespace teratron {
namespace {

// By one number for all corpora of a blend, in their order.
std::int64_t content_of(const std::vector<WeightedCorpus>& corpora) {
  std::int64_t content = 0;
  for (const WeightedCorpus& corpus : corpora) {
    const std::uint64_t own = static_cast<std::uint64_t>(content_fingerprint(*corpus.dataset));
    content = static_cast<std::int64_t>((std::rotl(static_cast<std::uint64_t>(content), 7) ^ own) >> 1);
  }
  return content;
}

// The same corpora, of which no id outside the vocabulary is ever read. What can be seen of them at the start is.
std::vector<WeightedCorpus> checked(const std::vector<WeightedCorpus>& corpora, std::int64_t vocab_size,
                                    std::int64_t seed) {
  std::vector<WeightedCorpus> result;
  for (const WeightedCorpus& corpus : corpora) {
    check_content(*corpus.dataset, vocab_size, static_cast<std::uint64_t>(seed));
    result.push_back(
        {corpus.weight, std::make_shared<const IndexedDataset>(corpus.dataset->with_vocabulary(vocab_size))});
  }
  return result;
}

void add_samples(TrainingTask& task, const TrainConfig& config, const TrainingData& data) {
  task.split_rule = training_split(config, config.checkpoint());
  for (const WeightedCorpus& corpus : data.training) {
    task.data.documents += corpus.dataset->documents();
    task.data.tokens += corpus.dataset->tokens();
  }
  task.data.content = content_of(data.training);
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
  TrainingData read;
  read.training = checked(data.training, task.config.vocab_size, config.seed);
  read.validation = checked(data.validation, task.config.vocab_size, config.seed);
  add_samples(task, config, read);
  task.prompts = sample_prompts(config);
  if (!task.prompts.empty()) task.end_of_text = Tokenizer::load(config.tokenizer).end_of_text().value_or(-1);
  task.model = make_model(task.config, tensor);
  return task;
}

}  // namespace teratron

#include "train/training_task.h"

#include "base/error.h"
#include "data/gpt_samples.h"

namespace teratron {
namespace {

// For models that learn to continue text, as all kinds do that there are.
void add_gpt_samples(TrainingTask& task, const TrainConfig& config,
                     const std::shared_ptr<const IndexedDataset>& dataset) {
  const DocumentOptions documents = config.documents(config.tokenizer);
  task.split_rule = training_split(config, config.load);
  const std::vector<CorpusPart> parts = split_corpus(*dataset, parse_split(config.split), task.split_rule);
  task.split_description = describe(parts, task.split_rule);
  task.training = std::make_unique<GptSamples>(dataset, parts.front(), config.seq_length, SampleOrder::kShuffled,
                                               static_cast<std::uint64_t>(config.seed), documents);
  if (parts.size() < 2 || parts[1].tokens() == 0) {
    if (!config.save_best && config.early_stop == 0) return;
    throw_user_error(
        "{} compares validation losses, and --split {} leaves nothing to validate on; give it a second part",
        config.save_best ? "--save-best" : "--early-stop", config.split);
  }
  task.validation =
      std::make_unique<GptSamples>(dataset, parts[1], config.seq_length, SampleOrder::kSequential, 0, documents);
}

}  // namespace

TrainingTask make_training_task(const TrainConfig& config, const std::shared_ptr<const IndexedDataset>& dataset,
                                std::int64_t vocab_size, GroupRank tensor) {
  TrainingTask task{.config = config.model_for(vocab_size)};
  add_gpt_samples(task, config, dataset);
  dataset->check_vocabulary(task.config.vocab_size);
  task.model = make_model(task.config, tensor);
  return task;
}

}  // namespace teratron

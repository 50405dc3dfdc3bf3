#include "train/training_task.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/checksum.h"
#include "data/indexed/content_check.h"
#include "data/indexed/corpus_sidecar.h"
#include "runtime/recorded_data.h"

namespace teratron {
namespace {

// Fingerprint of the content of all corpora of a blend, in their order.
std::int64_t content_of(const std::vector<WeightedCorpus>& corpora) {
  std::int64_t content = 0;
  for (const WeightedCorpus& corpus : corpora) {
    const std::uint64_t own = static_cast<std::uint64_t>(content_fingerprint(*corpus.dataset));
    content = static_cast<std::int64_t>((std::rotl(static_cast<std::uint64_t>(content), 7) ^ own) >> 1);
  }
  return content;
}

// Fingerprint of validation samples: their number, and the first of them with their masks. Not 0.
std::int64_t content_of(const Samples& validation) {
  constexpr std::int64_t kRead = 8;
  const std::int64_t count = validation.samples_per_epoch();
  SampleBatch batch = validation.make_batch(std::min(count, kRead));
  validation.read({0, std::min(count, kRead)}, batch, 0);
  Checksum checksum;
  const auto add = [&](const auto& values) { checksum.update(std::as_bytes(std::span(values))); };
  add(std::array{count, validation.seq_length()});
  for (const auto* const values : {&batch.ids, &batch.token_types, &batch.first_keys, &batch.position_ids,
                                   &batch.targets, &batch.answers, &batch.labels}) {
    add(*values);
  }
  add(batch.weights);
  add(batch.label_weights);
  return static_cast<std::int64_t>(std::stoull(checksum.digest(), nullptr, 16) >> 1) | 1;
}

// Corpora that refuse ids outside the vocabulary when they are read. A part of each is checked at once.
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
  task.split_rule = training_split(config.split, config.output.checkpoint());
  for (const WeightedCorpus& corpus : data.training) {
    task.data.documents += corpus.dataset->documents();
    task.data.tokens += corpus.dataset->tokens();
  }
  task.data.content = content_of(data.training);
  TrainingSamples samples = make_training_samples(config, data, task.split_rule);
  task.training = std::move(samples.training);
  task.validation = std::move(samples.validation);
  task.split_description = std::move(samples.description);
  if (task.validation) task.data.validation_examples = content_of(*task.validation);
  if (task.validation || (!config.output.save_best && config.output.early_stop == 0)) return;
  throw_user_error(
      "{} compares validation losses, and --split {} leaves nothing to validate on; give it a second part, or "
      "--valid-data-path",
      config.output.save_best ? "--save-best" : "--early-stop", config.parts());
}

// Names in a checkpoint's training state.
constexpr const char *kDocuments = "data_documents", *kTokens = "data_tokens", *kContent = "data_fingerprint";
constexpr const char *kExamples = "data_examples", *kValidationExamples = "data_validation_examples";

bool is_other(std::int64_t there, std::int64_t here) { return there != 0 && here != 0 && there != here; }

}  // namespace

void record_data(const DataIdentity& data, TrainingState& state) {
  state.counters[kDocuments] = data.documents;
  state.counters[kTokens] = data.tokens;
  if (data.content != 0) state.counters[kContent] = data.content;
  if (data.examples != 0) state.counters[kExamples] = data.examples;
  if (data.validation_examples != 0) state.counters[kValidationExamples] = data.validation_examples;
}

bool validates_on_others(const TrainingState& state, const DataIdentity& data) {
  return is_other(state.counter(kValidationExamples), data.validation_examples);
}

void require_same_data(const CheckpointInfo& checkpoint, const RunOrigin& run, const DataIdentity& data) {
  const TrainingState& state = checkpoint.state;
  if (!state.counters.contains(kDocuments) || !state.counters.contains(kTokens)) return;
  const std::int64_t documents = state.counters.at(kDocuments), tokens = state.counters.at(kTokens);
  const std::string folder = checkpoint.folder.string();
  const bool has_other_counts = documents != data.documents || tokens != data.tokens;
  if (run.kind != RunKind::kFinetuning) {
    if (has_other_counts) {
      throw_user_error(
          "'{}' was trained on a data set of {} and {}, and that of --data-path has {} and {}: other "
          "samples would be read; name the one it was trained on, or allow it by --override-data",
          folder, counted(documents, "document"), counted(tokens, "token"), counted(data.documents, "document"),
          counted(data.tokens, "token"));
    }
    if (!is_other(state.counter(kContent), data.content)) return;
    throw_user_error(
        "'{}' was trained on another data set than that of --data-path, which has as many documents and tokens but "
        "other content: other samples would be read; name the one it was trained on, or allow it by --override-data",
        folder);
  }
  if (has_other_counts || is_other(state.counter(kExamples), data.examples)) {
    throw_user_error(
        "'{}' was trained on other examples: {} of {} in all, and --train-data has {} of {} as it is read now "
        "(--seq-length, --max-query-length, --doc-stride, --tokenizer); give what that run was given, or choose "
        "another "
        "--save",
        folder, documents, counted(tokens, "token"), data.documents, data.tokens);
  }
  if (validates_on_others(state, data)) {
    throw_user_error(
        "'{}' was scored on other examples than --valid-data has as it is read now, and its best checkpoint is that of "
        "the highest score; give what that run was given, or choose another --save. `teratron eval` scores a "
        "checkpoint on any set",
        folder);
  }
}

void check_corpus_tokenizer(const TrainConfig& config, const TrainingData& data) {
  if (config.model.tokenizer.empty()) return;
  const Tokenizer tokenizer = Tokenizer::load(config.model.tokenizer);
  for (const auto* const corpora : {&data.training, &data.validation}) {
    for (const WeightedCorpus& corpus : *corpora) {
      for (const IndexedShard& shard : corpus.dataset->shards()) {
        require_tokenizer(shard.prefix(), tokenizer, config.model.tokenizer.string());
      }
    }
  }
}

TrainingTask make_training_task(const TrainConfig& config, const TrainingData& data, std::int64_t vocab_size,
                                const RankCoordinates& rank) {
  TrainingTask task{.config = config.model.model_for(vocab_size)};
  if (task.config.head != ModelHead::kPretraining) {
    throw_user_error(
        "a model without the head of pre-training cannot be trained on texts; ModelConfig::"
        "set_pretraining_head() gives it one");
  }
  TrainingData read;
  read.training = checked(data.training, task.config.vocab_size, config.seed);
  read.validation = checked(data.validation, task.config.vocab_size, config.seed);
  add_samples(task, config, read);
  task.samples = text_samples(config);
  task.model = make_model(task.config, rank.tensor, config.pipeline.vocabulary_stages(rank.pipeline));
  return task;
}

}  // namespace teratron

#include "train/training_data.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "data/indexed/corpus_sidecar.h"
#include "data/samples/bert_samples.h"
#include "data/samples/blended_samples.h"
#include "data/samples/chat_samples.h"
#include "data/samples/gpt_samples.h"
#include "data/samples/packed_samples.h"
#include "data/samples/preference_samples.h"
#include "model/family.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

// A stream of RandomPurpose::kShuffle that data/samples/epoch_order.cc does not use.
constexpr std::uint32_t kCorpusStream = 64;

struct PartOfCorpus {
  WeightedCorpus corpus;
  CorpusPart part;
};

// Seed of a corpus of a blend, so that corpora of as many documents are shuffled differently. The first corpus has the
// run's own.
std::uint64_t seed_of_corpus(std::uint64_t seed, std::size_t corpus) {
  if (corpus == 0) return seed;
  const RandomStream stream{.seed = seed, .purpose = RandomPurpose::kShuffle, .stream = kCorpusStream};
  const PhiloxCounter bits = stream.bits(corpus);
  return std::uint64_t{bits[0]} << 32 | bits[1];
}

// Makes the samples of a part of a corpus, as the kind of model needs them.
class SampleMaker {
 public:
  explicit SampleMaker(const TrainConfig& config) : config_(config) {
    if (!config.model.config.family().continues_text) {
      bert_tokens_ = bert_tokens(Tokenizer::load(config.model.tokenizer));
    } else {
      documents_ = config.documents.options(config.model.tokenizer);
    }
  }

  std::unique_ptr<const Samples> operator()(const PartOfCorpus& from, SampleOrder order, std::size_t corpus) const {
    const std::uint64_t seed = seed_of_corpus(static_cast<std::uint64_t>(config_.seed), corpus);
    const auto& [weighted, part] = from;
    if (!config_.model.config.family().continues_text) {
      return std::make_unique<BertSamples>(weighted.dataset, part, config_.model.seq_length, order, seed, bert_tokens_,
                                           config_.bert.filled());
    }
    const auto& [are_chats, are_pairs] = std::pair(config_.documents.sft, config_.documents.dpo);
    for (const IndexedShard& shard : weighted.dataset->shards()) {
      are_chats   ? require_chats(shard.prefix())
      : are_pairs ? require_pairs(shard.prefix())
                  : require_whole_documents(shard.prefix());
    }
    if (are_pairs) {
      return std::make_unique<PreferenceSamples>(weighted.dataset, part, config_.model.seq_length, order, seed);
    }
    if (are_chats) return std::make_unique<ChatSamples>(weighted.dataset, part, config_.model.seq_length, order, seed);
    if (config_.documents.packing == Packing::kBestFit) {
      return std::make_unique<PackedSamples>(weighted.dataset, part, config_.model.seq_length, order, seed, documents_);
    }
    return std::make_unique<GptSamples>(weighted.dataset, part, config_.model.seq_length, order, seed, documents_);
  }

 private:
  const TrainConfig& config_;
  DocumentOptions documents_;
  BertTokens bert_tokens_;
};

std::vector<std::unique_ptr<const Samples>> samples_of_each(const std::vector<PartOfCorpus>& parts,
                                                            const TrainConfig& config, SampleOrder order) {
  const SampleMaker make(config);
  std::vector<std::unique_ptr<const Samples>> samples;
  for (const PartOfCorpus& part : parts) samples.push_back(make(part, order, samples.size()));
  return samples;
}

std::unique_ptr<const BlendedSamples> blend_of(const std::vector<PartOfCorpus>& parts, const TrainConfig& config,
                                               SampleOrder order) {
  std::vector<double> weights;
  for (const PartOfCorpus& part : parts) weights.push_back(part.corpus.weight);
  return std::make_unique<BlendedSamples>(samples_of_each(parts, config, order), weights);
}

// Every sample once from the first on, so that validations compare.
std::unique_ptr<const Samples> validation_samples(const std::vector<PartOfCorpus>& parts, const TrainConfig& config) {
  if (parts.size() > 1) return blend_of(parts, config, SampleOrder::kSequential);
  return std::move(samples_of_each(parts, config, SampleOrder::kSequential).front());
}

// One part of every corpus.
std::vector<PartOfCorpus> parts_of(const std::vector<WeightedCorpus>& corpora,
                                   const std::vector<std::vector<CorpusPart>>& splits, std::size_t part) {
  std::vector<PartOfCorpus> parts;
  for (std::size_t i = 0; i < corpora.size(); ++i) parts.push_back({corpora[i], splits[i][part]});
  return parts;
}

std::vector<PartOfCorpus> whole(const std::vector<WeightedCorpus>& corpora) {
  std::vector<PartOfCorpus> parts;
  for (const WeightedCorpus& corpus : corpora) {
    CorpusPart part = split_corpus(*corpus.dataset, std::vector<double>{1}, kFileOrder).front();
    part.name = "validation";
    parts.push_back({corpus, std::move(part)});
  }
  return parts;
}

bool has_tokens(const std::vector<PartOfCorpus>& parts) {
  return std::ranges::any_of(parts, [](const PartOfCorpus& one) { return one.part.tokens() > 0; });
}

// Samples that all updates read, those before the checkpoint that the run resumes included.
std::int64_t samples_of_run(const TrainConfig& config) {
  BatchesDone done;
  if (!config.output.load.empty()) done = batches_done(read_checkpoint_info(config.output.checkpoint()).state);
  return config.batches(done).consumed_after(std::max(config.train_iters, done.updates));
}

// A line for each corpus: its share, and how often a run of so many samples goes through its training part.
std::string blend_table(const std::vector<PartOfCorpus>& parts, const BlendedSamples& samples, std::int64_t run) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({"corpus", "share", "documents to train on", "samples an epoch", "epochs of this run"});
  const BlendOrder& order = samples.order();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t epoch = samples.corpus(i).samples_per_epoch();
    table.row({parts[i].corpus.dataset->name(), fmt::format("{:.4g} %", 100 * order.share(i)),
               readable_integer(parts[i].part.documents()), readable_integer(epoch),
               fmt::format("{:.2f}", static_cast<double>(order.count(i, run)) / static_cast<double>(epoch))});
  }
  return table.text();
}

std::string names_of(const std::vector<WeightedCorpus>& corpora) {
  std::string names;
  for (const WeightedCorpus& corpus : corpora) names += (names.empty() ? "" : ", ") + corpus.dataset->name();
  return names;
}

}  // namespace

TrainingData open_training_data(const TrainConfig& config) {
  TrainingData data;
  data.training = open_corpora(config.data_path);
  if (config.valid_data_path.empty()) return data;
  data.validation = open_corpora(config.valid_data_path);
  std::set<std::filesystem::path> trained_on;
  for (const WeightedCorpus& corpus : data.training) {
    for (const IndexedShard& shard : corpus.dataset->shards()) {
      trained_on.insert(std::filesystem::weakly_canonical(idx_path(shard.prefix())));
    }
  }
  for (const WeightedCorpus& corpus : data.validation) {
    for (const IndexedShard& shard : corpus.dataset->shards()) {
      if (!trained_on.contains(std::filesystem::weakly_canonical(idx_path(shard.prefix())))) continue;
      throw_user_error(
          "'{}' is in both --data-path and --valid-data-path: it would be validated on what it is trained on; leave "
          "one "
          "out, or let --split hold out a part",
          shard.prefix().string());
    }
  }
  return data;
}

TrainingSamples make_training_samples(const TrainConfig& config, const TrainingData& data, const SplitRule& rule) {
  std::vector<std::vector<CorpusPart>> splits;
  for (const WeightedCorpus& corpus : data.training) {
    splits.push_back(split_corpus(*corpus.dataset, parse_split(config.parts()), rule));
  }
  const std::vector<PartOfCorpus> training = parts_of(data.training, splits, 0);
  TrainingSamples samples;
  if (training.size() == 1) {
    samples.training = std::move(samples_of_each(training, config, SampleOrder::kShuffled).front());
    if (data.training.front().dataset->shards().size() > 1) {
      samples.description = fmt::format("training on {}, ", names_of(data.training));
    }
    samples.description += describe(splits.front(), rule);
  } else {
    auto blend = blend_of(training, config, SampleOrder::kShuffled);
    const std::int64_t run = samples_of_run(config);
    samples.description =
        fmt::format("a blend of {} corpora, each split by {} with the weights {}\n{}", training.size(), text_of(rule),
                    config.parts(), blend_table(training, *blend, run));
    while (samples.description.ends_with('\n')) samples.description.pop_back();
    samples.training = std::move(blend);
  }
  if (const std::string left_out = samples.training->left_out(); !left_out.empty()) {
    samples.description += "\n" + left_out;
  }
  if (!data.validation.empty()) {
    samples.validation = validation_samples(whole(data.validation), config);
    samples.description += fmt::format("\nvalidation on all of {}", names_of(data.validation));
  } else if (splits.front().size() > 1) {
    const std::vector<PartOfCorpus> held_out = parts_of(data.training, splits, 1);
    if (has_tokens(held_out)) samples.validation = validation_samples(held_out, config);
  }
  return samples;
}

}  // namespace teratron

// teratron eval loss: loss, perplexity and bits per byte of a checkpoint on a part of a tokenised corpus.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/eval/loss.h"
#include "cli/report.h"
#include "data/data_path.h"
#include "data/indexed/content_check.h"
#include "data/indexed/corpus_sidecar.h"
#include "eval/held_out_loss.h"
#include "model/family.h"
#include "runtime/ranks.h"
#include "runtime/recorded_data.h"
#include "settings/sample_settings.h"

namespace teratron {

Faults EvalLossOptions::faults() const {
  Faults faults = ScoringOptions::faults();
  faults.add(SplitSettings::faults());
  faults.add(one_corpus_faults({"data-path"}, data_path));
  return faults;
}

FieldList fields_of(EvalLossOptions& o) {
  FieldList list;
  list.add("load", &o.load, "DIR", "checkpoint to evaluate, or a folder of Hugging Face's").required = true;
  list.add("data-path", &o.data_path, "PREFIX", "tokens, as PREFIX.bin and PREFIX.idx; several: shards of one corpus")
      .required = true;
  add_split_fields(list, o);
  list.add("part", &o.part, "NAME", "training, validation or test");
  list.add("baselines", &o.baselines, "", "also unigram and Kneser-Ney trigram models of the training part");
  list.add("seed", &o.sample_seed, "N", "of a BERT's pairs and masks; -1: that of its run, else 1234").between(-1);
  list.add("seq-length", &o.seq_length, "N", "tokens of a BERT's pair; 0: as it was trained, else its positions")
      .between(0);
  add_scoring_fields(list, o, "new targets a window; 0: windows do not overlap");
  return list;
}

const CorpusPart& SplitCorpus::part(const std::string& name) const {
  for (const CorpusPart& part : parts) {
    if (part.name == name) return part;
  }
  throw_user_error("there is no part '{}' (--part): --split names training, validation and test with as many weights",
                   name);
}

SplitCorpus open_split_corpus(const EvalLossOptions& options, const WeightSource& source) {
  const auto corpus = open_corpus(options.data_path);
  Tokenizer tokenizer = load_tokenizer_for(source, options.tokenizer);
  const std::filesystem::path& tokenizer_from = options.tokenizer.empty() ? source.folder : options.tokenizer;
  for (const IndexedShard& shard : corpus->shards()) {
    require_tokenizer(shard.prefix(), tokenizer, tokenizer_from.string());
  }
  check_content(*corpus, source.model.vocab_size, 0);
  const auto dataset = std::make_shared<const IndexedDataset>(corpus->with_vocabulary(source.model.vocab_size));
  const SplitRule rule = evaluation_split(options, source.state);
  SplitCorpus split{.tokenizer = std::move(tokenizer),
                    .dataset = dataset,
                    .rule = rule,
                    .parts = split_corpus(*dataset, parse_split(options.parts()), rule)};
  split.part(options.part);
  return split;
}

namespace {

// Data that all ranks of a process share.
struct EvaluationJob {
  const EvalLossOptions& options;
  WeightSource source;
  SplitCorpus corpus;
  DocumentOptions documents;              // of the checkpoint's training
  std::optional<ChatSamples> chats = {};  // of the part; the corpus is one of chats
};

std::string table_row(std::string_view name, double loss, double bits_per_nat) {
  const std::string bits = bits_per_nat > 0 ? fmt::format("   {:.3f} bits per byte", bits_per_nat * loss) : "";
  return fmt::format("  {:<19} loss {:.4f}   perplexity {:8.2f} per token{}\n", name, loss, std::exp(loss), bits);
}

std::string table(const CorpusLoss& result, const EvaluationJob& job) {
  const double bits_per_nat = result.bits_per_byte.value_or(0) / result.loss;
  std::string text = fmt::format("{} {}of the {} part of {} ({})\n", counted(result.targets, "token"),
                                 job.chats ? "to be learned " : "", job.options.part, job.corpus.dataset->name(),
                                 text_of(job.corpus.rule));
  if (job.chats) text += job.chats->left_out() + "\n";
  text += table_row(job.source.model.family().title, result.loss, bits_per_nat);
  if (result.trigram_loss) text += table_row("Kneser-Ney trigram", *result.trigram_loss, bits_per_nat);
  if (result.unigram_loss) text += table_row("unigram", *result.unigram_loss, bits_per_nat);
  return text;
}

nlohmann::json json_of(const CorpusLoss& result, const std::vector<std::int64_t>& peaks) {
  nlohmann::json json = {{"targets", result.targets},
                         {"loss", result.loss},
                         {"perplexity", std::exp(result.loss)},
                         {"peak_memory_bytes", peaks}};
  if (result.bits_per_byte) json["bits_per_byte"] = *result.bits_per_byte;
  if (result.unigram_loss) json["unigram_loss"] = *result.unigram_loss;
  if (result.trigram_loss) json["trigram_loss"] = *result.trigram_loss;
  return json;
}

CorpusLoss measure(const EvaluationJob& job, const LoadedModel& model, const Rank& rank) {
  if (job.chats) {
    const ChatLoss result = chat_loss(*model.model, *job.chats, show_scoring(rank));
    return {.targets = result.targets, .loss = result.loss};
  }
  return corpus_loss(*model.model, *job.corpus.dataset, job.corpus.part(job.options.part), job.corpus.parts.front(),
                     rank.is_first() ? &job.corpus.tokenizer : nullptr,
                     {.stride = std::min(job.options.stride, model.model->options().tokens),
                      .documents = job.documents,
                      .baselines = rank.is_first() && job.options.baselines,
                      .observer = show_scoring(rank, job.options.baselines)});
}

// Whether the shards are chats. UserError: some are, or the options are for other texts.
bool are_chats(const IndexedDataset& corpus, const EvalLossOptions& options) {
  const bool are = holds_chats(corpus.shards().front().prefix());
  for (const IndexedShard& shard : corpus.shards()) {
    are ? require_chats(shard.prefix()) : require_whole_documents(shard.prefix());
  }
  if (are && (options.baselines || options.stride > 0)) {
    throw_user_error("{} is of chats, which are scored each by itself; leave out --baselines and --overlapping-eval",
                     corpus.name());
  }
  return are;
}

void run(const EvalLossOptions& options) {
  const RankLauncher launcher(options.layout, options.backend.kind);
  WeightSource source = find_model(options.load, options.layout, WeightUse::kEvalLoss);
  if (!source.model.family().continues_text) return eval_masked_loss(options, launcher, std::move(source));
  if (options.sample_seed >= 0 || options.seq_length > 0) {
    throw_user_error("--seed and --seq-length are of a BERT's samples; leave them out for the {} in '{}'",
                     source.model.family().title, source.folder.string());
  }
  SplitCorpus corpus = open_split_corpus(options, source);
  const bool has_chats = are_chats(*corpus.dataset, options);
  const DocumentOptions documents = recorded_documents(source.state, corpus.tokenizer);
  EvaluationJob job{
      .options = options, .source = std::move(source), .corpus = std::move(corpus), .documents = documents};
  if (has_chats) {
    job.chats.emplace(job.corpus.dataset, job.corpus.part(options.part), job.source.model.max_position_embeddings,
                      SampleOrder::kSequential);
  }
  ExecutorOptions executor_options = options.executor_options();
  executor_options.first_keys = has_chats || documents.reset_attention_mask;
  executor_options.position_ids = has_chats || documents.reset_position_ids;
  launcher.run(options_text(options), [&](const Rank& rank) {
    const LoadedModel model = load_model(job.source, executor_options, options.backend, rank, kEvaluationBatch);
    const CorpusLoss result = measure(job, model, rank);
    const std::vector<std::int64_t> peaks = rank.peak_memory(*model.backend);
    if (rank.is_first()) report(options.json, table(result, job), json_of(result, peaks));
  });
}

}  // namespace

Command eval_loss_command() {
  return make_command<EvalLossOptions>(
      "eval loss",
      "measures loss, perplexity and bits per byte on a tokenised corpus; of a BERT, the loss of masked words", run);
}

}  // namespace teratron

// teratron eval loss, of a BERT: losses of masked words and of the order of texts, on a part of a tokenised corpus.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/eval/loss.h"
#include "cli/report.h"
#include "console/long_task.h"
#include "eval/held_out_loss.h"
#include "model/bert_kind.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

// Settings that a BERT's samples are made with.
struct MaskedSamples {
  std::int64_t seed = TrainConfig().seed, seq_length = 0;
  BertOptions options = BertSettings().filled();
};

MaskedSamples sample_settings(const EvalLossOptions& options, const WeightSource& source) {
  const std::int64_t positions = source.model.max_position_embeddings;
  MaskedSamples samples{.seq_length = positions};
  if (!source.is_hugging_face) {
    if (const auto trained = settings_of(read_checkpoint_info(source.folder))) {
      samples = {.seed = trained->seed, .seq_length = trained->model.seq_length, .options = trained->bert.filled()};
    }
  }
  if (options.sample_seed >= 0) samples.seed = options.sample_seed;
  if (options.seq_length > 0) samples.seq_length = options.seq_length;
  if (samples.seq_length > positions) {
    throw_user_error("--seq-length {} is more than the {} positions of the model in '{}'", samples.seq_length,
                     positions, source.folder.string());
  }
  return samples;
}

// Data that all ranks of a process share.
struct MaskedLossJob {
  const EvalLossOptions& options;
  WeightSource source;
  const SplitCorpus& corpus;
  MaskedSamples settings;
  const BertSamples& samples;
};

// DistilBERT has no head of orders, nor have models that Hugging Face saved as BertForMaskedLM.
bool has_order_head(const WeightSource& source) {
  if (!bert_kind(source.model.kind).orders_sentences) return false;
  return std::ranges::none_of(source.drawn, [](const std::string& name) { return name.starts_with("cls.seq"); });
}

void report_losses(const MaskedLossJob& job, const MaskedLoss& result, const std::vector<std::int64_t>& peaks) {
  std::string text =
      fmt::format("{} in {} of the {} part of {} ({}; seed {}, {} a pair)\n", counted(result.targets, "masked token"),
                  counted(result.pairs, "pair"), job.options.part, job.corpus.dataset->name(), text_of(job.corpus.rule),
                  job.settings.seed, counted(job.settings.seq_length, "token"));
  nlohmann::ordered_json json = {{"targets", result.targets},
                                 {"loss", result.loss},
                                 {"perplexity", std::exp(result.loss)},
                                 {"pairs", result.pairs}};
  text += fmt::format("  masked words        loss {:.4f}   perplexity {:8.2f} per token\n", result.loss,
                      std::exp(result.loss));
  if (has_order_head(job.source)) {
    json["order_loss"] = result.order_loss;
    json["order_accuracy"] = result.order_accuracy;
    text += fmt::format("  order of texts      loss {:.4f}   accuracy {:.2f} %\n", result.order_loss,
                        100 * result.order_accuracy);
  }
  json["peak_memory_bytes"] = peaks;
  report(job.options.json, text, json);
}

void run_rank(const MaskedLossJob& job, const Rank& rank) {
  ExecutorOptions options = job.options.executor_options();
  options.tokens = job.settings.seq_length;
  const LoadedEncoder encoder = load_encoder(job.source, options, job.options.backend, rank, kEvaluationBatch);
  const MaskedLoss result = masked_loss(*encoder.model, job.samples, show_share("computing the loss", rank.is_first()));
  const std::vector<std::int64_t> peaks = rank.peak_memory(*encoder.backend);
  if (rank.is_first()) report_losses(job, result, peaks);
}

}  // namespace

void eval_masked_loss(const EvalLossOptions& options, const RankLauncher& launcher, WeightSource source) {
  if (options.baselines || options.stride > 0) {
    throw_user_error(
        "the model in '{}' is a BERT, which reads whole pairs of texts; leave out --baselines and "
        "--overlapping-eval",
        source.folder.string());
  }
  const SplitCorpus corpus = open_split_corpus(options, source);
  const MaskedSamples settings = sample_settings(options, source);
  const BertSamples samples(corpus.dataset, corpus.part(options.part), settings.seq_length, SampleOrder::kSequential,
                            static_cast<std::uint64_t>(settings.seed), bert_tokens(corpus.tokenizer), settings.options);
  const MaskedLossJob job{
      .options = options, .source = std::move(source), .corpus = corpus, .settings = settings, .samples = samples};
  launcher.run(options_text(options), [&](const Rank& rank) { run_rank(job, rank); });
}

}  // namespace teratron

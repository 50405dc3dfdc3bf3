#include "model/language_model.h"

#include <algorithm>

#include "base/error.h"
#include "nn/host_values.h"

namespace teratron {

LanguageModel::LanguageModel(Backend& backend, const ModelConfig& config, const ExecutorOptions& options,
                             const std::shared_ptr<Mesh>& mesh)
    : LanguageModel(backend, std::make_unique<Decoder>(config, mesh ? mesh->coordinates().tensor : GroupRank{}),
                    options, mesh) {}

LanguageModel::LanguageModel(Backend& backend, std::unique_ptr<Decoder> model, const ExecutorOptions& options,
                             const std::shared_ptr<Mesh>& mesh)
    : Executor(backend, *model, options, mesh), model_(std::move(model)) {}

void LanguageModel::score(const MicroBatch& micro_batch, std::span<const ScoredTargets> scored, std::span<float> losses,
                          std::span<float> is_likeliest) {
  forward(micro_batch, [&](const EndCall& call, TensorRef x) {
    const std::int64_t slice_begin = call.pass.first_position, slice_end = slice_begin + call.pass.tokens;
    const TensorRef normed = model_->final_normed(call, x);
    std::int64_t done = 0;  // targets of the runs before
    for (const ScoredTargets& run : scored) {
      const std::int64_t begin = std::max(run.begin, slice_begin), end = std::min(run.begin + run.count, slice_end),
                         count = end - begin, at = done + begin - run.begin;
      done += run.count;
      if (count <= 0) continue;
      const auto ids = std::span(micro_batch.targets)
                           .subspan(static_cast<std::size_t>(run.sequence * micro_batch.tokens + begin),
                                    static_cast<std::size_t>(count));
      const TensorRef targets = plan().memory().targets(count);
      backend().upload(targets, ids.data());
      const TensorRef rows = normed.select(0, run.sequence).slice(0, begin - slice_begin, end - slice_begin);
      const Decoder::RowScores scores =
          model_->row_scores(call, rows, targets, is_likeliest.empty() ? std::span<const std::int32_t>() : ids);
      const auto here = [&](std::span<float> all) { return all.subspan(static_cast<std::size_t>(at), ids.size()); };
      download_floats(backend(), scores.loss, here(losses));
      if (!is_likeliest.empty()) compare_gaps(scores, here(is_likeliest));
    }
  });
  share_from_last_stage(losses);
  if (!is_likeliest.empty()) share_from_last_stage(is_likeliest);
}

void LanguageModel::compare_gaps(const Decoder::RowScores& scores, std::span<float> is_likeliest) {
  std::vector<float> lower(is_likeliest.size());
  download_floats(backend(), scores.gap, is_likeliest);
  download_floats(backend(), scores.gap_of_lower, lower);
  for (std::size_t i = 0; i < lower.size(); ++i) is_likeliest[i] = is_likeliest[i] <= 0 && lower[i] < 0 ? 1 : 0;
}

void LanguageModel::losses(const MicroBatch& micro_batch, std::int64_t first_scored, std::span<float> losses) {
  const std::int64_t count = micro_batch.tokens - first_scored;
  check_equal(static_cast<std::int64_t>(losses.size()), micro_batch.batch * count, "losses to fill");
  std::vector<ScoredTargets> scored;
  for (std::int64_t sequence = 0; sequence < micro_batch.batch; ++sequence) {
    scored.push_back({.sequence = sequence, .begin = first_scored, .count = count});
  }
  score(micro_batch, scored, losses);
}

void LanguageModel::logits(std::span<const std::int32_t> ids, std::int64_t first_position, std::int64_t rows,
                           std::span<float> logits, std::int64_t cache) {
  const auto tokens = static_cast<std::int64_t>(ids.size());
  check_equal(static_cast<std::int64_t>(logits.size()), rows * config().vocab_size, "logits to fill");
  const auto use = [&](const EndCall& call, TensorRef x) {
    if (rows == 0) return;
    logits_of_rows(call, model_->final_normed_rows(call, x.select(0, 0).slice(0, tokens - rows, tokens)), logits);
  };
  extend(ids, first_position, use, cache);
  if (rows > 0) share_from_last_stage(logits);
}

void LanguageModel::next_logits(std::span<const std::int32_t> ids, std::span<const std::int32_t> positions,
                                std::span<float> logits) {
  check_equal(logits.size(), ids.size() * static_cast<std::size_t>(config().vocab_size), "logits to fill");
  extend_each(ids, positions, [&](const EndCall& call, TensorRef x) {
    logits_of_rows(call, model_->final_normed_rows(call, x.flatten_rows()), logits);
  });
  share_from_last_stage(logits);
}

// logits [rows, vocabulary] from normed [rows, hidden].
void LanguageModel::logits_of_rows(const EndCall& call, TensorRef normed, std::span<float> logits) {
  const std::int64_t rows = normed.dim(0), vocab = config().vocab_size, chunk = model_->logits_rows(call);
  for (std::int64_t begin = 0; begin < rows; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, rows);
    read_logits(
        model_->logits(call, normed.slice(0, begin, end)),
        logits.subspan(static_cast<std::size_t>(begin * vocab), static_cast<std::size_t>((end - begin) * vocab)));
  }
}

// logits [rows, vocabulary] from `all` [ranks, rows, columns of each].
void LanguageModel::read_logits(TensorRef all, std::span<float> logits) {
  const std::int64_t rows = all.dim(1), columns = all.dim(2), vocab = config().vocab_size;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t first = 0; first < vocab; first += columns) {
      const std::int64_t count = std::min(columns, vocab - first);
      download_floats(backend(), all.select(0, first / columns).select(0, row).slice(0, 0, count),
                      logits.subspan(static_cast<std::size_t>(row * vocab + first), static_cast<std::size_t>(count)));
    }
  }
}

}  // namespace teratron

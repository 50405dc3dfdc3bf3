#include "model/language_model.h"

#include <algorithm>

#include "base/error.h"
#include "nn/host_values.h"

namespace teratron {

LanguageModel::LanguageModel(Backend& backend, const ModelConfig& config, const ExecutorOptions& options,
                             const std::shared_ptr<Mesh>& mesh)
    : LanguageModel(backend, std::make_unique<Gpt2>(config, mesh ? mesh->place().tensor : GroupRank{}), options, mesh) {
}

LanguageModel::LanguageModel(Backend& backend, std::unique_ptr<Gpt2> model, const ExecutorOptions& options,
                             const std::shared_ptr<Mesh>& mesh)
    : Executor(backend, *model, options, mesh), model_(std::move(model)) {}

void LanguageModel::losses(const MicroBatch& micro_batch, std::int64_t first_scored, std::span<float> losses) {
  const std::int64_t b = micro_batch.batch, s = micro_batch.tokens, scored = s - first_scored;
  check_equal(static_cast<std::int64_t>(losses.size()), b * scored, "losses to fill");
  forward(micro_batch, [&](const EndCall& call, TensorRef x) {
    const std::int64_t slice_begin = call.pass.first_position, slice_end = slice_begin + call.pass.tokens;
    const std::int64_t begin = std::max(first_scored, slice_begin), count = slice_end - begin;
    const TensorRef normed = model_->final_normed(call, x);
    if (count <= 0) return;
    const TensorRef targets = plan().memory().targets(count);
    for (std::int64_t sequence = 0; sequence < b; ++sequence) {
      const TensorRef rows = normed.select(0, sequence).slice(0, begin - slice_begin, slice_end - slice_begin);
      backend().upload(targets, micro_batch.targets.data() + sequence * s + begin);
      download_floats(backend(), model_->row_losses(call, rows, targets),
                      losses.subspan(static_cast<std::size_t>(sequence * scored + begin - first_scored),
                                     static_cast<std::size_t>(count)));
    }
  });
  share_from_last_stage(losses);
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

#include "model/encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "model/family.h"
#include "nn/host_values.h"

namespace teratron {
namespace {

std::unique_ptr<Bert> make_bert(ModelConfig config, GroupRank group) {
  if (config.family().continues_text) {
    throw_user_error("a model of type {} has no vectors for texts; take a bert", config.family().name);
  }
  config.vectors.texts = 1;  // here texts come alone
  return std::make_unique<Bert>(config, group);
}

// The tokens of a sequence whose vectors are read: begin, end.
std::pair<std::int64_t, std::int64_t> tokens_read(Pooling pooling, std::int64_t length) {
  if (pooling == Pooling::kCls) return {0, 1};
  if (pooling == Pooling::kLastToken) return {length - 1, length};
  return {0, length};
}

// The vector of rows [tokens, hidden], those that tokens_read() names.
void pool(std::span<const float> rows, Pooling pooling, std::span<float> vector) {
  const std::size_t hidden = vector.size(), tokens = rows.size() / hidden;
  const auto count = static_cast<double>(tokens);
  const double parts = pooling == Pooling::kMeanSqrtLength ? std::sqrt(count)
                       : pooling == Pooling::kWeightedMean ? count * (count + 1) / 2
                                                           : count;
  for (std::size_t i = 0; i < hidden; ++i) {
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    for (std::size_t token = 0; token < tokens; ++token) {
      const auto value = static_cast<double>(rows[token * hidden + i]);
      sum += pooling == Pooling::kWeightedMean ? static_cast<double>(token + 1) * value : value;
      largest = std::isnan(value) ? value : std::max(largest, value);
    }
    vector[i] = static_cast<float>(pooling == Pooling::kMax ? largest : sum / parts);
  }
}

}  // namespace

Encoder::Encoder(Backend& backend, const ModelConfig& config, const ExecutorOptions& options,
                 const std::shared_ptr<Mesh>& mesh)
    : Encoder(backend, make_bert(config, mesh ? mesh->coordinates().tensor : GroupRank{}), options, mesh) {}

Encoder::Encoder(Backend& backend, std::unique_ptr<Bert> model, const ExecutorOptions& options,
                 const std::shared_ptr<Mesh>& mesh)
    : Executor(backend, *model, options, mesh), model_(std::move(model)) {}

void Encoder::encode(const MicroBatch& micro_batch, std::span<float> encoded) {
  check_equal(static_cast<std::int64_t>(encoded.size()), micro_batch.batch * micro_batch.tokens * config().hidden_size,
              "values of encoded tokens");
  forward(micro_batch,
          [&](const EndCall& call, TensorRef x) { download_floats(backend(), model_->encoded(call, x), encoded); });
  share_from_last_stage(encoded);
}

void Encoder::predict_tokens(const MicroBatch& micro_batch, std::span<const std::int32_t> rows,
                             std::span<float> logits) {
  const auto vocab = static_cast<std::size_t>(config().vocab_size);
  check_equal(logits.size(), rows.size() * vocab, "logits to fill");
  std::ranges::fill(logits, 0.0F);
  forward(micro_batch, [&](const EndCall& call, TensorRef x) {
    const TensorRef encoded = model_->encoded(call, x).flatten_rows();
    const auto first = static_cast<std::size_t>(model_->heads->output.vocab_begin);
    const auto chunk = static_cast<std::size_t>(std::min(call.sizes.logits_chunk, encoded.dim(0)));
    for (std::size_t begin = 0; begin < rows.size(); begin += chunk) {
      const std::span<const std::int32_t> some = rows.subspan(begin, std::min(chunk, rows.size() - begin));
      const TensorRef numbers = plan().memory().target_rows(std::ssize(some));
      backend().upload(numbers, some.data());
      const TensorRef part = model_->token_logits(call, encoded, numbers);
      const std::size_t columns = std::min(static_cast<std::size_t>(part.dim(1)), vocab - std::min(vocab, first));
      for (std::size_t row = 0; row < some.size() && columns > 0; ++row) {
        const TensorRef own = part.select(0, static_cast<std::int64_t>(row));
        download_floats(backend(), own.slice(0, 0, static_cast<std::int64_t>(columns)),
                        logits.subspan((begin + row) * vocab + first, columns));
      }
    }
  });
  if (mesh().tensor->size() > 1) {  // each has filled its part of the vocabulary
    std::vector<double> sums(logits.begin(), logits.end());
    mesh().tensor->all_reduce_host(sums);
    std::ranges::transform(sums, logits.begin(), [](double sum) { return static_cast<float>(sum); });
  }
  share_from_last_stage(logits);
}

void Encoder::embed(const MicroBatch& micro_batch, Pooling pooling, std::span<float> vectors) {
  text_vectors(*this, *model_, micro_batch, pooling, vectors);
}

void text_vectors(Executor& executor, const Bert& model, const MicroBatch& micro_batch, Pooling pooling,
                  std::span<float> vectors) {
  const auto hidden = static_cast<std::size_t>(model.config.hidden_size);
  check_equal(vectors.size(), static_cast<std::size_t>(micro_batch.batch) * hidden, "values of vectors");
  executor.forward(micro_batch, [&](const EndCall& call, TensorRef x) {
    const TensorRef encoded = model.encoded(call, x);
    std::vector<float> rows;
    for (std::int64_t sequence = 0; sequence < micro_batch.batch; ++sequence) {
      const auto index = static_cast<std::size_t>(sequence);
      const std::int64_t length = micro_batch.key_lengths.empty() ? micro_batch.tokens : micro_batch.key_lengths[index];
      const auto [begin, end] = tokens_read(pooling, length);
      rows.resize(static_cast<std::size_t>(end - begin) * hidden);
      download_floats(executor.backend(), encoded.select(0, sequence).slice(0, begin, end), rows);
      pool(rows, pooling, vectors.subspan(index * hidden, hidden));
    }
  });
  executor.share_from_last_stage(vectors);
}

void task_outputs(Executor& executor, const Bert& model, const MicroBatch& micro_batch, std::span<float> outputs) {
  check(model.task.has_value(), "a BERT with the head of a task");
  model.traits.check_groups(micro_batch.batch);
  const std::int64_t rows = micro_batch.batch * (model.task->reads_tokens() ? micro_batch.tokens : 1);
  check_equal(static_cast<std::int64_t>(outputs.size()), rows * model.task->logits, "outputs to fill");
  executor.forward(micro_batch, [&](const EndCall& call, TensorRef x) {
    download_floats(executor.backend(), model.task_outputs(call, x), outputs);
  });
  executor.share_from_last_stage(outputs);
}

}  // namespace teratron

#include "model/encoder.h"

#include "base/error.h"
#include "nn/host_values.h"

namespace teratron {
namespace {

std::unique_ptr<Bert> make_bert(const ModelConfig& config, GroupRank place) {
  if (config.kind != ModelKind::kBert) {
    throw_user_error("a model of type {} has no vectors for texts; take a bert", name_of(config.kind));
  }
  return std::make_unique<Bert>(config, place);
}

// The mean of rows [tokens, hidden].
void average(std::span<const float> rows, std::span<float> mean) {
  const std::size_t hidden = mean.size(), tokens = rows.size() / hidden;
  for (std::size_t i = 0; i < hidden; ++i) {
    double sum = 0;
    for (std::size_t token = 0; token < tokens; ++token) sum += static_cast<double>(rows[token * hidden + i]);
    mean[i] = static_cast<float>(sum / static_cast<double>(tokens));
  }
}

}  // namespace

Encoder::Encoder(Backend& backend, const ModelConfig& config, const ExecutorOptions& options,
                 const std::shared_ptr<Mesh>& mesh)
    : Encoder(backend, make_bert(config, mesh ? mesh->place().tensor : GroupRank{}), options, mesh) {}

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

void Encoder::embed(const MicroBatch& micro_batch, Pooling pooling, std::span<float> vectors) {
  const auto hidden = static_cast<std::size_t>(config().hidden_size);
  check_equal(vectors.size(), static_cast<std::size_t>(micro_batch.batch) * hidden, "values of vectors");
  forward(micro_batch, [&](const EndCall& call, TensorRef x) {
    const TensorRef encoded = model_->encoded(call, x);
    std::vector<float> rows;
    for (std::int64_t sequence = 0; sequence < micro_batch.batch; ++sequence) {
      const auto index = static_cast<std::size_t>(sequence);
      const std::int64_t length = micro_batch.key_lengths.empty() ? micro_batch.tokens : micro_batch.key_lengths[index];
      const std::int64_t read = pooling == Pooling::kMean ? length : 1;
      rows.resize(static_cast<std::size_t>(read) * hidden);
      download_floats(backend(), encoded.select(0, sequence).slice(0, 0, read), rows);
      average(rows, vectors.subspan(index * hidden, hidden));
    }
  });
  share_from_last_stage(vectors);
}

}  // namespace teratron

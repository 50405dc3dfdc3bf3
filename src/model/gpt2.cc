#include "model/gpt2.h"

#include <fmt/ranges.h>

#include <cmath>

#include "base/error.h"

namespace teratron {
namespace {

// The order in which Gpt2Runner::plan_parameters makes buckets.
constexpr std::size_t kTokensBucket = 0, kPositionsBucket = 1, kFirstLayerBucket = 2;

ModelConfig checked(const ModelConfig& config, TensorPlace place) {
  const std::vector<std::string> faults = config.faults(place.size);
  if (!faults.empty()) throw UserError(fmt::format("{}", fmt::join(faults, "\n")));
  return config;
}

std::vector<TransformerLayer> make_layers(const ModelConfig& config, TensorPlace place) {
  std::vector<TransformerLayer> layers;
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) layers.emplace_back(config, layer, place);
  return layers;
}

// Floating values of a device view, as T, whatever the back end computes in.
template <class T>
void download_as(Backend& backend, TensorRef from, std::span<T> to) {
  check_equal(from.elements(), static_cast<std::int64_t>(to.size()), "values to download");
  if (from.dtype == DType::kF32) {
    std::vector<float> values(to.size());
    backend.download(values.data(), from);
    std::copy(values.begin(), values.end(), to.begin());
  } else {
    check_equal(name_of(from.dtype), name_of(DType::kF64), "type of downloaded values");
    std::vector<double> values(to.size());
    backend.download(values.data(), from);
    std::transform(values.begin(), values.end(), to.begin(), [](double value) { return static_cast<T>(value); });
  }
}

void upload_floats(Backend& backend, TensorRef to, std::span<const float> from) {
  check_equal(to.elements(), static_cast<std::int64_t>(from.size()), "values to upload");
  if (to.dtype == DType::kF32) {
    backend.upload(to, from.data());
  } else {
    const std::vector<double> values(from.begin(), from.end());
    backend.upload(to, values.data());
  }
}

}  // namespace

Gpt2::Gpt2(const ModelConfig& model_config, TensorPlace place)
    : config(checked(model_config, place)),
      embedding(config.vocab_size, config.padded_vocab_size(place.size), config.max_position_embeddings,
                config.hidden_size, config.hidden_dropout, place),
      layers(make_layers(config, place)),
      final_norm("final_norm", config.hidden_size, config.layernorm_epsilon, "transformer.ln_f", place),
      head{.vocab_size = config.vocab_size, .vocab_begin = embedding.vocab_begin()} {}

void Gpt2::visit(const ParameterVisitor& visitor) {
  embedding.visit(visitor);
  for (TransformerLayer& layer : layers) layer.visit(visitor);
  final_norm.visit(visitor);
}

std::vector<Parameter*> Gpt2Runner::parameters() {
  std::vector<Parameter*> all;
  model_.visit([&](Parameter& parameter) { all.push_back(&parameter); });
  return all;
}

void Gpt2Runner::initialize(std::uint64_t seed) {
  std::uint32_t stream = 0;
  for (Parameter* parameter : parameters()) {
    const RandomStream random{.seed = seed, .purpose = RandomPurpose::kInit, .stream = stream++};
    switch (parameter->init) {
      case Init::kZero: backend_.fill_zero(parameter->value); break;
      case Init::kOne: backend_.fill(parameter->value, 1.0); break;
      case Init::kNormal:
        backend_.fill_zero(parameter->value);  // padding rows stay zero
        initialize_normal(*parameter, random);
        break;
    }
    if (options_.purpose == Purpose::kTraining) {
      backend_.fill_zero(parameter->moment1);
      backend_.fill_zero(parameter->moment2);
    }
  }
}

// Every value is that of the whole parameter at its place, wherever it lies.
void Gpt2Runner::initialize_normal(const Parameter& parameter, const RandomStream& random) {
  const double stddev = model_.config.init_method_std * parameter.init_scale;
  const std::int64_t columns = parameter.global_shape()[1];
  for (const ParameterPiece& piece : pieces_of(parameter, parameter.place.rank)) {
    const TensorRef rows = parameter.value.slice(0, piece.local_row, piece.local_row + piece.rows);
    if (piece.columns == columns) {
      backend_.fill_normal(rows, random, piece.global_row * columns, stddev);
      continue;
    }
    for (std::int64_t row = 0; row < piece.rows; ++row) {
      const std::int64_t first = (piece.global_row + row) * columns + piece.global_column;
      backend_.fill_normal(rows.select(0, row), random, first, stddev);
    }
  }
}

Step Gpt2Runner::step_of(const MicroBatch& micro_batch, bool training) const {
  return {.backend = backend_,
          .tensor = *mesh_->tensor,
          .batch = micro_batch.batch,
          .tokens = micro_batch.tokens,
          .first_sample = micro_batch.first_sample,
          .sequence_length = micro_batch.tokens,
          .seed = micro_batch.seed,
          .iteration = micro_batch.iteration,
          .training = training,
          .accumulate = micro_batch.accumulate};
}

TensorRef Gpt2Runner::embed_and_run_layers(const Step& step, TensorRef ids) {
  const LayerWorkspace w = workspace(step);
  const Shape x{step.batch, step.tokens, model_.config.hidden_size};
  model_.embedding.forward(step, view(blocks_.layers.front().x, x), ids);
  for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
    const bool last = layer + 1 == model_.layers.size();
    const TensorRef y = view(last ? blocks_.final_x : blocks_.layers[layer + 1].x, x);
    model_.layers[layer].forward(step, y, saved(step, layer), w);
  }
  return view(blocks_.final_x, x);
}

double Gpt2Runner::weighted_loss(TensorRef loss, std::span<const float> weights) {
  std::vector<double> values(weights.size());
  download_as<double>(backend_, loss, values);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * static_cast<double>(weights[i]);
  return sum;
}

double Gpt2Runner::forward_backward(const MicroBatch& micro_batch) {
  const Step step = step_of(micro_batch, true);
  mesh_->set_activity(fmt::format("forward pass of iteration {}", step.iteration + 1));
  const std::int64_t b = step.batch, s = step.tokens, t = b * s, h = model_.config.hidden_size;
  const TensorRef ids = view(blocks_.ids, {b, s}), targets = view(blocks_.targets, {t});
  const TensorRef weights = view(blocks_.weights, {t}), loss = view(blocks_.loss, {t});
  backend_.upload(ids, micro_batch.ids.data());
  backend_.upload(targets, micro_batch.targets.data());
  upload_floats(backend_, weights, micro_batch.weights);

  const TensorRef x = embed_and_run_layers(step, ids);
  const LayerWorkspace w = workspace(step);
  const LayerNorm::Saved statistics{.mean = view(blocks_.final_mean, {t}), .rstd = view(blocks_.final_rstd, {t})};
  model_.final_norm.forward(step, w.normed, x, statistics);
  model_.head.forward_backward(step, model_.embedding.tokens, loss, w.dnormed.flatten_rows(), w.normed.flatten_rows(),
                               targets, weights, head_workspace(t));
  mesh_->set_activity(fmt::format("backward pass of iteration {}", step.iteration + 1));
  std::vector<Pending> sums;
  const auto finished = [&](std::size_t bucket) {
    if (micro_batch.last) sums.push_back(mesh_->data->start_all_reduce(buckets_.gradient(bucket)));
  };
  const std::size_t layers = model_.layers.size();
  const TensorRef dx = view(blocks_.dx, {b, s, h});
  model_.final_norm.backward(step, dx, w.dnormed, x, statistics, /*accumulate_dx=*/false);
  finished(kFirstLayerBucket + layers);
  for (std::size_t layer = layers; layer-- > 0;) {
    model_.layers[layer].backward(step, dx, saved(step, layer), w);
    finished(kFirstLayerBucket + layer);
  }
  model_.embedding.backward(step, dx, ids);
  finished(kTokensBucket);
  finished(kPositionsBucket);
  for (Pending& sum : sums) sum.wait();
  return weighted_loss(loss, micro_batch.weights);
}

void Gpt2Runner::losses(const MicroBatch& micro_batch, std::int64_t first_scored, std::span<float> losses) {
  const Step step = step_of(micro_batch, false);
  const std::int64_t b = step.batch, s = step.tokens, scored = s - first_scored;
  check_equal(static_cast<std::int64_t>(losses.size()), b * scored, "losses to fill");
  const TensorRef ids = view(blocks_.ids, {b, s});
  backend_.upload(ids, micro_batch.ids.data());
  const TensorRef x = embed_and_run_layers(step, ids);
  const LayerWorkspace w = workspace(step);
  for (std::int64_t sequence = 0; sequence < b; ++sequence) {
    const TensorRef rows = x.select(0, sequence).slice(0, first_scored, s);
    const TensorRef normed(w.normed.data, w.normed.dtype, rows.shape);
    const TensorRef targets = view(blocks_.targets, {scored}), loss = view(blocks_.loss, {scored});
    model_.final_norm.forward(step, normed, rows,
                              {.mean = view(blocks_.final_mean, {scored}), .rstd = view(blocks_.final_rstd, {scored})});
    backend_.upload(targets, micro_batch.targets.data() + sequence * s + first_scored);
    model_.head.forward(step, model_.embedding.tokens, loss, normed, targets, head_workspace(scored));
    download_as<float>(backend_, loss,
                       losses.subspan(static_cast<std::size_t>(sequence * scored), static_cast<std::size_t>(scored)));
  }
}

void Gpt2Runner::logits(std::span<const std::int32_t> ids, std::int64_t first_position, std::int64_t rows,
                        std::span<float> logits) {
  const auto tokens = static_cast<std::int64_t>(ids.size());
  const std::int64_t vocab = model_.config.vocab_size;
  check_equal(static_cast<std::int64_t>(logits.size()), rows * vocab, "logits to fill");
  check(first_position == 0 || options_.purpose == Purpose::kGeneration, "only generation keeps a cache");
  const Step step{.backend = backend_,
                  .tensor = *mesh_->tensor,
                  .tokens = tokens,
                  .first_position = first_position,
                  .sequence_length = first_position + tokens};
  const TensorRef device_ids = view(blocks_.ids, {1, tokens});
  backend_.upload(device_ids, ids.data());
  const TensorRef x = embed_and_run_layers(step, device_ids).select(0, 0).slice(0, tokens - rows, tokens);
  const TensorRef normed = view(blocks_.normed, x.shape);
  model_.final_norm.forward(step, normed, x,
                            {.mean = view(blocks_.final_mean, {rows}), .rstd = view(blocks_.final_rstd, {rows})});
  const std::int64_t chunk = head_workspace(rows).chunk();
  for (std::int64_t begin = 0; begin < rows; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, rows);
    const std::int64_t columns = model_.embedding.tokens.shape[0];
    const TensorRef part = view(blocks_.logits, {end - begin, columns});
    backend_.linear_forward({.y = part, .x = normed.slice(0, begin, end), .weight = model_.embedding.tokens.value});
    const TensorRef all = all_logits(part);
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t first = 0; first < vocab; first += columns) {
        const std::int64_t count = std::min(columns, vocab - first);
        download_as<float>(
            backend_, all.select(0, first / columns).select(0, row - begin).slice(0, 0, count),
            logits.subspan(static_cast<std::size_t>(row * vocab + first), static_cast<std::size_t>(count)));
      }
    }
  }
}

TensorRef Gpt2Runner::all_logits(TensorRef part) {
  const int ranks = mesh_->tensor->size();
  const Shape shape{ranks, part.dim(0), part.dim(1)};
  const TensorRef all = ranks == 1 ? part.reshape(shape) : view(blocks_.gathered_logits, shape);
  mesh_->tensor->all_gather(all, part);
  return all;
}

}  // namespace teratron

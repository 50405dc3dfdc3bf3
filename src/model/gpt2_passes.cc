// The passes of a Gpt2Runner.
#include <cmath>

#include "base/error.h"
#include "model/gpt2.h"
#include "model/host_values.h"

namespace teratron {
namespace {

// The order in which Gpt2Runner::plan_parameters makes buckets.
constexpr std::size_t kTokensBucket = 0, kPositionsBucket = 1, kFirstLayerBucket = 2;

}  // namespace

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
          .accumulate = micro_batch.accumulate,
          .sequence_parallel = options_.sequence_parallel};
}

template <class After>
TensorRef Gpt2Runner::embed_and_run_layers(const Step& step, TensorRef ids, const After& after) {
  const LayerWorkspace w = workspace(step);
  const Shape shape = step.stream_shape(model_.config.hidden_size);
  TensorRef x = view(blocks_.layers.front().forward.x, shape);
  model_.embedding.forward(step, x, step.sequence_parallel ? w.branch : x, ids);
  after("the embedding", x);
  for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
    const bool last = layer + 1 == model_.layers.size();
    x = view(last ? blocks_.final_x : blocks_.layers[layer + 1].forward.x, shape);
    model_.layers[layer].forward(step, x, saved(step, blocks_.layers[layer].forward), w);
    after(fmt::format("layer {}", layer), x);
  }
  return x;
}

TensorRef Gpt2Runner::embed_and_run_layers(const Step& step, TensorRef ids) {
  return embed_and_run_layers(step, ids, [](std::string_view, TensorRef) {});
}

LayerNorm::Saved Gpt2Runner::final_statistics(const Step& step) const {
  const Shape rows{step.stream_shape(1).elements()};
  return {.mean = view(blocks_.final_mean, rows), .rstd = view(blocks_.final_rstd, rows)};
}

TensorRef Gpt2Runner::final_normed(const Step& step, TensorRef x) {
  const TensorRef normed = workspace(step).normed;
  model_.final_norm.forward(step, step.own_rows(normed), x, final_statistics(step));
  step.gather_rows(normed);
  return normed;
}

double Gpt2Runner::weighted_loss(TensorRef loss, std::span<const float> weights) {
  std::vector<double> values(weights.size());
  download_floats(backend_, loss, values);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * static_cast<double>(weights[i]);
  return sum;
}

double Gpt2Runner::forward_backward(const MicroBatch& micro_batch) {
  const Step step = step_of(micro_batch, true);
  mesh_->set_activity(fmt::format("forward pass of iteration {}", step.iteration + 1));
  const std::int64_t t = step.batch * step.tokens;
  const TensorRef ids = view(blocks_.ids, {step.batch, step.tokens}), targets = view(blocks_.targets, {t});
  const TensorRef weights = view(blocks_.weights, {t}), loss = view(blocks_.loss, {t});
  backend_.upload(ids, micro_batch.ids.data());
  backend_.upload(targets, micro_batch.targets.data());
  upload_floats(backend_, weights, micro_batch.weights, micro_batch.loss_scale);

  const TensorRef x = embed_and_run_layers(step, ids);
  const TensorRef normed = final_normed(step, x);
  model_.head.forward_backward(step, model_.embedding.tokens, loss, workspace(step).dnormed.flatten_rows(),
                               normed.flatten_rows(), targets, weights, head_workspace(t));
  mesh_->set_activity(fmt::format("backward pass of iteration {}", step.iteration + 1));
  backward(step, x, ids, micro_batch.last);
  return weighted_loss(loss, micro_batch.weights);
}

void Gpt2Runner::backward(const Step& step, TensorRef x, TensorRef ids, bool last) {
  std::vector<Pending> sums;
  const auto finished = [&](std::size_t bucket) {
    if (!last) return;
    if (step.sequence_parallel) buckets_.sum_over_rows(bucket, step.tensor);
    sums.push_back(buckets_.start_gradient_sum(bucket, *mesh_->data));
  };
  const LayerWorkspace w = workspace(step);
  const std::size_t layers = model_.layers.size();
  const TensorRef dx = view(blocks_.dx, step.stream_shape(model_.config.hidden_size));
  model_.final_norm.backward(step, dx, step.own_rows(w.dnormed), x, final_statistics(step), /*accumulate_dx=*/false);
  finished(kFirstLayerBucket + layers);
  for (std::size_t layer = layers; layer-- > 0;) {
    const TransformerLayer::Saved there = saved(step, blocks_.layers[layer].backward);
    model_.layers[layer].recompute(step, options_.recompute, there, w);
    model_.layers[layer].backward(step, dx, there, w);
    finished(kFirstLayerBucket + layer);
  }
  model_.embedding.backward(step, dx, w.branch, ids);
  finished(kTokensBucket);
  finished(kPositionsBucket);
  for (Pending& sum : sums) sum.wait();
}

std::string Gpt2Runner::first_not_finite(const MicroBatch& micro_batch) {
  const Step step = step_of(micro_batch, true);
  const TensorRef ids = view(blocks_.ids, {step.batch, step.tokens});
  backend_.upload(ids, micro_batch.ids.data());
  std::string first;
  embed_and_run_layers(step, ids, [&](std::string_view place, TensorRef x) {
    if (first.empty() && !std::isfinite(backend_.sum_of_squares(x))) first = place;
  });
  return first;
}

void Gpt2Runner::losses(const MicroBatch& micro_batch, std::int64_t first_scored, std::span<float> losses) {
  const Step step = step_of(micro_batch, false);
  const std::int64_t b = step.batch, s = step.tokens, scored = s - first_scored;
  check_equal(static_cast<std::int64_t>(losses.size()), b * scored, "losses to fill");
  const TensorRef ids = view(blocks_.ids, {b, s});
  backend_.upload(ids, micro_batch.ids.data());
  const TensorRef normed = final_normed(step, embed_and_run_layers(step, ids));
  for (std::int64_t sequence = 0; sequence < b; ++sequence) {
    const TensorRef rows = normed.select(0, sequence).slice(0, first_scored, s);
    const TensorRef targets = view(blocks_.targets, {scored}), loss = view(blocks_.loss, {scored});
    backend_.upload(targets, micro_batch.targets.data() + sequence * s + first_scored);
    model_.head.forward(step, model_.embedding.tokens, loss, rows, targets, head_workspace(scored));
    download_floats(backend_, loss,
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
        download_floats(backend_, all.select(0, first / columns).select(0, row - begin).slice(0, 0, count),
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

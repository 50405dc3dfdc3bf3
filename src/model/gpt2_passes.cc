// The forward passes of a Gpt2Runner that no backward follows, and what they share with those of a step.
#include "model/gpt2_passes.h"

#include <cmath>

#include "base/error.h"
#include "model/host_values.h"

namespace teratron {

Gpt2Runner::Call Gpt2Runner::call_of(const MicroBatch& micro_batch, const SlicePlace& place, bool training) const {
  std::int64_t first = 0, tokens = micro_batch.tokens;
  if (memory_.timeline().slices() > 1) {
    check_equal(micro_batch.tokens, options_.tokens, "tokens of a sequence that is cut into slices");
    for (int slice = 0; slice < place.slice; ++slice) first += memory_.slice_tokens(slice);
    tokens = memory_.slice_tokens(place.slice);
  }
  return {.step = {.backend = backend_,
                   .tensor = *mesh_->tensor,
                   .batch = micro_batch.batch,
                   .tokens = tokens,
                   .first_position = first,
                   .first_sample = micro_batch.first_sample,
                   .sequence_length = micro_batch.tokens,
                   .seed = micro_batch.seed,
                   .iteration = micro_batch.iteration,
                   .training = training,
                   .sequence_parallel = options_.sequence_parallel},
          .place = place};
}

TensorRef Gpt2Runner::upload_slice(const Call& call, TensorRef to, const MicroBatch& micro_batch,
                                   std::span<const std::int32_t> from) const {
  const std::vector<std::int32_t> rows = slice_of(call.step, micro_batch, from);
  backend_.upload(to, rows.data());
  return to.reshape({call.step.batch, call.step.tokens});
}

TensorRef Gpt2Runner::final_normed(const Step& step, TensorRef x) {
  const TensorRef normed = memory_.workspace(step).normed;
  model_.final_norm.forward(step, step.own_rows(normed), x, memory_.final_statistics(step));
  step.gather_rows(normed);
  return normed;
}

void Gpt2Runner::share_from_last_stage(std::span<float> values) const {
  if (part_.stages() == 1) return;
  // The others have zeros.
  std::vector<double> sums(values.size());
  if (part_.has_head()) sums.assign(values.begin(), values.end());
  mesh_->pipeline->all_reduce_host(sums);
  std::transform(sums.begin(), sums.end(), values.begin(), [](double value) { return static_cast<float>(value); });
}

TensorRef Gpt2Runner::output(const Call& call) const {
  return part_.is_last(call.place.chunk) ? memory_.final_x(call.step, call.place) : memory_.sent(call.step, 0);
}

template <class After>
void Gpt2Runner::begin_forward(const Call& call, TensorRef ids, const After& after) {
  const int chunk = call.place.chunk;
  if (part_.is_first(chunk)) return run_embedding(call, ids, after);
  mesh_->pipeline->start_receive(memory_.input(call.step, call.place, 0), part_.stage_before(chunk)).wait();
}

template <class LastCell, class After>
void Gpt2Runner::run_forward_slice(const Call& call, TensorRef ids, const LastCell& last_cell, const After& after) {
  const int chunk = call.place.chunk;
  const TensorRef out = output(call);
  begin_forward(call, ids, after);
  run_layers(call, out, after);
  if (part_.is_last(chunk)) {
    last_cell(call, out);
  } else {
    mesh_->pipeline->start_send(out, part_.stage_after(chunk)).wait();
  }
}

template <class LastCell, class After>
void Gpt2Runner::run_forward(const MicroBatch& micro_batch, bool training, const LastCell& last_cell,
                             const After& after) {
  for (int slice = 0; slice < memory_.timeline().slices(); ++slice) {
    for (int chunk = 0; chunk < part_.chunks(); ++chunk) {
      const Call call = call_of(micro_batch, {.chunk = chunk, .slice = slice}, training);
      TensorRef ids;
      if (part_.is_first(chunk)) {
        ids = upload_slice(call, memory_.ids(call.step.batch * call.step.tokens), micro_batch, micro_batch.ids);
      }
      run_forward_slice(call, ids, last_cell, after);
    }
  }
}

std::string Gpt2Runner::first_not_finite(const MicroBatch& micro_batch) {
  std::string first;
  run_forward(
      micro_batch, true, [](const Call&, TensorRef) {},
      [&](std::string_view place, TensorRef x) {
        if (first.empty() && !std::isfinite(backend_.sum_of_squares(x))) first = place;
      });
  return first;
}

void Gpt2Runner::losses(const MicroBatch& micro_batch, std::int64_t first_scored, std::span<float> losses) {
  const std::int64_t b = micro_batch.batch, s = micro_batch.tokens, scored = s - first_scored;
  check_equal(static_cast<std::int64_t>(losses.size()), b * scored, "losses to fill");
  const auto score = [&](const Call& call, TensorRef x) {
    const std::int64_t slice_begin = call.step.first_position, slice_end = slice_begin + call.step.tokens;
    const std::int64_t begin = std::max(first_scored, slice_begin), count = slice_end - begin;
    const TensorRef normed = final_normed(call.step, x);
    if (count <= 0) return;
    for (std::int64_t sequence = 0; sequence < b; ++sequence) {
      const TensorRef rows = normed.select(0, sequence).slice(0, begin - slice_begin, slice_end - slice_begin);
      const TensorRef targets = memory_.targets(count), loss = memory_.loss(count);
      backend_.upload(targets, micro_batch.targets.data() + sequence * s + begin);
      model_.head.forward(call.step, model_.embedding.tokens, loss, rows, targets, memory_.head(count));
      download_floats(backend_, loss,
                      losses.subspan(static_cast<std::size_t>(sequence * scored + begin - first_scored),
                                     static_cast<std::size_t>(count)));
    }
  };
  run_forward(micro_batch, false, score, [](std::string_view, TensorRef) {});
  share_from_last_stage(losses);
}

void Gpt2Runner::logits(std::span<const std::int32_t> ids, std::int64_t first_position, std::int64_t rows,
                        std::span<float> logits) {
  const auto tokens = static_cast<std::int64_t>(ids.size());
  check_equal(static_cast<std::int64_t>(logits.size()), rows * model_.config.vocab_size, "logits to fill");
  check(first_position == 0 || options_.purpose == Purpose::kGeneration, "only generation keeps a cache");
  check(first_position + tokens <= model_.config.max_position_embeddings, "the model has positions for the tokens");
  Call call{.step = {.backend = backend_,
                     .tensor = *mesh_->tensor,
                     .tokens = tokens,
                     .first_position = first_position,
                     .sequence_length = first_position + tokens},
            .place = {}};
  const TensorRef device_ids = memory_.ids(tokens).reshape({1, tokens}), out = output(call);
  if (part_.has_embedding()) backend_.upload(device_ids, ids.data());
  const bool is_next_token = tokens == 1 && options_.purpose == Purpose::kGeneration && backend_.has_records();
  if (is_next_token) {
    call.step.cache_length = memory_.cache_length();
    const auto length = static_cast<std::int32_t>(first_position);
    backend_.upload(call.step.cache_length, &length);
  }
  const auto nothing = [](std::string_view, TensorRef) {};
  const auto layers = [&] { run_layers(call, out, nothing); };
  begin_forward(call, device_ids, nothing);
  // Between ranks that split them, layers are no work to record.
  is_next_token && mesh_->tensor->size() == 1 ? backend_.repeat(next_token_, layers) : layers();
  if (part_.has_head()) {
    read_last_logits(out.select(0, 0).slice(0, tokens - rows, tokens), logits);
  } else {
    mesh_->pipeline->start_send(out, part_.stage_after(0)).wait();
  }
  share_from_last_stage(logits);
}

void Gpt2Runner::read_last_logits(TensorRef x, std::span<float> logits) {
  const std::int64_t rows = x.dim(0);
  const TensorRef normed = memory_.normed_rows(x.shape);
  const Step last_rows{.backend = backend_, .tensor = *mesh_->tensor, .tokens = rows};
  model_.final_norm.forward(last_rows, normed, x, memory_.final_statistics(last_rows));
  const std::int64_t chunk = memory_.head(rows).chunk();
  for (std::int64_t begin = 0; begin < rows; begin += chunk) {
    read_logits(normed.slice(0, begin, std::min(begin + chunk, rows)), begin, logits);
  }
}

void Gpt2Runner::read_logits(TensorRef normed, std::int64_t first_row, std::span<float> logits) {
  const std::int64_t rows = normed.dim(0), vocab = model_.config.vocab_size;
  const std::int64_t columns = model_.embedding.tokens.shape[0];
  const TensorRef part = memory_.head(rows).logits.slice(0, 0, rows);
  backend_.linear_forward({.y = part, .x = normed, .weight = model_.embedding.tokens.value});
  const TensorRef all = all_logits(part);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t first = 0; first < vocab; first += columns) {
      const std::int64_t count = std::min(columns, vocab - first);
      download_floats(
          backend_, all.select(0, first / columns).select(0, row).slice(0, 0, count),
          logits.subspan(static_cast<std::size_t>((first_row + row) * vocab + first), static_cast<std::size_t>(count)));
    }
  }
}

TensorRef Gpt2Runner::all_logits(TensorRef part) {
  const int ranks = mesh_->tensor->size();
  const Shape shape{ranks, part.dim(0), part.dim(1)};
  const TensorRef all = ranks == 1 ? part.reshape(shape) : memory_.gathered_logits(shape);
  mesh_->tensor->all_gather(all, part);
  return all;
}

}  // namespace teratron

#include "executor/stage/stage_passes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "nn/host_values.h"

namespace teratron {
namespace {

// The call's tokens of every sequence, [batch, tokens of the slice], from values [batch, tokens of the sequence].
template <class T>
std::vector<T> slice_of(const LayerPass& pass, const MicroBatch& micro_batch, std::span<const T> values) {
  std::vector<T> rows;
  rows.reserve(static_cast<std::size_t>(pass.batch * pass.tokens));
  for (std::int64_t sequence = 0; sequence < micro_batch.batch; ++sequence) {
    const auto begin = values.begin() + sequence * micro_batch.tokens + pass.first_position;
    rows.insert(rows.end(), begin, begin + pass.tokens);
  }
  return rows;
}

LayerPass of_layers(LayerPass pass, const StageMemory& memory) {
  pass.adapters = memory.adapters();
  return pass;
}

// The pass of an end, whose parameters get their gradients at once, also where those of layers come later.
LayerPass of_end(LayerPass pass) {
  pass.weights_later = false;
  return pass;
}

}  // namespace

SliceCall StagePasses::call_of(const MicroBatch& micro_batch, const SliceKey& key, bool training) const {
  const StageMemory& memory = plan_.memory();
  std::int64_t first = 0, tokens = micro_batch.tokens;
  // A slice that few other micro-batches have is not worth a graph.
  const bool captures = training && micro_batch.slice_tokens.empty() && graphs_.capture(*mesh_.tensor);
  if (!micro_batch.labels.empty()) model_.traits.check_groups(micro_batch.batch);
  if (memory.timeline().most_slices() > 1) {
    check_equal(micro_batch.tokens, plan_.options().tokens, "tokens of a sequence that is cut into slices");
    const std::vector<std::int64_t>& planned = memory.cut_of(key.micro_batch).slice_tokens;
    const std::vector<std::int64_t>& slices = micro_batch.slice_tokens.empty() ? planned : micro_batch.slice_tokens;
    check_equal(slices.size(), planned.size(), "slices of a micro-batch");
    check_equal(std::reduce(slices.begin(), slices.end()), micro_batch.tokens, "tokens of a micro-batch's slices");
    first = std::accumulate(slices.begin(), slices.begin() + key.slice, std::int64_t{0});
    tokens = slices[static_cast<std::size_t>(key.slice)];
  }
  return {.pass = {.backend = backend_,
                   .tensor = *mesh_.tensor,
                   .batch = micro_batch.batch,
                   .tokens = tokens,
                   .first_position = first,
                   .rotary = memory.rotary(),
                   .first_sample = micro_batch.first_sample,
                   .sequence_length = std::max(micro_batch.tokens, micro_batch.uncut_tokens),
                   .seed = micro_batch.seed,
                   .iteration = micro_batch.iteration,
                   .counters = captures ? memory.counters() : TensorRef(),
                   .training = training,
                   .sequence_parallel = plan_.options().sequence_parallel},
          .key = key};
}

void StagePasses::begin(SliceCall& call, const MicroBatch& micro_batch) const {
  if (call.pass.counters) {
    check(micro_batch.first_sample <= std::numeric_limits<std::int32_t>::max(), "a batch's samples are counted in i32");
    const std::array counters = {static_cast<std::int32_t>(micro_batch.iteration),
                                 static_cast<std::int32_t>(micro_batch.first_sample)};
    backend_.upload(call.pass.counters, counters.data());
  }
  if (!micro_batch.key_lengths.empty()) {
    check_equal(static_cast<std::int64_t>(micro_batch.key_lengths.size()), micro_batch.batch, "lengths of sequences");
    call.pass.key_lengths = plan_.memory().key_lengths(micro_batch.batch);
    backend_.upload(call.pass.key_lengths, micro_batch.key_lengths.data());
  }
  const StageMemory& memory = plan_.memory();
  if (!micro_batch.first_keys.empty()) {
    check_equal(micro_batch.first_keys.size(), micro_batch.ids.size(), "first keys of tokens");
    see_from(call.pass, slice_of(call.pass, micro_batch, micro_batch.first_keys));
  } else if (memory.window() > 0) {
    see_from(call.pass, {});
  }
  if (!micro_batch.position_ids.empty() && memory.rotary_config().elements > 0) {
    const Shape shape{call.pass.batch, call.pass.tokens};
    call.pass.position_ids = upload(memory.position_ids(shape), call, micro_batch, micro_batch.position_ids);
  }
}

void StagePasses::see_from(LayerPass& pass, std::vector<std::int32_t> first_keys) const {
  const std::int64_t window = plan_.memory().window();
  first_keys.resize(static_cast<std::size_t>(pass.batch * pass.tokens));  // by zeros
  for (std::size_t row = 0; window > 0 && row < first_keys.size(); ++row) {
    const std::int64_t position = pass.first_position + static_cast<std::int64_t>(row) % pass.tokens;
    first_keys[row] = std::max(first_keys[row], static_cast<std::int32_t>(position - window + 1));
  }
  pass.first_keys = plan_.memory().first_keys({pass.batch, pass.tokens});
  backend_.upload(pass.first_keys, first_keys.data());
}

TensorRef StagePasses::upload(TensorRef to, const SliceCall& call, const MicroBatch& micro_batch,
                              std::span<const std::int32_t> values) const {
  const std::vector<std::int32_t> rows = slice_of(call.pass, micro_batch, values);
  backend_.upload(to, rows.data());
  return to;
}

SliceInputs StagePasses::embedding_inputs(const SliceCall& call, const MicroBatch& micro_batch) const {
  const StageMemory& memory = plan_.memory();
  const Shape shape{call.pass.batch, call.pass.tokens};
  SliceInputs inputs{.ids = upload(memory.ids(shape), call, micro_batch, micro_batch.ids)};
  if (model_.traits.token_types) {
    check_equal(micro_batch.token_types.size(), micro_batch.ids.size(), "types of tokens");
    inputs.token_types = upload(memory.token_types(shape), call, micro_batch, micro_batch.token_types);
  }
  if (!micro_batch.position_ids.empty()) {
    check_equal(micro_batch.position_ids.size(), micro_batch.ids.size(), "positions of tokens");
    inputs.position_ids = upload(memory.position_ids(shape), call, micro_batch, micro_batch.position_ids);
  }
  return inputs;
}

void StagePasses::upload_sparse_targets(SliceInputs& inputs, const SliceCall& call,
                                        const MicroBatch& micro_batch) const {
  const StageMemory& memory = plan_.memory();
  const std::vector<std::int32_t> all_targets = slice_of(call.pass, micro_batch, micro_batch.targets);
  const std::vector<float> all_weights = slice_of(call.pass, micro_batch, micro_batch.weights);
  std::vector<std::int32_t> targets, rows, numbers(all_targets.size(), -1);
  std::vector<float> weights;
  for (std::size_t row = 0; row < all_targets.size(); ++row) {
    if (all_weights[row] == 0) continue;
    numbers[row] = static_cast<std::int32_t>(targets.size());
    rows.push_back(static_cast<std::int32_t>(row));
    targets.push_back(all_targets[row]);
    weights.push_back(all_weights[row]);
  }
  const auto count = static_cast<std::int64_t>(targets.size());
  inputs.targets = memory.targets(count);
  inputs.weights = memory.weights(count);
  inputs.target_rows = memory.target_rows(count);
  inputs.target_numbers = memory.target_numbers(static_cast<std::int64_t>(numbers.size()));
  backend_.upload(inputs.target_numbers, numbers.data());
  backend_.upload(inputs.targets, targets.data());
  backend_.upload(inputs.target_rows, rows.data());
  upload_floats(backend_, inputs.weights, weights, micro_batch.loss_scale);
}

void StagePasses::upload_labels(SliceInputs& inputs, const MicroBatch& micro_batch) const {
  const StageMemory& memory = plan_.memory();
  const ModelTraits& traits = model_.traits;
  const std::int64_t labels = traits.labels_of(micro_batch.batch);
  check_equal(static_cast<std::int64_t>(micro_batch.labels.size()), labels, "labels");
  check_equal(micro_batch.label_weights.size(), micro_batch.labels.size(), "weights of labels");
  inputs.labels = memory.labels(labels);
  inputs.label_weights = memory.label_weights(labels);
  std::vector<std::int32_t> places(traits.labels_are_places ? micro_batch.labels.size() : 0);
  std::iota(places.begin(), places.end(), 0);
  backend_.upload(inputs.labels, traits.labels_are_places ? places.data() : micro_batch.labels.data());
  upload_floats(backend_, inputs.label_weights, micro_batch.label_weights, micro_batch.loss_scale);
}

void StagePasses::upload_texts(SliceInputs& inputs, const MicroBatch& micro_batch) const {
  const PooledTokens pools = model_.traits.pools;
  const std::int64_t kinds = model_.traits.label_sequences, groups = micro_batch.batch / kinds;
  std::vector<std::int32_t> text_of_row(micro_batch.ids.size(), -1);
  for (std::int64_t sequence = 0; sequence < micro_batch.batch; ++sequence) {
    const auto at = static_cast<std::size_t>(sequence);
    const std::int64_t length = micro_batch.key_lengths.empty() ? micro_batch.tokens : micro_batch.key_lengths[at];
    const std::int64_t begin = pools == PooledTokens::kLast ? length - 1 : 0,
                       end = pools == PooledTokens::kFirst ? 1 : length;
    const auto rows = text_of_row.begin() + sequence * micro_batch.tokens;
    std::fill(rows + begin, rows + end, static_cast<std::int32_t>(sequence % kinds * groups + sequence / kinds));
  }
  inputs.text_of_row = plan_.memory().text_of_row(std::ssize(text_of_row));
  backend_.upload(inputs.text_of_row, text_of_row.data());
}

SliceInputs StagePasses::head_inputs(const SliceCall& call, const MicroBatch& micro_batch) const {
  const StageMemory& memory = plan_.memory();
  const LayerPass& pass = call.pass;
  SliceInputs inputs;
  if (model_.traits.sparse_targets) {
    upload_sparse_targets(inputs, call, micro_batch);
  } else if (model_.traits.targets) {
    const std::int64_t rows = pass.batch * pass.tokens;
    inputs.targets = upload(memory.targets(rows), call, micro_batch, micro_batch.targets);
    inputs.weights = memory.weights(rows);
    upload_floats(backend_, inputs.weights, slice_of(pass, micro_batch, micro_batch.weights), micro_batch.loss_scale);
  }
  if (model_.traits.labels) upload_labels(inputs, micro_batch);
  if (model_.traits.pools != PooledTokens::kNone) upload_texts(inputs, micro_batch);
  return inputs;
}

std::optional<JointPass> StagePasses::joint_pass(const LayerPass& pass, int stage_of_end) const {
  if (!plan_.memory().has_joint_ends()) return std::nullopt;
  return JointPass{.pass = {.backend = pass.backend,
                            .tensor = *mesh_.model,
                            .batch = pass.batch,
                            .tokens = pass.tokens,
                            .first_position = pass.first_position,
                            .training = pass.training,
                            .accumulate = pass.accumulate},
                   .root = stage_of_end * mesh_.tensor->size()};
}

EndCall StagePasses::embedding_call(const SliceCall& call, const LayerPass& pass, const SliceInputs& inputs,
                                    const LayerWorkspace& layers) const {
  EndCall end = end_call(pass, inputs, layers);
  if (plan_.cells().has_embedding()) end.kept = plan_.memory().embedding_kept(call.key);
  end.memory = plan_.memory().embedding_memory();
  return end;
}

void StagePasses::embed_inputs(const SliceCall& call, const SliceInputs& inputs) {
  const LayerWorkspace layers = plan_.memory().workspace(call.pass);
  const std::optional<JointPass> joint = joint_pass(call.pass, plan_.cells().stage_of_embedding());
  EndCall end = embedding_call(call, call.pass, inputs, layers);
  end.joint = joint ? &*joint : nullptr;
  model_.embed(end, plan_.cells().has_embedding() ? plan_.memory().input(call.pass, call.key, 0) : TensorRef());
}

void StagePasses::embed(const SliceCall& call, const MicroBatch& micro_batch, const After& after) {
  embed_inputs(call, embedding_inputs(call, micro_batch));
  if (after && plan_.cells().has_embedding()) after({.x = plan_.memory().input(call.pass, call.key, 0)});
}

void StagePasses::embed(const SliceCall& call, std::span<const std::int32_t> ids) {
  const TensorRef there = plan_.memory().ids({call.pass.batch, call.pass.tokens});
  check_equal(static_cast<std::int64_t>(ids.size()), there.elements(), "ids of a call");
  backend_.upload(there, ids.data());
  // A next token's position is the length of its cache.
  const LayerPass& pass = call.pass;
  embed_inputs(
      call,
      {.ids = there, .position_ids = pass.is_next_token() ? pass.cache_lengths.reshape({pass.batch, 1}) : TensorRef()});
}

void StagePasses::embed_backward(const SliceCall& call, const MicroBatch& micro_batch, TensorRef dx) {
  const SliceInputs inputs = embedding_inputs(call, micro_batch);
  const LayerWorkspace layers = plan_.memory().workspace(call.pass);
  const LayerPass pass = of_end(call.pass);
  const std::optional<JointPass> joint = joint_pass(pass, plan_.cells().stage_of_embedding());
  EndCall end = embedding_call(call, pass, inputs, layers);
  end.joint = joint ? &*joint : nullptr;
  model_.embed_backward(end, dx, plan_.cells().has_head() || joint);
}

TensorRef StagePasses::kept_output(const SliceCall& call) const {
  const auto& [pass, key] = call;
  if (plan_.cells().is_last(key.chunk)) return plan_.memory().final_x(pass, key);
  return plan_.memory().input(pass, {key.chunk + 1, key.micro_batch, key.slice}, 0);
}

void StagePasses::forward_layers(const SliceCall& call, TensorRef out, const After& after) {
  const SliceKey& key = call.key;
  const StageMemory& memory = plan_.memory();
  const LayerPass pass = of_layers(call.pass, memory);
  const LayerWorkspace w = memory.workspace(pass);
  const int layers = plan_.cells().layers(key.chunk);
  for (int index = 0; index < layers; ++index) {
    const TensorRef y = index + 1 == layers ? out : memory.input(pass, key, index + 1);
    const TransformerLayer& layer = this->layer(key.chunk, index);
    graphs_.run(PassGraphs::Kind::kForward, call, index, y, [&] {
      TransformerLayer::Chain chain{.is_normed = index > 0 && layer.first_norm() != nullptr};
      if (index + 1 < layers) {
        chain.next = this->layer(key.chunk, index + 1).first_norm();
        const TransformerLayer::Saved next = memory.saved(pass, key, index + 1, false);
        chain.next_saved = next.norm1;
        chain.next_normed = next.normed1;
      }
      layer.forward(pass, y, memory.saved(pass, key, index, false), w, chain);
    });
    if (!after) continue;
    after({.layer = layer.index,
           .x = y,
           .of = &layer,
           .pass = &pass,
           .saved = memory.saved(pass, key, index, false),
           .workspace = w});
  }
}

void StagePasses::backward_layers(const SliceCall& call, TensorRef dx,
                                  const std::function<void(std::int64_t layer)>& done) {
  const SliceKey& key = call.key;
  const StageMemory& memory = plan_.memory();
  const LayerPass pass = of_layers(call.pass, memory);
  const LayerWorkspace w = memory.workspace(pass);
  TransformerLayer::BackwardChain chain;
  for (int index = plan_.cells().layers(key.chunk); index-- > 0;) {
    const TransformerLayer& layer = this->layer(key.chunk, index);
    // Where the layer before is made again, that takes the branch's memory.
    if (index > 0 && layer.first_norm() != nullptr && memory.recompute(key, index - 1) != Recompute::kFull) {
      const TransformerLayer& before = this->layer(key.chunk, index - 1);
      chain.before = before.takes_branch(pass) ? &before : nullptr;
      chain.before_mlp = before.in_workspace(pass, w).mlp;
    } else {
      chain.before = nullptr;
    }
    graphs_.run(PassGraphs::Kind::kBackward, call, index, dx, [&] {
      const TransformerLayer::Saved saved = memory.saved(pass, key, index, true);
      layer.recompute(pass, memory.recompute(key, index), saved, w);
      layer.backward(pass, dx, saved, w,
                     pass.weights_later ? memory.deferred(pass, key, index) : layer.in_workspace(pass, w), chain);
    });
    chain.has_branch = chain.before != nullptr;
    done(layer.index);
  }
}

void StagePasses::weight_gradients(const SliceCall& call, const std::function<void(std::int64_t layer)>& done) {
  const SliceKey& key = call.key;
  const StageMemory& memory = plan_.memory();
  const LayerPass pass = of_layers(call.pass, memory);
  for (int index = plan_.cells().layers(key.chunk); index-- > 0;) {
    const TransformerLayer& layer = this->layer(key.chunk, index);
    graphs_.run(PassGraphs::Kind::kWeightGradients, call, index, TensorRef(), [&] {
      layer.weight_gradients(pass, memory.saved(pass, key, index, true), memory.workspace(pass),
                             memory.deferred(pass, key, index));
    });
    done(layer.index);
  }
}

void StagePasses::head(const SliceCall& call, const MicroBatch& micro_batch, TensorRef x, TensorRef dx) {
  with_head(call, head_inputs(call, micro_batch), [&](const EndCall& end) { model_.head(end, x, dx); });
}

void StagePasses::target_losses(const SliceCall& call, const MicroBatch& micro_batch, TensorRef x,
                                std::span<double> losses) {
  const LayerPass& pass = call.pass;
  std::vector<double> rows(static_cast<std::size_t>(pass.batch * pass.tokens));
  with_head(call, head_inputs(call, micro_batch),
            [&](const EndCall& end) { download_floats(backend_, model_.target_losses(end, x), rows); });
  for (std::int64_t sequence = 0; sequence < pass.batch; ++sequence) {
    std::copy_n(rows.begin() + sequence * pass.tokens, pass.tokens,
                losses.begin() + sequence * micro_batch.tokens + pass.first_position);
  }
}

void StagePasses::clear_losses() { backend_.fill_zero(plan_.memory().losses()); }

LossSums StagePasses::losses(double loss_scale) {
  LossSums sums = no_losses(model_.traits.losses);
  if (!plan_.cells().has_head()) return sums;
  backend_.download(sums.of_kind.data(), plan_.memory().losses());
  for (double& sum : sums.of_kind) sum /= loss_scale;
  return sums;
}

void StagePasses::with_head(const SliceCall& call, const SliceInputs& inputs,
                            const std::function<void(const EndCall&)>& use) {
  const LayerWorkspace layers = plan_.memory().workspace(call.pass);
  const LayerPass pass = of_end(call.pass);
  const std::optional<JointPass> joint = joint_pass(pass, plan_.cells().stage_of_head());
  EndCall end = end_call(pass, inputs, layers);
  end.joint = joint ? &*joint : nullptr;
  end.losses = plan_.memory().losses();
  end.memory = plan_.memory().head_memory();
  use(end);
}

}  // namespace teratron

#include "model/decoder.h"

#include <algorithm>

namespace teratron {

Decoder::Decoder(const ModelConfig& model_config, GroupRank group, GroupRank stages)
    : Model({.hidden_size = model_config.hidden_size,
             .longest_sequence = model_config.max_position_embeddings,
             .init_method_std = model_config.init_method_std,
             .vocabulary_parallel = stages.size > 1},
            model_config.make_layers(group)),
      config(model_config),
      embedding(config.vocab_size, config.padded_vocab_size(std::int64_t{group.size} * stages.size),
                config.has_learned_positions() ? config.max_position_embeddings : 0, config.hidden_size,
                config.dropout_after_embedding(), group, stages),
      final_norm("final_norm", config.norm_shape(), group),
      output{.vocab_size = config.vocab_size, .vocab_begin = embedding.vocab_begin()} {
  if (config.untied_output) {
    output_weight = embedding.tokens;
    output_weight->name = "output.weight";
  }
  if (config.adapters.active()) {
    Decoder::visit([](Parameter& parameter) { parameter.frozen = !parameter.adapter; });
  }
}

void Decoder::visit(const ParameterVisitor& visitor) {
  embedding.visit(visitor);
  for (TransformerLayer& layer : layers) layer.visit(visitor);
  final_norm.visit(visitor);
  if (output_weight) visitor(*output_weight);
}

std::vector<ParameterBucket> Decoder::buckets() {
  using Part = ParameterBucket::Part;
  std::vector<ParameterBucket> all;
  if (output_weight) all.push_back({"output", {&*output_weight}, Part::kHead});
  all.push_back({"final_norm", parameters_of(final_norm), Part::kHead});
  add_layer_buckets(all);
  if (embedding.positions) all.push_back({"embedding.positions", {&*embedding.positions}, Part::kEmbedding});
  all.push_back({"embedding.tokens", {&embedding.tokens}, output_weight ? Part::kEmbedding : Part::kBothEnds});
  return all;
}

void Decoder::embed(const EndCall& call, TensorRef x) {
  const TensorRef full = call.pass.sequence_parallel || call.joint != nullptr ? call.layers.branch : x;
  embedding.look_up(call.vocabulary(), full, call.inputs.ids, call.inputs.position_ids);
  if (x) embedding.drop_out(call.pass, x, full);
}

void Decoder::embed_backward(const EndCall& call, TensorRef dx, bool has_head) {
  if (embedding.tokens.frozen) return;  // on all ranks: a frozen table needs no exchange
  const bool has_share = has_head && !output_weight;
  const TensorRef full = call.layers.branch, dsum = dx ? embedding.drop_out_backward(call.pass, dx, full) : full;
  if (call.joint != nullptr) call.joint->pass.tensor.broadcast(dsum, call.joint->root);
  embedding.look_up_backward(call.vocabulary(), dsum, call.inputs.ids, has_share || call.pass.accumulate,
                             call.inputs.position_ids);
}

Decoder::HeadMemory Decoder::carve(const EndSizes& sizes, Carver& memory) const {
  const auto& [call, logits_chunk, training] = sizes;
  const std::int64_t chunk = std::min(logits_chunk, call.rows()), columns = embedding.tokens.shape[0];
  HeadMemory head;
  head.rows.loss = memory.take(call.accumulation, {call.rows()});
  if (!training) {
    head.rows.gap = memory.take(call.accumulation, {call.rows()});
    head.rows.gap_of_lower = memory.take(call.accumulation, {call.rows()});
  }
  head.final = final_norm.carve(call, call.stream_rows(), memory);
  head.output = LanguageModelHead::carve(call, chunk, columns, memory);
  if (!training && call.tensor_ranks > 1) {
    head.gathered_logits = memory.take(call.compute, {call.tensor_ranks, chunk, columns});
  }
  return head;
}

TensorRef Decoder::final_normed(const EndCall& call, TensorRef x) const {
  const TensorRef normed = call.layers.normed;
  final_norm.forward(call.pass, call.pass.own_rows(normed), x, head_memory(call).final);
  call.pass.gather_rows(normed);
  return normed;
}

TensorRef Decoder::shared_normed(const EndCall& call, TensorRef x) const {
  if (x) final_normed(call, x);
  if (call.joint != nullptr) call.joint->pass.tensor.broadcast(call.layers.normed, call.joint->root);
  return call.layers.normed;
}

TensorRef Decoder::final_normed_rows(const EndCall& call, TensorRef rows) const {
  const TensorRef normed = call.layers.normed.flatten_rows().slice(0, 0, rows.dim(0));
  final_norm.forward(call.pass, normed, rows, head_memory(call).final.rows(0, rows.dim(0)));
  return normed;
}

void Decoder::head(const EndCall& call, TensorRef x, TensorRef dx) {
  const HeadMemory memory = head_memory(call);
  const bool makes_gradients = dx || (call.joint != nullptr && call.pass.training);
  if (!makes_gradients) {
    target_losses(call, x);
  } else {
    const TensorRef normed = shared_normed(call, x).flatten_rows(), dnormed = call.layers.dnormed;
    output.forward_backward(call.vocabulary(), output_weights(), memory.rows.loss, dnormed.flatten_rows(), normed,
                            call.inputs.targets, call.inputs.weights, memory.output);
    if (x) final_norm.backward(call.pass, dx, call.pass.own_rows(dnormed), x, memory.final, /*accumulate_dx=*/false);
  }
  if (x)
    call.pass.backend.weighted_sum({.total = call.losses, .value = memory.rows.loss, .weight = call.inputs.weights});
}

TensorRef Decoder::target_losses(const EndCall& call, TensorRef x) const {
  const HeadMemory memory = head_memory(call);
  output.forward(call.vocabulary(), output_weights(), memory.rows.loss, shared_normed(call, x).flatten_rows(),
                 call.inputs.targets, memory.output);
  return memory.rows.loss;
}

Decoder::RowScores Decoder::row_scores(const EndCall& call, TensorRef normed_rows, TensorRef targets,
                                       std::span<const std::int32_t> targets_here) const {
  const HeadMemory memory = head_memory(call);
  const std::int64_t rows = normed_rows.dim(0);
  RowScores scores{.loss = memory.rows.loss.slice(0, 0, rows), .gap = {}, .gap_of_lower = {}};
  if (memory.rows.gap && !targets_here.empty()) {
    scores.gap = memory.rows.gap.slice(0, 0, rows);
    scores.gap_of_lower = memory.rows.gap_of_lower.slice(0, 0, rows);
  }
  output.forward(call.pass, output_weights(), scores.loss, normed_rows, targets, memory.output,
                 {.all = scores.gap, .lower = scores.gap_of_lower, .targets = targets_here});
  return scores;
}

TensorRef Decoder::own_logits(const EndCall& call, TensorRef normed_rows) const {
  const TensorRef part = head_memory(call).output.logits.slice(0, 0, normed_rows.dim(0));
  output_weights().forward(call.pass, part, normed_rows, {.rows_alone = true});
  return part;
}

TensorRef Decoder::next_token_logits(const EndCall& call, TensorRef x, std::int64_t token) const {
  return own_logits(call, shared_normed(call, x).select(0, 0).slice(0, token, token + 1));
}

TensorRef Decoder::logits(const EndCall& call, TensorRef normed_rows) const {
  const std::int64_t rows = normed_rows.dim(0), ranks = call.pass.tensor.size();
  const TensorRef part = own_logits(call, normed_rows);
  const Shape shape{ranks, rows, part.dim(1)};
  const TensorRef all =
      ranks == 1 ? part.reshape(shape) : TensorRef(head_memory(call).gathered_logits.data, part.dtype, shape);
  call.pass.tensor.all_gather(all, part);
  return all;
}

}  // namespace teratron

#include "model/bert.h"

#include <numbers>

#include "model/bert_kind.h"

namespace teratron {
namespace {

ModelTraits traits_of(const ModelConfig& config) {
  ModelTraits traits{.hidden_size = config.hidden_size,
                     .longest_sequence = config.max_position_embeddings,
                     .init_method_std = config.init_method_std,
                     .token_types = bert_kind(config.kind).token_types > 0,
                     .key_lengths = true};
  if (is_task_head(config.head)) {
    BertTaskHead::add_to(traits, config.head);
  } else if (config.head == ModelHead::kVectors) {
    TextVectorHead::add_to(traits, config.vectors);
  } else if (config.head == ModelHead::kPretraining) {
    traits.sparse_targets = true;
    traits.labels = bert_kind(config.kind).orders_sentences;
    traits.losses = {{"lm loss", "lm_loss"}};
    if (traits.labels) {
      traits.losses.push_back({"sop loss", "sop_loss", true});
      traits.losses.push_back({"sop accuracy", "sop_accuracy", true, true});
    }
  } else {
    traits.targets = false;
    traits.losses = {};
  }
  return traits;
}

std::optional<Norm> norm_if(bool is_there, const char* name, const ModelConfig& config, GroupRank group) {
  if (!is_there) return std::nullopt;
  return Norm(name, config.norm_shape(), group);
}

std::optional<Parameter> table_of_types(const ModelConfig& config, GroupRank group) {
  const std::int64_t rows = bert_kind(config.kind).token_types;
  if (rows == 0) return std::nullopt;
  return Parameter{.name = "embedding.types.weight",
                   .shape = {rows, config.hidden_size},
                   .init = Init::kNormal,
                   .decay = true,
                   .group = group};
}

bool is_pre(const ModelConfig& config) { return config.norm_placement == NormPlacement::kPre; }

std::int64_t first_own_row(const LayerPass& pass, std::int64_t own_rows) {
  return pass.sequence_parallel ? own_rows * pass.tensor.rank() : 0;
}

// Heads read whole rows on every rank, and their gradient is whole, too.
LayerPass of_heads(LayerPass pass) {
  pass.sequence_parallel = false;
  return pass;
}

// The sequences' first tokens, as far as this rank holds their rows of the residual stream.
struct FirstTokens {
  TensorRef rows;      // [count, hidden], strided
  std::int64_t begin;  // the sequence of the first
};

FirstTokens first_tokens(const LayerPass& pass, TensorRef stream) {
  const TensorRef here = stream.flatten_rows();
  const std::int64_t rows = here.dim(0), first_row = first_own_row(pass, rows);
  const auto sequences_before = [&](std::int64_t row) { return (row + pass.tokens - 1) / pass.tokens; };
  const std::int64_t begin = sequences_before(first_row), end = sequences_before(first_row + rows);
  FirstTokens tokens{.rows = here.slice(0, 0, 0), .begin = begin};
  if (begin == end) return tokens;
  tokens.rows = here.slice(0, begin * pass.tokens - first_row, rows);
  tokens.rows.shape[0] = end - begin;
  tokens.rows.strides[0] *= pass.tokens;
  return tokens;
}

}  // namespace

Bert::Bert(const ModelConfig& model_config, GroupRank group)
    : Model(traits_of(model_config), model_config.make_layers(group)),
      config(model_config),
      // The embedding has no dropout of its own: it follows the token types and the norm.
      embedding(config.vocab_size, config.padded_vocab_size(group.size), config.max_position_embeddings,
                config.hidden_size, /*dropout_after=*/0, group),
      types(table_of_types(config, group)),
      embedding_norm(norm_if(!is_pre(config), "embedding.norm", config, group)),
      final_norm(norm_if(is_pre(config), "final_norm", config, group)) {
  if (config.has_pooler()) pooler.emplace(config, group);
  if (is_task_head(config.head)) task.emplace(config, group);
  if (config.head == ModelHead::kVectors) vectors = TextVectorHead{config.vectors, config.hidden_size};
  if (config.head == ModelHead::kPretraining) {
    heads.emplace(embedding.tokens, config, group);
  }
}

void Bert::visit(const ParameterVisitor& visitor) {
  embedding.visit(visitor);
  if (types) visitor(*types);
  if (embedding_norm) embedding_norm->visit(visitor);
  for (TransformerLayer& layer : layers) layer.visit(visitor);
  if (final_norm) final_norm->visit(visitor);
  if (pooler) pooler->dense.visit(visitor);
  if (heads) heads->visit(visitor);
  if (task) task->visit(visitor);
}

std::vector<ParameterBucket> Bert::buckets() {
  using Part = ParameterBucket::Part;
  std::vector<ParameterBucket> all;
  if (pooler) all.push_back({"pooler", parameters_of(pooler->dense), Part::kHead});
  if (task) all.push_back({"task", parameters_of(*task), Part::kHead});
  if (heads) all.push_back({"head", parameters_of(*heads), Part::kHead});
  if (final_norm) all.push_back({"final_norm", parameters_of(*final_norm), Part::kHead});
  add_layer_buckets(all);
  if (embedding_norm) all.push_back({"embedding.norm", parameters_of(*embedding_norm), Part::kEmbedding});
  all.push_back({"embedding.positions", {&*embedding.positions}, Part::kEmbedding});
  if (types) all.back().members.push_back(&*types);
  all.push_back({"embedding.tokens", {&embedding.tokens}, heads ? Part::kBothEnds : Part::kEmbedding});
  return all;
}

Bert::Kept Bert::carve_kept(const CallSizes& sizes, Carver& kept) const {
  if (!embedding_norm) return {};
  return {.sum = kept.take(sizes.compute, sizes.stream_shape(config.hidden_size)),
          .norm = embedding_norm->carve(sizes, sizes.stream_rows(), kept)};
}

// Memory in which the whole embedding is summed up; without sequence parallelism that is the residual stream itself.
TensorRef Bert::carve_full(const CallSizes& sizes, Carver& memory) const {
  if (!sizes.sequence_parallel) return {};
  return memory.take(sizes.compute, {sizes.batch, sizes.tokens, config.hidden_size});
}

void Bert::carve_embedding(const EndSizes& sizes, Carver& kept, Carver& memory) const {
  carve_kept(sizes.call, kept);
  carve_full(sizes.call, memory);
}

void Bert::embed(const EndCall& call, TensorRef x) {
  const LayerPass& pass = call.pass;
  Carver kept_memory = call.kept, memory = call.memory;
  const Kept kept = carve_kept(call.sizes.call, kept_memory);
  const TensorRef full = carve_full(call.sizes.call, memory), sum = embedding_norm ? kept.sum : x;
  embedding.forward(pass, sum, full ? full : sum, call.inputs.ids, call.inputs.position_ids);
  if (types) {
    const TensorRef of_types = call.layers.branch;
    if (types->shape[0] == 1) pass.backend.fill_zero(call.inputs.token_types);
    pass.backend.embedding_forward({.y = of_types, .ids = call.inputs.token_types, .tokens = types->value});
    pass.backend.add(sum, pass.own_rows(of_types));
  }
  if (embedding_norm) embedding_norm->forward(pass, x, sum, kept.norm);
  const Dropout mask = embedding_dropout(pass);
  if (mask.active()) pass.backend.dropout_backward({.dbranch = x, .dsum = x, .dropout = mask});
}

void Bert::embed_backward(const EndCall& call, TensorRef dx, bool has_head) {
  const LayerPass& pass = call.pass;
  Carver kept_memory = call.kept, memory = call.memory;
  const Kept kept = carve_kept(call.sizes.call, kept_memory);
  const TensorRef full = carve_full(call.sizes.call, memory);
  const Dropout mask = embedding_dropout(pass);
  if (mask.active()) pass.backend.dropout_backward({.dbranch = dx, .dsum = dx, .dropout = mask});
  TensorRef dsum = dx;
  if (embedding_norm) {
    dsum = pass.own_rows(call.layers.branch);
    embedding_norm->backward(pass, dsum, dx, kept.sum, kept.norm, /*accumulate_dx=*/false);
  }
  embedding.backward(pass, dsum, full, call.inputs.ids, (heads && has_head) || pass.accumulate,
                     call.inputs.position_ids);
  if (!types) return;
  if (types->shape[0] == 1) pass.backend.fill_zero(call.inputs.token_types);
  pass.backend.embedding_backward({.dtokens = types->gradient,
                                   .dy = full ? full : dsum,
                                   .ids = call.inputs.token_types,
                                   .accumulate_tokens = pass.accumulate});
}

Bert::HeadMemory Bert::carve(const EndSizes& sizes, Carver& memory) const {
  HeadMemory all;
  if (final_norm) all.final = final_norm->carve(sizes.call, sizes.call.stream_rows(), memory);
  if (pooler) all.pooler = BertPooler::carve(sizes, config.hidden_size, memory);
  if (heads) all.heads = heads->carve(sizes, embedding.tokens.shape[0], memory);
  if (task) all.task = task->carve(sizes, memory);
  if (vectors) all.vectors = vectors->carve(sizes, memory);
  return all;
}

TensorRef Bert::encoded(const EndCall& call, TensorRef x) const {
  const LayerPass& pass = call.pass;
  const TensorRef all = call.layers.normed, own = pass.own_rows(all);
  if (final_norm) {
    final_norm->forward(pass, own, x, head_memory(call).final);
  } else if (pass.sequence_parallel) {
    pass.backend.copy(own, x);
  } else {
    return x;
  }
  pass.gather_rows(all);
  return all;
}

TensorRef Bert::pooled(const EndCall& call, TensorRef encoded) const {
  check(pooler.has_value(), "a BERT with a pooler");
  const BertPooler::Saved saved = head_memory(call).pooler;
  pooler->forward(call.pass, encoded, saved);
  return saved.pooled;
}

TensorRef Bert::token_logits(const EndCall& call, TensorRef encoded, TensorRef rows) const {
  check(heads.has_value(), "a BERT with the heads of pre-training");
  return heads->token_logits(of_heads(call.pass), embedding.tokens, encoded, rows, head_memory(call).heads);
}

TensorRef Bert::read_by_task(const EndCall& call, TensorRef x) const {
  const TensorRef all = encoded(call, x);
  if (!task->reads_tokens()) return pooled(call, all);
  const Dropout mask = task->token_dropout(of_heads(call.pass));
  if (!mask.active()) return all.flatten_rows();
  const TensorRef read = call.layers.normed;  // x is the last layer's to keep
  call.pass.backend.dropout_backward({.dbranch = read, .dsum = all, .dropout = mask});
  return read.flatten_rows();
}

TensorRef Bert::task_outputs(const EndCall& call, TensorRef x) const {
  check(task.has_value(), "a BERT with the head of a task");
  return task->forward(of_heads(call.pass), read_by_task(call, x), head_memory(call).task);
}

void Bert::head(const EndCall& call, TensorRef x, TensorRef dx) {
  if (heads) pretraining_head(call, x, dx);
  if (task) task_head(call, x, dx);
  if (vectors) vector_head(call, x, dx);
}

void Bert::vector_head(const EndCall& call, TensorRef x, TensorRef dx) {
  const LayerPass &pass = call.pass, whole = of_heads(pass);
  const HeadMemory memory = head_memory(call);
  vectors->find_losses(whole, encoded(call, x).flatten_rows(), call.inputs, memory.vectors);
  pass.backend.weighted_sum({.total = call.losses, .value = memory.vectors.loss, .weight = call.inputs.label_weights});
  if (!dx) return;
  const TensorRef dencoded = final_norm ? pass.own_rows(call.layers.branch) : dx, drows = dencoded.flatten_rows();
  vectors->backward(whole, drows, first_own_row(pass, drows.dim(0)), call.inputs, memory.vectors);
  if (final_norm) final_norm->backward(pass, dx, dencoded, x, memory.final, /*accumulate_dx=*/false);
}

void Bert::task_head(const EndCall& call, TensorRef x, TensorRef dx) {
  const LayerPass &pass = call.pass, whole = of_heads(pass);
  const HeadMemory memory = head_memory(call);
  const TensorRef read = read_by_task(call, x);
  task->forward(whole, read, memory.task);
  task->find_losses(whole, call.inputs, memory.task);
  pass.backend.weighted_sum({.total = call.losses, .value = memory.task.loss, .weight = task->weights(call.inputs)});
  if (!dx) return;
  const TensorRef dencoded = final_norm ? pass.own_rows(call.layers.branch) : dx;
  if (task->reads_tokens()) {
    const TensorRef drows = dencoded.flatten_rows();
    task->backward(whole, drows, first_own_row(pass, drows.dim(0)), read, call.inputs, memory.task);
    const Dropout mask = task->token_dropout(pass);
    if (mask.active()) pass.backend.dropout_backward({.dbranch = dencoded, .dsum = dencoded, .dropout = mask});
  } else {
    task->backward(whole, memory.pooler.dpooled, 0, read, call.inputs, memory.task);
    pooler->backward(whole, memory.pooler);
    pass.backend.fill_zero(dencoded);
    add_to_first_tokens(pass, dencoded, memory.pooler);
  }
  if (final_norm) final_norm->backward(pass, dx, dencoded, x, memory.final, /*accumulate_dx=*/false);
}

void Bert::pretraining_head(const EndCall& call, TensorRef x, TensorRef dx) {
  const LayerPass& pass = call.pass;
  const HeadMemory memory = head_memory(call);
  const TensorRef all = encoded(call, x), rows = all.flatten_rows();
  const LayerPass whole = of_heads(pass);
  const TensorRef drows = dx ? call.layers.dnormed.flatten_rows() : TensorRef();
  heads->predict_tokens(whole, embedding.tokens, rows, drows, call.inputs, memory.heads);
  const std::int64_t targets = call.inputs.targets.dim(0);
  pass.backend.weighted_sum({.total = call.losses.slice(0, 0, 1),
                             .value = memory.heads.loss.slice(0, 0, targets),
                             .weight = call.inputs.weights});
  if (heads->order) predict_order(call, all, memory, static_cast<bool>(dx));
  if (!dx) return;
  // The gradient of a row is that of its target, or nothing: again a gather, by the targets' numbers.
  const TensorRef dencoded = final_norm ? pass.own_rows(call.layers.branch) : dx;
  const std::int64_t here = dencoded.flatten_rows().dim(0), first = first_own_row(pass, here);
  pass.backend.embedding_forward({.y = dencoded.reshape({1, here, config.hidden_size}),
                                  .ids = call.inputs.target_numbers.slice(0, first, first + here).reshape({1, here}),
                                  .tokens = drows});
  if (heads->order) add_to_first_tokens(pass, dencoded, memory.pooler);
  if (final_norm) final_norm->backward(pass, dx, dencoded, x, memory.final, /*accumulate_dx=*/false);
}

void Bert::predict_order(const EndCall& call, TensorRef encoded, const HeadMemory& memory, bool backward) const {
  const LayerPass &pass = call.pass, whole = of_heads(pass);
  pooler->forward(whole, encoded, memory.pooler);
  heads->predict_order(whole, memory.pooler.pooled, backward ? memory.pooler.dpooled : TensorRef(), call.inputs,
                       memory.heads);
  pass.backend.weighted_sum({.total = call.losses.slice(0, 1, 2),
                             .value = memory.heads.order_loss.slice(0, 0, pass.batch),
                             .weight = call.inputs.label_weights});
  // The likelier of two orders has a loss below log 2.
  pass.backend.weighted_sum({.total = call.losses.slice(0, 2, 3),
                             .value = memory.heads.order_loss.slice(0, 0, pass.batch),
                             .weight = call.inputs.label_weights,
                             .count_below = std::numbers::ln2});
  if (backward) pooler->backward(whole, memory.pooler);
}

void Bert::add_to_first_tokens(const LayerPass& pass, TensorRef dencoded, const BertPooler::Saved& saved) const {
  const auto [rows, begin] = first_tokens(pass, dencoded);
  if (rows.dim(0) == 0) return;
  const TensorRef sums = saved.dpooled.slice(0, begin, begin + rows.dim(0));  // whose value is used up
  pass.backend.copy(sums, rows);
  pass.backend.add(sums, saved.dfirst.slice(0, begin, begin + rows.dim(0)));
  pass.backend.copy(rows, sums);
}

}  // namespace teratron

// The memory of a Gpt2Runner: every block a step needs, from when to when. A training step is a line of moments:
// embedding, layers forward, head, layers backward, embedding backward, optimizer. Activations live from their forward
// to their backward; with one micro-batch a step, a gradient is born where its layer's backward runs and so may lie
// where the activations of layers above lay.
#include "model/gpt2.h"

namespace teratron {

struct Gpt2Runner::Moments {
  int layers;
  bool training;
  bool gradients_all_step;

  int embedding() const { return 0; }
  int forward(int layer) const { return 1 + layer; }
  int head() const { return 1 + layers; }
  int backward(int layer) const { return training ? 2 + layers + (layers - 1 - layer) : forward(layer); }
  int workspace_end() const { return training ? backward(0) : head(); }
  int embedding_backward() const { return training ? 2 + 2 * layers : head(); }
  // Gradients stay until the optimizer, after every backward.
  int optimizer() const { return 3 + 2 * layers; }
  int gradient_from(int moment) const { return gradients_all_step ? 0 : moment; }
};

Gpt2Runner::Gpt2Runner(Backend& backend, const ModelConfig& config, const RunnerOptions& options,
                       std::shared_ptr<Mesh> mesh)
    : backend_(backend),
      mesh_(mesh ? std::move(mesh) : std::make_shared<Mesh>(make_single_rank_mesh())),
      options_(options),
      model_(config, {.rank = mesh_->tensor->rank(), .size = mesh_->tensor->size()}) {
  mesh_->attach(&backend);
  const Moments when{.layers = static_cast<int>(config.num_layers),
                     .training = options.purpose == Purpose::kTraining,
                     .gradients_all_step = !options.single_micro_batch};
  plan_parameters(when);
  plan_activations(when);
  arena_.plan();
}

void Gpt2Runner::plan_parameters(const Moments& when) {
  // A gradient is born when backward first writes it, and its life ends with the step: nothing of the next exists then.
  const auto add = [&](std::string name, std::vector<Parameter*> members, int moment) {
    buckets_.add(std::move(name), std::move(members), when.gradient_from(moment), when.optimizer());
  };
  const auto members = [](auto& part) {
    std::vector<Parameter*> all;
    part.visit([&](Parameter& parameter) { all.push_back(&parameter); });
    return all;
  };
  add("embedding.tokens", {&model_.embedding.tokens}, when.head());
  add("embedding.positions", {&model_.embedding.positions}, when.embedding_backward());
  for (int layer = 0; layer < when.layers; ++layer) {
    add(fmt::format("layers.{}", layer), members(model_.layers[static_cast<std::size_t>(layer)]), when.backward(layer));
  }
  add("final_norm", members(model_.final_norm), when.head());
  buckets_.plan(arena_, backend_.compute_dtype(), when.training);
}

void Gpt2Runner::plan_activations(const Moments& when) {
  const ModelConfig& c = model_.config;
  const std::int64_t b = options_.batch, s = options_.tokens, t = b * s, h = c.hidden_size;
  const std::int64_t ranks = mesh_->tensor->size(), width = h / ranks, ffn = c.ffn_hidden_size() / ranks;
  const std::int64_t heads = c.num_attention_heads / ranks;
  const DType dtype = backend_.compute_dtype();
  const int begin = when.embedding(), end = when.embedding_backward();
  const auto activation = [&](const char* name, const Shape& shape, int first, int last) {
    return arena_.add(name, MemoryKind::kActivations, dtype, shape, first, last);
  };
  const auto workspace = [&](const char* name, const Shape& shape, int first, int last) {
    return arena_.add(name, MemoryKind::kWorkspace, dtype, shape, first, last);
  };
  blocks_.ids = arena_.add("ids", MemoryKind::kActivations, DType::kI32, {t}, begin, end);
  blocks_.targets = arena_.add("targets", MemoryKind::kActivations, DType::kI32, {t}, begin, when.head());
  blocks_.weights = activation("weights", {t}, begin, when.head());
  blocks_.loss = activation("loss", {t}, when.head(), end);
  blocks_.normed = workspace("normed", {t, h}, when.forward(0), when.workspace_end());
  blocks_.branch = workspace("branch", {t, h}, when.forward(0), when.workspace_end());
  blocks_.wide = workspace("wide", {t, ffn}, when.forward(0), when.workspace_end());
  blocks_.dnormed = workspace("dnormed", {when.training ? t : 0, h}, when.head(), when.workspace_end());
  blocks_.dx = workspace("dx", {when.training ? t : 0, h}, when.head(), end);

  const std::int64_t chunk = std::min(options_.logits_chunk, t);
  const std::int64_t columns = model_.embedding.tokens.shape[0];
  blocks_.logits = workspace("logits", {chunk, columns}, when.head(), when.head());
  blocks_.gathered_logits =
      arena_.add("gathered_logits", MemoryKind::kCommunication, dtype,
                 {when.training || ranks == 1 ? 0 : ranks * chunk, columns}, when.head(), when.head());
  blocks_.max = workspace("max", {chunk}, when.head(), when.head());
  blocks_.own_max = workspace("own_max", {chunk}, when.head(), when.head());
  blocks_.sum_and_target = workspace("sum_and_target", {2, chunk}, when.head(), when.head());
  blocks_.final_mean = activation("final_mean", {t}, when.head(), when.head());
  blocks_.final_rstd = activation("final_rstd", {t}, when.head(), when.head());

  const bool generation = options_.purpose == Purpose::kGeneration;
  for (int layer = 0; layer < when.layers; ++layer) {
    const int first = when.forward(layer), last = when.backward(layer);
    // The input is written by what runs before. Without a backward pass it dies here, and the next layer's takes over.
    const int written = layer == 0 ? when.embedding() : when.forward(layer - 1);
    LayerBlocks blocks{};
    blocks.x = activation("x", {t, h}, written, last);
    blocks.mean1 = activation("mean1", {t}, first, last);
    blocks.rstd1 = activation("rstd1", {t}, first, last);
    blocks.qkv = generation
                     ? activation("key/value cache", {b, c.max_position_embeddings, 3 * width}, 0, Arena::kForever)
                     : activation("qkv", {t, 3 * width}, first, last);
    blocks.context = activation("context", {t, width}, first, last);
    blocks.log_sum_exp = activation("log_sum_exp", {b, heads, s}, first, last);
    blocks.x1 = activation("x1", {t, h}, first, last);
    blocks.mean2 = activation("mean2", {t}, first, last);
    blocks.rstd2 = activation("rstd2", {t}, first, last);
    blocks.pre_activation = activation("pre_activation", {t, ffn}, first, last);
    blocks_.layers.push_back(blocks);
  }
  blocks_.final_x = activation("final_x", {t, h}, when.forward(when.layers - 1), when.head());
}

void Gpt2Runner::allocate() {
  arena_.allocate(backend_);
  buckets_.place(arena_);
}

TensorRef Gpt2Runner::view(Arena::Block block, const Shape& shape) const {
  const TensorRef whole = arena_[block];
  check(shape.elements() <= whole.elements(), "a call within the runner's planned sizes");
  return {whole.data, whole.dtype, shape};
}

TransformerLayer::Saved Gpt2Runner::saved(const Step& step, std::size_t layer) const {
  const LayerBlocks& blocks = blocks_.layers[layer];
  const ModelConfig& c = model_.config;
  const std::int64_t b = step.batch, s = step.tokens, t = b * s, h = c.hidden_size;
  const std::int64_t ranks = mesh_->tensor->size(), width = h / ranks;
  const bool generation = options_.purpose == Purpose::kGeneration;
  return {.x = view(blocks.x, {b, s, h}),
          .norm1 = {.mean = view(blocks.mean1, {t}), .rstd = view(blocks.rstd1, {t})},
          .attention = {.qkv = view(blocks.qkv, {b, generation ? c.max_position_embeddings : s, 3 * width}),
                        .context = view(blocks.context, {b, s, width}),
                        .log_sum_exp = view(blocks.log_sum_exp, {b, c.num_attention_heads / ranks, s})},
          .x1 = view(blocks.x1, {b, s, h}),
          .norm2 = {.mean = view(blocks.mean2, {t}), .rstd = view(blocks.rstd2, {t})},
          .mlp = {.pre_activation = view(blocks.pre_activation, {b, s, c.ffn_hidden_size() / ranks})}};
}

LayerWorkspace Gpt2Runner::workspace(const Step& step) const {
  const std::int64_t b = step.batch, s = step.tokens, h = model_.config.hidden_size;
  const bool training = options_.purpose == Purpose::kTraining;
  return {.normed = view(blocks_.normed, {b, s, h}),
          .branch = view(blocks_.branch, {b, s, h}),
          .dnormed = training ? view(blocks_.dnormed, {b, s, h}) : TensorRef(),
          .wide = view(blocks_.wide, {b, s, model_.config.ffn_hidden_size() / mesh_->tensor->size()})};
}

LanguageModelHead::Workspace Gpt2Runner::head_workspace(std::int64_t rows) const {
  const std::int64_t chunk = std::min(arena_[blocks_.logits].dim(0), rows);
  return {.logits = view(blocks_.logits, {chunk, model_.embedding.tokens.shape[0]}),
          .max = view(blocks_.max, {chunk}),
          .own_max = view(blocks_.own_max, {chunk}),
          .sum_and_target = view(blocks_.sum_and_target, {2, chunk})};
}

}  // namespace teratron

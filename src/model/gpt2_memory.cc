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
  buckets_.plan(arena_, backend_.compute_dtype(), when.training,
                options_.shard_optimizer ? mesh_->data.get() : nullptr);
}

std::int64_t Gpt2Runner::stream_rows() const {
  const std::int64_t rows = options_.batch * options_.tokens;
  return options_.sequence_parallel ? rows / mesh_->tensor->size() : rows;
}

void Gpt2Runner::plan_activations(const Moments& when) {
  const std::int64_t t = options_.batch * options_.tokens, h = model_.config.hidden_size;
  const std::int64_t ffn = model_.config.ffn_hidden_size() / mesh_->tensor->size();
  const DType dtype = backend_.compute_dtype();
  const int begin = when.embedding(), end = when.embedding_backward();
  const auto workspace = [&](const char* name, const Shape& shape, int first, int last) {
    return arena_.add(name, MemoryKind::kWorkspace, dtype, shape, first, last);
  };
  blocks_.ids = arena_.add("ids", MemoryKind::kActivations, DType::kI32, {t}, begin, end);
  blocks_.normed = workspace("normed", {t, h}, when.forward(0), when.workspace_end());
  // Where the stream is shared out, the embedding is put together here.
  blocks_.branch = options_.sequence_parallel ? workspace("branch", {t, h}, begin, end)
                                              : workspace("branch", {t, h}, when.forward(0), when.workspace_end());
  blocks_.wide = workspace("wide", {t, ffn}, when.forward(0), when.workspace_end());
  blocks_.dnormed = workspace("dnormed", {when.training ? t : 0, h}, when.head(), when.workspace_end());
  blocks_.dx = workspace("dx", {when.training ? stream_rows() : 0, h}, when.head(), end);
  for (int layer = 0; layer < when.layers; ++layer) blocks_.layers.push_back(plan_layer(when, layer));
  blocks_.final_x = arena_.add("final_x", MemoryKind::kActivations, dtype, {stream_rows(), h},
                               when.forward(when.layers - 1), when.head());
  plan_head(when);
}

void Gpt2Runner::plan_head(const Moments& when) {
  const std::int64_t t = options_.batch * options_.tokens, ranks = mesh_->tensor->size();
  const std::int64_t chunk = std::min(options_.logits_chunk, t), columns = model_.embedding.tokens.shape[0];
  const DType dtype = backend_.compute_dtype(), accumulation = backend_.accumulation_dtype();
  const int begin = when.embedding(), head = when.head(), end = when.embedding_backward();
  const auto activation = [&](const char* name, const Shape& shape, int first, int last) {
    return arena_.add(name, MemoryKind::kActivations, accumulation, shape, first, last);
  };
  const auto workspace = [&](const char* name, DType type, const Shape& shape) {
    return arena_.add(name, MemoryKind::kWorkspace, type, shape, head, head);
  };
  blocks_.targets = arena_.add("targets", MemoryKind::kActivations, DType::kI32, {t}, begin, head);
  blocks_.weights = activation("weights", {t}, begin, head);
  blocks_.loss = activation("loss", {t}, head, end);
  blocks_.final_mean = activation("final_mean", {stream_rows()}, head, head);
  blocks_.final_rstd = activation("final_rstd", {stream_rows()}, head, head);
  blocks_.logits = workspace("logits", dtype, {chunk, columns});
  blocks_.gathered_logits =
      arena_.add("gathered_logits", MemoryKind::kCommunication, dtype,
                 {when.training || ranks == 1 ? 0 : ranks * chunk, columns}, when.head(), when.head());
  blocks_.max = workspace("max", accumulation, {chunk});
  blocks_.own_max = workspace("own_max", accumulation, {chunk});
  blocks_.sum_and_target = workspace("sum_and_target", accumulation, {2, chunk});
}

Gpt2Runner::LayerPlan Gpt2Runner::plan_layer(const Moments& when, int layer) {
  const ModelConfig& c = model_.config;
  const std::int64_t b = options_.batch, s = options_.tokens, t = b * s, h = c.hidden_size, rows = stream_rows();
  const std::int64_t ranks = mesh_->tensor->size(), width = h / ranks, ffn = c.ffn_hidden_size() / ranks;
  const DType dtype = backend_.compute_dtype(), accumulation = backend_.accumulation_dtype();
  const int forward = when.forward(layer), backward = when.backward(layer);
  const bool full = options_.recompute == Recompute::kFull, any = options_.recompute != Recompute::kNone;
  LayerPlan plan{};
  const auto add = [&](const char* name, DType type, const Shape& shape, int first, int last) {
    return arena_.add(name, MemoryKind::kActivations, type, shape, first, last);
  };
  // The input is written by what runs before. Without a backward pass it dies here, and the next layer's takes over.
  const int written = layer == 0 ? when.embedding() : when.forward(layer - 1);
  plan.forward.x = plan.backward.x = add("x", dtype, {rows, h}, written, backward);
  // What is made again has a place for the time of each pass.
  const auto keep = [&](Arena::Block LayerBlocks::*block, const char* name, DType type, const Shape& shape,
                        bool again) {
    plan.forward.*block = add(name, type, shape, forward, again ? forward : backward);
    plan.backward.*block = again ? add(name, type, shape, backward, backward) : plan.forward.*block;
  };
  if (options_.purpose == Purpose::kGeneration) {
    plan.forward.qkv = plan.backward.qkv =
        add("key/value cache", dtype, {b, c.max_position_embeddings, 3 * width}, 0, Arena::kForever);
  } else {
    keep(&LayerBlocks::qkv, "qkv", dtype, {t, 3 * width}, full);
  }
  keep(&LayerBlocks::context, "context", dtype, {t, width}, any);
  keep(&LayerBlocks::log_sum_exp, "log_sum_exp", accumulation, {b, c.num_attention_heads / ranks, s}, any);
  keep(&LayerBlocks::mean1, "mean1", accumulation, {rows}, full);
  keep(&LayerBlocks::rstd1, "rstd1", accumulation, {rows}, full);
  keep(&LayerBlocks::x1, "x1", dtype, {rows, h}, full);
  keep(&LayerBlocks::mean2, "mean2", accumulation, {rows}, full);
  keep(&LayerBlocks::rstd2, "rstd2", accumulation, {rows}, full);
  keep(&LayerBlocks::pre_activation, "pre_activation", dtype, {t, ffn}, full);
  return plan;
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

TransformerLayer::Saved Gpt2Runner::saved(const Step& step, const LayerBlocks& blocks) const {
  const ModelConfig& c = model_.config;
  const std::int64_t b = step.batch, s = step.tokens;
  const std::int64_t ranks = mesh_->tensor->size(), width = c.hidden_size / ranks;
  const bool generation = options_.purpose == Purpose::kGeneration;
  const Shape stream = step.stream_shape(c.hidden_size), rows{step.stream_shape(1).elements()};
  return {.x = view(blocks.x, stream),
          .norm1 = {.mean = view(blocks.mean1, rows), .rstd = view(blocks.rstd1, rows)},
          .attention = {.qkv = view(blocks.qkv, {b, generation ? c.max_position_embeddings : s, 3 * width}),
                        .context = view(blocks.context, {b, s, width}),
                        .log_sum_exp = view(blocks.log_sum_exp, {b, c.num_attention_heads / ranks, s})},
          .x1 = view(blocks.x1, stream),
          .norm2 = {.mean = view(blocks.mean2, rows), .rstd = view(blocks.rstd2, rows)},
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

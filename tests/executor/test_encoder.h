// A model that differs from GPT-2 in all that models may differ in, for tests of the executor: it sees later tokens but
// not padding, has post-norm layers, token types, a norm behind its embedding, an output projection of its own and a
// second loss, of a label for each sequence, read from its first token.
#pragma once

#include <algorithm>

#include "executor/model.h"
#include "model/config.h"
#include "nn/embedding.h"
#include "nn/language_model_head.h"

namespace teratron::test {

class TestEncoder : public Model {
 public:
  static constexpr std::int64_t kTypes = 2, kLabels = 3;

  explicit TestEncoder(const ModelConfig& config, GroupRank place = {})
      : Model({.hidden_size = config.hidden_size,
               .longest_sequence = config.max_position_embeddings,
               .init_method_std = config.init_method_std,
               .token_types = true,
               .key_lengths = true,
               .labels = true,
               .losses = {{"lm loss"}, {"label loss", true}}},
              make_layers(config, place)),
        embedding(config.vocab_size, config.padded_vocab_size(place.size), config.max_position_embeddings,
                  config.hidden_size, /*hidden_dropout=*/0, place),
        types{.name = "embedding.types.weight",
              .shape = {kTypes, config.hidden_size},
              .init = Init::kNormal,
              .decay = true,
              .place = place},
        embedding_norm("embedding.norm", config.hidden_size, config.layernorm_epsilon, place),
        output(projection("output", config.vocab_size, config.padded_vocab_size(place.size), config, place)),
        classifier(projection("classifier", kLabels, round_up<std::int64_t>(kLabels, place.size), config, place)),
        output_head{.vocab_size = config.vocab_size, .vocab_begin = place.rank * output.shape[0]},
        label_head{.vocab_size = kLabels, .vocab_begin = place.rank * classifier.shape[0]},
        dropout_(config.hidden_dropout) {}

  Embedding embedding;
  Parameter types;
  LayerNorm embedding_norm;
  Parameter output, classifier;  // [padded outputs / ranks, hidden]
  LanguageModelHead output_head, label_head;

  void visit(const ParameterVisitor& visitor) override {
    embedding.visit(visitor);
    visitor(types);
    embedding_norm.visit(visitor);
    for (TransformerLayer& layer : layers) layer.visit(visitor);
    visitor(output);
    visitor(classifier);
  }

  std::vector<ParameterBucket> buckets() override {
    using Part = ParameterBucket::Part;
    std::vector<ParameterBucket> all = {{"classifier", {&classifier}, Part::kHead}, {"output", {&output}, Part::kHead}};
    add_layer_buckets(all);
    all.push_back({"embedding.norm", parameters_of(embedding_norm), Part::kEmbedding});
    all.push_back({"embedding", {&embedding.tokens, &embedding.positions, &types}, Part::kEmbedding});
    return all;
  }

  void carve_embedding(const EndSizes& sizes, Carver& kept, Carver& memory) const override {
    carve_kept(sizes.call, kept);
    carve_full(sizes.call, memory);
  }
  void carve_head(const EndSizes& sizes, Carver& memory) const override { carve(sizes, memory); }

  void embed(const EndCall& call, TensorRef x) override {
    Carver kept_memory = call.kept, memory = call.memory;
    const Kept kept = carve_kept(call.sizes.call, kept_memory);
    const TensorRef full = carve_full(call.sizes.call, memory), of_types = call.layers.branch;
    embedding.forward(call.pass, kept.sum, full, call.inputs.ids);
    call.pass.backend.embedding_forward({.y = of_types, .ids = call.inputs.token_types, .tokens = types.value});
    call.pass.backend.add(kept.sum, call.pass.own_rows(of_types));
    embedding_norm.forward(call.pass, x, kept.sum, kept.norm);
    if (mask(call.pass).active()) call.pass.backend.dropout_backward({x, x, mask(call.pass)});
  }

  void embed_backward(const EndCall& call, TensorRef dx, bool) override {
    Carver kept_memory = call.kept, memory = call.memory;
    const Kept kept = carve_kept(call.sizes.call, kept_memory);
    const TensorRef full = carve_full(call.sizes.call, memory), dsum = call.pass.own_rows(call.layers.branch);
    if (mask(call.pass).active()) call.pass.backend.dropout_backward({dx, dx, mask(call.pass)});
    embedding_norm.backward(call.pass, dsum, dx, kept.sum, kept.norm, /*accumulate_dx=*/false);
    embedding.backward(call.pass, dsum, full, call.inputs.ids, call.pass.accumulate);
    call.pass.backend.embedding_backward({.dtokens = types.gradient,
                                          .dy = call.pass.sequence_parallel ? full : dsum,
                                          .ids = call.inputs.token_types,
                                          .accumulate_tokens = call.pass.accumulate});
  }

  void head(const EndCall& call, TensorRef x, TensorRef dx) override {
    Carver memory = call.memory;
    const HeadMemory head = carve(call.sizes, memory);
    const LayerPass& pass = call.pass;
    TensorRef full = x;
    if (pass.sequence_parallel) {
      full = call.layers.normed;
      pass.backend.copy(pass.own_rows(full), x);
      pass.gather_rows(full);
    }
    pass.backend.copy(head.first, full.select(1, 0));
    LayerPass of_first = pass;
    of_first.tokens = 1;
    of_first.sequence_parallel = false;
    const SliceInputs& in = call.inputs;
    if (!dx) {
      output_head.forward(pass, output, head.loss, full.flatten_rows(), in.targets, head.output);
      label_head.forward(of_first, classifier, head.label_loss, head.first, in.labels, head.classifier);
    } else {
      const TensorRef dfull = call.layers.dnormed;
      output_head.forward_backward(pass, output, head.loss, dfull.flatten_rows(), full.flatten_rows(), in.targets,
                                   in.weights, head.output);
      pass.backend.copy(dx, pass.own_rows(dfull));
      label_head.forward_backward(of_first, classifier, head.label_loss, head.dfirst, head.first, in.labels,
                                  in.label_weights, head.classifier);
      add_to_first_tokens(pass, dx, head.dfirst);
    }
    pass.backend.weighted_sum({.total = call.losses.slice(0, 0, 1), .value = head.loss, .weight = in.weights});
    pass.backend.weighted_sum(
        {.total = call.losses.slice(0, 1, 2), .value = head.label_loss, .weight = in.label_weights});
  }

 private:
  struct Kept {
    TensorRef sum;  // stream: what the embedding's norm reads
    LayerNorm::Saved norm;
  };
  struct HeadMemory {
    TensorRef loss, label_loss, first, dfirst;
    LanguageModelHead::Workspace output, classifier;
  };

  static std::vector<TransformerLayer> make_layers(const ModelConfig& config, GroupRank place) {
    TransformerLayerConfig layer = config.layer_config();
    layer.norm_placement = NormPlacement::kPost;
    layer.causal = false;
    layer.activation = Activation::kGeluErf;
    std::vector<TransformerLayer> layers;
    for (std::int64_t i = 0; i < config.num_layers; ++i) layers.emplace_back(layer, i, place);
    return layers;
  }
  static Parameter projection(const char* name, std::int64_t outputs, std::int64_t padded, const ModelConfig& config,
                              GroupRank place) {
    return {.name = std::string(name) + ".weight",
            .shape = {padded / place.size, config.hidden_size},
            .init = Init::kNormal,
            .padding_rows = padded - outputs,
            .decay = true,
            .split = {.axis = 0},
            .place = place};
  }

  TensorRef carve_full(const CallSizes& sizes, Carver& memory) const {
    return memory.take(sizes.compute, {sizes.batch, sizes.tokens, traits.hidden_size});
  }
  Kept carve_kept(const CallSizes& sizes, Carver& kept) const {
    const Shape rows{sizes.stream_rows()};
    return {.sum = kept.take(sizes.compute, sizes.stream_shape(traits.hidden_size)),
            .norm = {.mean = kept.take(sizes.accumulation, rows), .rstd = kept.take(sizes.accumulation, rows)}};
  }
  static LanguageModelHead::Workspace carve_logits(const CallSizes& sizes, std::int64_t rows, const Parameter& weight,
                                                   Carver& memory) {
    return {.logits = memory.take(sizes.compute, {rows, weight.shape[0]}),
            .max = memory.take(sizes.accumulation, {rows}),
            .own_max = memory.take(sizes.accumulation, {rows}),
            .sum_and_target = memory.take(sizes.accumulation, {2, rows})};
  }
  HeadMemory carve(const EndSizes& sizes, Carver& memory) const {
    const CallSizes& call = sizes.call;
    const Shape first{call.batch, traits.hidden_size};
    return {.loss = memory.take(call.accumulation, {call.rows()}),
            .label_loss = memory.take(call.accumulation, {call.batch}),
            .first = memory.take(call.compute, first),
            .dfirst = memory.take(call.compute, first),
            .output = carve_logits(call, std::min(sizes.logits_chunk, call.rows()), output, memory),
            .classifier = carve_logits(call, std::min(sizes.logits_chunk, call.batch), classifier, memory)};
  }

  // Of those first tokens whose rows this rank holds.
  static void add_to_first_tokens(const LayerPass& pass, TensorRef dx, TensorRef dfirst) {
    const TensorRef rows = dx.flatten_rows();
    const std::int64_t begin = pass.sequence_parallel ? rows.dim(0) * pass.tensor.rank() : 0;
    for (std::int64_t sequence = 0; sequence < pass.batch; ++sequence) {
      const std::int64_t row = sequence * pass.tokens - begin;
      if (row >= 0 && row < rows.dim(0)) pass.backend.add(rows.select(0, row), dfirst.select(0, sequence));
    }
  }
  Dropout mask(const LayerPass& pass) const {
    return pass.stream_dropout(dropout_, RandomPurpose::kEmbeddingDropout, 0);
  }

  double dropout_;
};

}  // namespace teratron::test

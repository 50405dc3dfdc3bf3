// Trains a small model in a layout, for tests that compare layouts.
#pragma once

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

#include "comm/launch.h"
#include "model/family.h"
#include "model/make_model.h"
#include "model/random_batch.h"
#include "model/whole_weights.h"
#include "optim/muon/muon.h"
#include "pipeline/deferral.h"
#include "pipeline/generators.h"
#include "pipeline/token_slices.h"
#include "pipeline/vocabulary_passes.h"

namespace teratron::testing {

struct Layout;

struct Study {
  ModelConfig config;
  std::int64_t batch = 4, tokens = 5, logits_chunk = 7;
  int steps = 3;
  double learning_rate = 1e-2, epsilon = 1e-8;  // AdamW's
  std::uint32_t seed = 1;
  bool documents = false;                  // several share a sequence
  bool bf16_moments = false;               // of the optimizer
  bool muon = false;                       // else AdamW
  std::optional<DType> weight_tiles = {};  // of frozen weights, which take_weights loads then
  std::optional<PreferenceConfig> preferences = {};
  std::int64_t group = 1;  // sequences that have labels together; batches and micro-batches are of whole groups
  std::function<void(Executor&)> take_weights = {};   // unless empty, in the place of those that were drawn
  std::function<void(Executor&)> before_update = {};  // unless empty: every rank calls it

  std::shared_ptr<const Optimizer> make_optimizer() const {
    const AdamWSettings adamw{.epsilon = epsilon, .weight_decay = 0.1};
    if (!muon) return std::make_shared<AdamWOptimizer>(adamw, bf16_moments);
    // Gradients that are zero but for rounding, of queries that see one key, must not become steps.
    return std::make_shared<MuonOptimizer>(MuonSettings{.epsilon = 1e-4}, adamw, bf16_moments);
  }

  // A BERT with that head; of the layout, micro-batches become those of whole groups.
  void become_bert(ModelHead head, Layout& layout);
  // A model of a family after GPT-2, and mixtures of theirs: fewer key heads, gates, RMS norms, rotary positions, a
  // window. Its heads' number is the product of the layout's tensor-parallel ranks and something.
  void become_llama(const MeshShape& mesh);

  RandomBatch batch_of(int step, bool all_inputs = false) const {
    return {batch, tokens, config.vocab_size, seed * 100 + static_cast<std::uint32_t>(step), all_inputs};
  }

  std::string text() const {
    return fmt::format(
               "seed {}: {}, {} layers, hidden {}, {} heads, {} of keys, vocabulary {} (/{}), batch {}, {} tokens",
               seed, config.family().name, config.num_layers, config.hidden_size, config.num_attention_heads,
               config.key_value_heads(), config.vocab_size, config.make_vocab_size_divisible_by, batch, tokens) +
           (bf16_moments ? ", bf16 moments" : "") + (muon ? ", Muon" : "");
  }
};

struct Layout {
  MeshShape mesh;
  std::int64_t micro_batch = 1;
  bool sequence_parallel = false, shard_optimizer = false;
  Recomputation recompute = {};
  std::int64_t kept_layers = 0;  // ExecutorOptions::kept_layers
  bool packed_weights = false;   // on a CPU
  // Settings of a pipeline.
  pipeline::ScheduleKind schedule = pipeline::ScheduleKind::k1F1B;
  int virtual_stages = 1;
  std::vector<std::int64_t> slices = {};           // their tokens
  bool own_slices = false;                         // `slices` are the longest; every micro-batch is cut at random
  std::vector<pipeline::MicroBatchCut> cuts = {};  // of micro-batches in ways of their own; empty: all as above
  std::vector<std::int64_t> cell_layers = {};
  bool defer_weight_gradients = false, vocabulary_parallel = false;

  std::string text() const {
    return fmt::format(
        "tp {} pp {} dp {} micro-batch {}{}{} recompute {} kept layers {}{}{} {} v {} slices {}{}{} cells {}",
        mesh.tensor, mesh.pipeline, mesh.data, micro_batch, sequence_parallel ? " sequence parallel" : "",
        shard_optimizer ? " sharded optimizer" : "", recompute.text(), kept_layers,
        defer_weight_gradients ? " deferred" : "", vocabulary_parallel ? " vocabulary parallel" : "",
        pipeline::name_of(schedule), virtual_stages, fmt::join(slices, ","), own_slices ? " at most" : "",
        pipeline::text_of(cuts), fmt::join(cell_layers, ","));
  }
  // Tokens of a micro-batch's slices that own_slices draws; the same on every rank.
  std::vector<std::int64_t> drawn_slices(std::int64_t tokens, std::uint32_t seed) const {
    std::mt19937 random(seed);
    const std::int64_t unit = sequence_parallel ? mesh.tensor : 1;
    std::vector<std::int64_t> drawn;
    std::int64_t room = std::accumulate(slices.begin(), slices.end(), std::int64_t{0}), later = std::ssize(slices);
    for (const std::int64_t longest : slices) {
      room -= longest;
      --later;
      const std::int64_t least = std::max(unit, tokens - room), most = std::min(longest, tokens - later * unit);
      drawn.push_back(least + static_cast<std::int64_t>(random() % ((most - least) / unit + 1)) * unit);
      tokens -= drawn.back();
    }
    return drawn;
  }
  std::int64_t sequences_of(std::size_t micro_batch_index) const {
    return cuts.empty() ? micro_batch : cuts.at(micro_batch_index).sequences;
  }
  pipeline::Schedule schedule_of(std::int64_t micro_batches) const {
    const int unit = pipeline::traits_of(schedule).fills_groups ? mesh.pipeline : 1;
    pipeline::ScheduleSize size{.stages = mesh.pipeline,
                                .micro_batches = (static_cast<int>(micro_batches) + unit - 1) / unit * unit,
                                .slices = std::max(1, static_cast<int>(slices.size())),
                                .virtual_stages = virtual_stages};
    if (!cuts.empty()) {
      size.micro_batches = static_cast<int>(cuts.size());
      size.set_slices(pipeline::TokenSlices{.cuts = cuts}.slices_each());
    }
    size.vocabulary_parallel = vocabulary_parallel;
    pipeline::Schedule made = pipeline::make_schedule(schedule, size);
    pipeline::Costs costs = pipeline::even_costs(made, 1, 2);
    if (defer_weight_gradients) {
      made = pipeline::defer_weight_gradients(made, costs, pipeline::deferral_bound(schedule, made));
    }
    return vocabulary_parallel ? pipeline::with_vocabulary_passes(made, costs) : made;
  }
  std::optional<WeightPacking> weight_packing(DType compute_dtype) const {
    if (!packed_weights) return std::nullopt;
    return WeightPacking{.processor = {.compute_dtype = compute_dtype}};
  }
  // Stages that share the vocabulary out.
  GroupRank vocabulary_stages(GroupRank pipeline) const { return vocabulary_parallel ? pipeline : GroupRank{}; }
};

inline void Study::become_bert(ModelHead head, Layout& layout) {
  config.set_kind(ModelKind::kBert);
  config.head = head;
  config.num_labels = 2 + seed % 3;
  config.norm_placement = seed / 2 % 2 == 0 ? NormPlacement::kPre : NormPlacement::kPost;
  if (head == ModelHead::kVectors) {
    config.vectors = {.pooling = seed % 2 == 0 ? Pooling::kMean : Pooling::kCls, .texts = 2 + seed / 2 % 2};
    group = 2 * config.vectors.texts;  // of two examples, which are one another's negatives
    batch *= group;
    layout.micro_batch *= group;
  }
  if (head != ModelHead::kChoice) return;
  epsilon =
      1e-6;  // of gradients that are zero but for rounding, some 1e-16, AdamW's own 1e-8 would make steps of 1e-10
  group = kChoices;
  batch *= group;
  layout.micro_batch *= group;
}

inline void Study::become_llama(const MeshShape& mesh) {
  constexpr ModelKind kKinds[] = {ModelKind::kLlama, ModelKind::kMistral, ModelKind::kQwen2, ModelKind::kQwen3,
                                  ModelKind::kGptNeox};
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<int> values) { return *(values.begin() + random() % values.size()); };
  const double dropout = config.hidden_dropout;
  config.set_kind(kKinds[seed % std::size(kKinds)]);
  config.hidden_dropout = config.attention_dropout = dropout;
  config.num_attention_heads *= one_of({1, 2, 4});
  std::vector<std::int64_t> key_heads;
  for (std::int64_t count = 1; count <= config.num_attention_heads; ++count) {
    config.num_key_value_heads = count;
    if (config.num_attention_heads % count == 0 && config.splits_over(mesh.tensor)) key_heads.push_back(count);
  }
  config.num_key_value_heads = key_heads[random() % key_heads.size()];
  config.head_dim = one_of({2, 4, 6});
  if (config.kind == ModelKind::kGptNeox) config.rotary_share = one_of({1, 2}) * 0.5;
  if (config.rotary_share == 0.5) config.head_dim = 4;
  config.intermediate_size = mesh.tensor * one_of({1, 3, 8});
  config.window = one_of({0, 0, 1, 2, 5});
  config.untied_output = one_of({0, 1}) == 1;
  config.head_norms = one_of({0, 0, 1}) == 1;
  config.gated_mlp = one_of({0, 1, 1}) == 1;
  config.qkv_bias = one_of({0, 1}) == 1;
  config.rotary.pairs = one_of({0, 1}) == 1 ? RotaryPairs::kHalves : RotaryPairs::kNeighbours;
  config.rotary.base = 10;  // so that few positions turn far
}

struct Result {
  std::vector<double> losses, norms, weights;  // weights of the whole model, parameter after parameter
  std::map<std::string, std::vector<double>>
      by_name;  // the weights; of ranks that are processes, what this one gathers
};

using MakeBackend = std::function<std::unique_ptr<Backend>()>;
inline const MakeBackend kDouble = [] { return make_reference_backend(DType::kF64); };

inline double update(Executor& runner, const Study& study, const RandomBatch& data, const Layout& layout, int step,
                     double& norm) {
  Mesh& mesh = runner.mesh();
  const std::int64_t groups = study.batch / study.group;
  const std::int64_t first = groups * mesh.data->rank() / mesh.data->size() * study.group;
  const std::int64_t share = groups * (mesh.data->rank() + 1) / mesh.data->size() * study.group - first;
  std::vector<MicroBatch> parts;
  for (std::int64_t done = 0; done < share; done += layout.sequences_of(parts.size() - 1)) {
    parts.push_back(data.part(first + done, std::min(layout.sequences_of(parts.size()), share - done)));
    parts.back().iteration = static_cast<std::uint32_t>(step);
    if (!layout.own_slices) continue;
    const auto number = static_cast<std::uint32_t>((first + done) * study.steps + step);
    parts.back().slice_tokens = layout.drawn_slices(study.tokens, study.seed * 1000 + number);
  }
  double loss = runner.forward_backward(parts).total();
  mesh.data->all_reduce_host({&loss, 1});
  norm = gradient_norm(runner.backend(), runner.parameters(), mesh);
  if (study.before_update) study.before_update(runner);
  runner.update({.learning_rate = study.learning_rate, .update = step + 1, .gradient_norm = norm, .seed = study.seed});
  return loss;
}

inline Result train(const Study& study, const Layout& layout, const MakeBackend& make_backend,
                    const LaunchEnvironment& environment = {}) {
  Result result;
  WholeWeights weights;
  run_ranks(environment, layout.mesh.ranks(), [&](Communicator& world) {
    const std::unique_ptr<Backend> backend = make_backend();
    auto mesh = std::make_shared<Mesh>(make_mesh(world, layout.mesh));
    const std::int64_t groups = study.batch / study.group;
    const std::int64_t largest_share = (groups + layout.mesh.data - 1) / layout.mesh.data * study.group;
    const std::int64_t micro_batches = (largest_share + layout.micro_batch - 1) / layout.micro_batch;
    const std::unique_ptr<Model> model =
        make_model(study.config, mesh->coordinates().tensor, layout.vocabulary_stages(mesh->coordinates().pipeline));
    Executor runner(*backend, *model,
                    {.batch = layout.sequences_of(0),
                     .tokens = study.tokens,
                     .logits_chunk = study.logits_chunk,
                     .weight_tiles = study.weight_tiles,
                     .first_keys = study.documents,
                     .position_ids = study.documents,
                     .schedule = layout.schedule_of(micro_batches),
                     .cuts = layout.cuts.empty() ? cut_alike(layout.micro_batch, layout.slices) : layout.cuts,
                     .recompute = layout.recompute,
                     .kept_layers = layout.kept_layers,
                     .packed_weights = layout.weight_packing(backend->compute_dtype()),
                     .sequence_parallel = layout.sequence_parallel,
                     .shard_optimizer = layout.shard_optimizer,
                     .preferences = study.preferences,
                     .optimizer = study.make_optimizer(),
                     .cell_layers = layout.cell_layers},
                    mesh);
    runner.allocate();
    study.weight_tiles ? runner.clear_slots() : runner.initialize(study.seed);
    if (study.take_weights) study.take_weights(runner);
    for (int step = 0; step < study.steps; ++step) {
      RandomBatch data = study.batch_of(step, model->traits.key_lengths);
      if (is_task_head(study.config.head) || study.config.head == ModelHead::kVectors)
        data.add_labels(study.config, model->traits, study.seed);
      if (study.documents) data.add_documents(0, study.seed + static_cast<std::uint32_t>(step));
      if (study.preferences) data.add_answers(study.seed + static_cast<std::uint32_t>(step));
      double norm = 0;
      const double loss = update(runner, study, data, layout, step, norm);
      if (world.rank() != 0) continue;
      result.losses.push_back(loss);
      result.norms.push_back(norm);
    }
    weights.add(runner);
  });
  result.weights = weights.values();
  result.by_name = weights.by_name();
  return result;
}

// Relative to the largest value, since a weight near zero has no digits of its own.
inline void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  }
  EXPECT_LE(worst, tolerance * largest) << what;
}

inline void expect_same(const Result& actual, const Result& expected, double tolerance, const std::string& what) {
  expect_near(actual.losses, expected.losses, tolerance, what + ": losses");
  expect_near(actual.norms, expected.norms, tolerance, what + ": gradient norms");
  expect_near(actual.weights, expected.weights, tolerance, what + ": weights");
}

}  // namespace teratron::testing

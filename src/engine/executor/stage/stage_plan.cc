#include "executor/stage/stage_plan.h"

#include <algorithm>

#include "base/error.h"
#include "executor/step_tallies.h"
#include "optim/adamw.h"
#include "pipeline/generators.h"
#include "pipeline/send_slots.h"

namespace teratron {
namespace {

using pipeline::Schedule;
using Part = ParameterBucket::Part;

ExecutorOptions with_schedule(ExecutorOptions options) {
  check(options.logits_chunk > 0 && options.kept_layers, "what memory decides is chosen before it is planned");
  if (!options.trains()) {
    // Each stage runs its layers once, whatever the schedule of training.
    options.schedule = {};
    options.cuts.clear();
  } else if (options.schedule.actions.empty()) {
    options.schedule = pipeline::make_schedule(pipeline::ScheduleKind::k1F1B,
                                               {.micro_batches = std::max(options.schedule.micro_batches, 1)});
  }
  if (!options.optimizer) options.optimizer = std::make_shared<AdamWOptimizer>();
  return options;
}

// The number of micro-batches with memory of their own: one if a single stage finishes each before the next begins.
int micro_batch_slots(const ExecutorOptions& options, const StageCells& cells) {
  check_equal(options.schedule.stages, cells.stages(), "stages of the schedule and of the mesh");
  if (cells.stages() > 1 || options.cuts.size() > 1) return options.schedule.micro_batches;
  int current = 0;
  for (const pipeline::Action& action : options.schedule.actions.front()) {
    if (action.micro_batch < current) return options.schedule.micro_batches;
    current = action.micro_batch;
  }
  return 1;
}

Timeline timeline_of(const ExecutorOptions& options, const StageCells& cells) {
  if (!options.trains()) return {{pipeline::Action{}}, cells, {1}};
  const int slots = micro_batch_slots(options, cells);
  const Schedule planned = pipeline::first_micro_batches(options.schedule, slots);
  std::vector<int> slices;
  for (int m = 0; m < slots; ++m) slices.push_back(planned.slices_of(m));
  return {planned.actions[static_cast<std::size_t>(cells.stage())], cells, std::move(slices)};
}

// Checks that the cuts fit the schedule and the sizes.
void check_cuts(const ExecutorOptions& options) {
  const pipeline::Schedule& schedule = options.schedule;
  if (options.cuts.empty()) return check_equal(schedule.slices, 1, "slices of sequences that are not cut");
  for (int m = 0; m < schedule.micro_batches; ++m) {
    const pipeline::MicroBatchCut& cut = pipeline::cut_of(options.cuts, m);
    check_equal(std::ssize(cut.slice_tokens), schedule.slices_of(m), "slices of a micro-batch");
    check(cut.tokens() >= options.tokens, "the slices of a sequence have all of its tokens");
    check(cut.sequences >= 1 && cut.sequences <= options.batch, "a micro-batch has `batch` sequences at most");
  }
}

void check_mask(const Model& model, const ExecutorOptions& options) {
  const bool causal =
      std::ranges::all_of(model.layers, [](const TransformerLayer& layer) { return layer.attention.causal; });
  if (causal || (options.schedule.slices == 1 && options.purpose != Purpose::kGeneration)) return;
  throw_user_error(
      "the model's tokens see later ones (it is not causal), so a sequence can neither be cut into slices of tokens "
      "nor be generated token by token; leave out --token-slices");
}

}  // namespace

StagePlan::StagePlan(Model& model, const ExecutorOptions& options, const RankCoordinates& coordinates,
                     DType compute_dtype)
    : options_(with_schedule(options)),
      coordinates_(coordinates),
      cells_(static_cast<std::int64_t>(model.layers.size()), options_, coordinates.pipeline),
      memory_(model, options_, cells_, coordinates.tensor.size, compute_dtype, timeline_of(options_, cells_),
              options_.schedule.stages > 1 ? pipeline::send_slots(options_.schedule) : 1) {
  check_equal(model.traits.vocabulary_parallel, options_.schedule.vocabulary_parallel,
              "the vocabulary is shared out over stages by the model and by the schedule");
  check_mask(model, options_);
  if (options_.trains()) check_cuts(options_);
  if (options_.trains()) model.traits.check_groups(options_.batch);
  plan_parameters(model, compute_dtype);
  plan_attention(model);
  memory_.plan();
  memory_.arena().plan();
}

int StagePlan::stage_of(const ParameterBucket& bucket) const {
  if (bucket.members.front()->over_stages) return cells_.stage();
  switch (bucket.part) {
    case Part::kHead: return cells_.stage_of_head();
    case Part::kLayer: return cells_.stage_of_layer(bucket.layer);
    case Part::kEmbedding:
    case Part::kBothEnds: return cells_.stage_of_embedding();
  }
  return 0;
}

bool StagePlan::holds(const ParameterBucket& bucket) const {
  return stage_of(bucket) == cells_.stage() || (bucket.part == Part::kBothEnds && cells_.has_head());
}

bool StagePlan::is_here(const Parameter& parameter) const {
  return parameter.stage == cells_.stage() || (cells_.has_head() && std::ranges::count(tied_, &parameter) > 0);
}

int StagePlan::chunk_of(std::int64_t layer) const {
  for (int chunk = 0; chunk < cells_.chunks(); ++chunk) {
    const std::int64_t index = layer - cells_.first_layer(chunk);
    if (index >= 0 && index < cells_.layers(chunk)) return chunk;
  }
  throw InternalError(fmt::format("layer {} is not in this stage", layer));
}

// The moment in which the first backward pass writes the bucket's gradients.
int StagePlan::first_gradient_moment(const ParameterBucket& bucket) const {
  const Timeline& timeline = memory_.timeline();
  const bool is_the_heads = bucket.part == Part::kHead || (bucket.part == Part::kBothEnds && multiplies_table());
  if (is_the_heads) return memory_.head_moments().first;
  if (bucket.part != Part::kLayer) return timeline.of({}).embedding_backward;
  const int chunk = chunk_of(bucket.layer);
  return timeline.of({.chunk = chunk}).backward_of(static_cast<int>(bucket.layer - cells_.first_layer(chunk)));
}

std::int64_t StagePlan::products_of_step(std::int64_t rows) const {
  std::int64_t products = 0;
  for (int micro_batch = 0; micro_batch < options_.schedule.micro_batches; ++micro_batch) {
    const pipeline::MicroBatchCut& cut = memory_.cut_of(micro_batch);
    for (const std::int64_t tokens : cut.slice_tokens) products += (cut.sequences * tokens + rows - 1) / rows;
  }
  return products;
}

// Copies are packed as an action begins, those of all layers of its cell. With one micro-batch the copies for backward
// may so take the memory of those for forward.
Span StagePlan::life_of_packed(int place, WeightProduct use) const {
  const Timeline& timeline = memory_.timeline();
  Span life;
  const bool shares_memory = timeline.micro_batches() < options_.schedule.micro_batches;  // micro-batch by micro-batch
  if (!options_.trains() || shares_memory) {
    life.include(0, timeline.end() - 1);
    return life;
  }
  if (place == PackedWeights::kHead) return memory_.head_moments();
  const bool is_made_again = options_.recompute.of(cells_.stage()).kind != Recompute::kNone;
  timeline.for_each([&](const SliceKey& key) {
    if (key.chunk != place) return;
    const Timeline::Passes& passes = timeline.of(key);
    if (use == WeightProduct::kForward) life.include(passes.forward, passes.forward_end());
    if (use == WeightProduct::kInputGradient || is_made_again) life.include(passes.backward, passes.backward_end());
  });
  return life;
}

// Heads that read some rows of a call, or one a text, multiply too few to be worth a copy. An evaluation keeps copies
// of layers alone, for all calls.
void StagePlan::plan_packed(const ParameterBucket& bucket, const ModelTraits& traits) {
  if (!options_.packed_weights || options_.purpose == Purpose::kGeneration) return;
  const bool is_kept = options_.purpose == Purpose::kEvaluation;
  const bool is_head = bucket.part == Part::kHead || (bucket.part == Part::kBothEnds && multiplies_table());
  const bool has_all_rows =
      is_head ? traits.targets && !traits.sparse_targets && !is_kept : bucket.part == Part::kLayer;
  if (!has_all_rows) return;
  const WeightPacking& packing = *options_.packed_weights;
  const std::int64_t rows = is_head ? std::min(options_.logits_chunk, memory_.most_rows()) : memory_.most_rows();
  if (rows > packing.most_rows || (!is_kept && products_of_step(rows) < packing.fewest_products)) return;
  const int place = is_head ? PackedWeights::kHead : chunk_of(bucket.layer);
  for (Parameter* member : bucket.members) {
    const bool is_in_tiles = options_.weight_tiles && (member->frozen || is_kept);  // to save memory
    if (!member->takes_tiles || is_in_tiles) continue;
    const WorkShapes::Product product{.rows = rows, .inputs = member->shape[1], .outputs = member->shape[0]};
    for (const WeightProduct use : {WeightProduct::kForward, WeightProduct::kInputGradient}) {
      if (use == WeightProduct::kInputGradient && is_kept) continue;
      const std::int64_t bytes =
          packed_weight_bytes(product, use, packing.processor, is_kept ? PackedFor::kAllCalls : PackedFor::kStep);
      packed_weights_.add(memory_.arena(), *member, place, use, bytes, life_of_packed(place, use));
    }
  }
}

// Every matrix is multiplied but the embedding's. A tied table is, by the rows of logits that exist at a time.
void StagePlan::plan_products(const ParameterBucket& bucket) {
  const bool is_tied = bucket.part == Part::kBothEnds;
  const bool is_multiplied = is_tied ? multiplies_table() : bucket.part != Part::kEmbedding;
  const std::int64_t rows = is_tied ? std::min(options_.logits_chunk, memory_.most_rows()) : memory_.most_rows();
  for (const Parameter* member : bucket.members) {
    work_.largest_parameter = std::max(work_.largest_parameter, member->shape.elements());
    work_.parameters += 1;
    if (!is_multiplied || member->shape.rank() != 2) continue;
    add_product({.rows = rows, .inputs = member->shape[1], .outputs = member->shape[0]});
  }
}

void StagePlan::add_product(const WorkShapes::Product& product) {
  if (std::ranges::count(work_.products, product) == 0) work_.products.push_back(product);
}

void StagePlan::plan_attention(const Model& model) {
  work_.has_backward = options_.trains();
  work_.has_tiles = options_.weight_tiles && !options_.trains();
  work_.norm_rows = memory_.most_rows();
  work_.norm_columns = model.traits.hidden_size;
  for (const TransformerLayer& layer : model.layers) {
    const Attention& attention = layer.attention;
    work_.low_rank = std::max(work_.low_rank, layer.adapter_rank());
    work_.activated_columns = std::max(work_.activated_columns, layer.mlp.columns());
    work_.attention_rows = std::max(work_.attention_rows, memory_.most_rows() * attention.heads);
    const WorkShapes::Attention head{.queries = memory_.most_tokens(),
                                     .keys = memory_.most_keys(),
                                     .head_size = attention.head_size,
                                     .heads_per_key_head = attention.heads / attention.key_heads};
    if (std::ranges::count(work_.attentions, head) == 0) work_.attentions.push_back(head);
  }
}

void StagePlan::plan_parameters(Model& model, DType compute_dtype) {
  // With one backward pass a step, a gradient lives from the moment in which that writes it, else from the begin of the
  // step. It lives until the end of the step.
  const bool once = options_.trains() && options_.schedule.micro_batches == 1 && options_.schedule.slices == 1;
  std::size_t in_buckets = 0, in_all = 0;
  model.visit([&](Parameter&) { ++in_all; });
  for (ParameterBucket& bucket : model.buckets()) {
    in_buckets += bucket.members.size();
    for (Parameter* member : bucket.members) {
      member->stage = stage_of(bucket);
      if (bucket.part == Part::kBothEnds) tied_.push_back(member);
    }
    if (!holds(bucket)) continue;
    plan_products(bucket);
    plan_packed(bucket, model.traits);
    const std::size_t number = buckets_.size();
    const auto same = [&](const PartBuckets& there) {
      return there.part == bucket.part && there.layer == bucket.layer;
    };
    const auto there = std::ranges::find_if(parts_, same);
    (there == parts_.end() ? parts_.emplace_back(bucket.part, bucket.layer) : *there).buckets.push_back(number);
    buckets_.add(bucket.name, std::move(bucket.members), once ? first_gradient_moment(bucket) : 0,
                 memory_.timeline().end());
  }
  check_equal(static_cast<std::int64_t>(in_buckets), static_cast<std::int64_t>(in_all),
              "parameters of the model and of its buckets");
  if (options_.trains()) {
    model.visit([&](Parameter& parameter) {
      if (!parameter.frozen) parameter.state.slots = options_.optimizer->slots(parameter, compute_dtype);
    });
  }
  buckets_.plan(memory_.arena(), compute_dtype, options_.trains(),
                options_.shard_optimizer ? coordinates_.data : GroupRank{}, options_.weight_tiles);
  if (options_.trains()) plan_optimizer(model, compute_dtype);
}

void StagePlan::plan_optimizer(Model& model, DType compute_dtype) {
  std::vector<Parameter*> here = parameters_of(model);
  std::erase_if(here, [&](const Parameter* parameter) { return !is_here(*parameter); });
  const auto parameters = std::ssize(here);
  std::erase_if(here, [](const Parameter* parameter) { return parameter->frozen; });
  const UpdateMemory update = options_.optimizer->memory(here, compute_dtype);
  for (const WorkShapes::Product& product : update.products) add_product(product);
  if (options_.tallies) {
    tallies_ = memory_.arena().add("tallies", MemoryKind::kWorkspace, DType::kU8,
                                   {StepTallies::bytes(cells_, parameters)}, 0, Arena::kForever);
  }
  if (update.bytes == 0) return;
  const int end = memory_.timeline().end();
  update_workspace_ = memory_.arena().add("update", MemoryKind::kWorkspace, DType::kU8, {update.bytes}, end, end);
}

std::span<const std::size_t> StagePlan::buckets_at(Part part, std::int64_t layer) const {
  for (const PartBuckets& there : parts_) {
    if (there.part == part && there.layer == layer) return there.buckets;
  }
  return {};
}

void StagePlan::allocate(Allocator& allocator) {
  memory_.arena().allocate(allocator);
  buckets_.bind(memory_.arena());
}

}  // namespace teratron

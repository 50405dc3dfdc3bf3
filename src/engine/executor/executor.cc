#include "executor/executor.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "executor/memory_choices.h"
#include "nn/host_values.h"
#include "nn/parameter_state.h"
#include "ops/working_memory.h"
#include "pipeline/checker.h"

namespace teratron {

namespace {

std::unique_ptr<StagePlan> make_plan(Backend& backend, Model& model, ExecutorOptions options, const Mesh& mesh) {
  choose_by_memory(model, options, mesh, backend);
  return std::make_unique<StagePlan>(model, options, mesh.coordinates(), backend.compute_dtype());
}

// Element e of the whole parameter is made of word e % 4 of block e / 4.
void fill_uniform(Backend& backend, const Parameter& parameter, TensorRef whole, const RandomStream& random) {
  const std::int64_t columns = parameter.global_shape()[1], own_columns = parameter.shape[1];
  for (const ParameterPiece& piece : pieces_of(parameter, parameter.group.rank)) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < piece.rows * own_columns; ++i) {
      const auto e = static_cast<std::uint64_t>((piece.global_row + i / own_columns) * columns + piece.global_column +
                                                i % own_columns);
      const double unit = uniform_from_bits(random.bits(e / 4)[e % 4]);
      values.push_back(static_cast<float>((2 * unit - 1) * parameter.init_scale));
    }
    upload_floats(backend, whole.slice(0, piece.local_row, piece.local_row + piece.rows), values);
  }
}

int replicas_of(const Model& model) {
  const std::optional<ColumnParallelLinear>& key_value = model.layers.front().attention.key_value;
  return key_value ? key_value->weight.replicas : 1;
}

}  // namespace

Executor::Executor(Backend& backend, Model& model, const ExecutorOptions& options, std::shared_ptr<Mesh> mesh)
    : backend_(backend),
      model_(model),
      mesh_(mesh ? std::move(mesh) : std::make_shared<Mesh>(make_single_rank_mesh())),
      plan_(make_plan(backend, model, options, *mesh_)),
      passes_(backend, model, *plan_, *mesh_),
      messages_(*mesh_, plan_->options().sequence_parallel) {
  std::uint32_t number = 0;
  for (Parameter* parameter : all_parameters()) parameter->number = number++;
  if (plan_->options().trains()) pipeline::check_schedule(plan_->options().schedule);
  check(!plan_->options().preferences || !model.traits.vocabulary_parallel ||
            plan_->memory().timeline().most_slices() == 1,
        "pairs of answers are whole sequences where stages share the vocabulary out");
  if (plan_->options().tallies) tallies_ = std::make_unique<StepTallies>(backend, *plan_, parameters());
  mesh_->attach(&backend, model.traits.vocabulary_parallel);
  if (const int replicas = replicas_of(model); plan_->options().trains() && replicas > 1) {
    replicas_ = mesh_->tensor->split(mesh_->tensor->rank() / replicas, mesh_->tensor->rank());
    replicas_->attach(&backend);
  }
}

void Executor::allocate() {
  plan_->allocate(backend_);
  backend_.reserve_scratch(gpu_scratch_bytes(plan_->work(), backend_.compute_dtype()));
  const TensorRef table = plan_->memory().rotary();
  if (table.elements() == 0) return;
  upload_floats(backend_, table, rotary_table(plan_->memory().rotary_config(), table.dim(0)));
}

std::vector<Parameter*> Executor::parameters() {
  std::vector<Parameter*> here = all_parameters();
  std::erase_if(here, [&](const Parameter* parameter) { return !plan_->is_here(*parameter); });
  return here;
}

std::vector<Parameter*> Executor::all_parameters() { return parameters_of(model_); }

void Executor::initialize(std::uint64_t seed) {
  draw_weights(seed, [](const Parameter*) { return true; });
  if (options().trains()) clear_slots();
}

void Executor::initialize(std::uint64_t seed, std::span<Parameter* const> some) {
  draw_weights(seed, [&](const Parameter* parameter) { return std::ranges::find(some, parameter) != some.end(); });
}

void Executor::draw_weights(std::uint64_t seed, const std::function<bool(const Parameter*)>& is_wanted) {
  for (Parameter* parameter : all_parameters()) {
    check(!parameter->widens_tiles || !is_wanted(parameter), "weights in tiles are loaded, not drawn");
    const RandomStream random{.seed = seed, .purpose = RandomPurpose::kInit, .stream = parameter->number};
    if (!plan_->is_here(*parameter) || !is_wanted(parameter)) continue;
    store_weights(backend_, *parameter, [&](TensorRef whole) { initialize_weights(*parameter, whole, random); });
  }
}

void Executor::clear_slots() {
  for (Parameter* parameter : parameters()) {
    for (const OptimizerSlot& slot : parameter->state.slots) backend_.fill_zero(slot.values);
  }
}

void Executor::update(const UpdateStep& step) {
  std::vector<Parameter*> trained = parameters();
  std::erase_if(trained, [](const Parameter* parameter) { return parameter->frozen; });
  options().optimizer->update(backend_, *mesh_, trained, step, plan_->update_workspace());
  // With a sharded optimizer, every rank receives the weights that the others have updated.
  plan_->buckets().gather_weights(*mesh_->data);
}

// Every value is drawn by its index in the whole parameter.
void Executor::initialize_weights(const Parameter& parameter, TensorRef whole, const RandomStream& random) {
  if (parameter.init == Init::kOne) return backend_.fill(whole, 1.0);
  backend_.fill_zero(whole);  // padding rows stay zero
  if (parameter.init == Init::kZero) return;
  if (parameter.init == Init::kUniform) return fill_uniform(backend_, parameter, whole, random);
  const double stddev = model_.traits.init_method_std * parameter.init_scale;
  const std::int64_t columns = parameter.global_shape()[1];
  for (const ParameterPiece& piece : pieces_of(parameter, parameter.group.rank)) {
    backend_.fill_normal(whole.slice(0, piece.local_row, piece.local_row + piece.rows), random,
                         piece.global_row * columns + piece.global_column, stddev, columns);
  }
}

LossSums Executor::forward_backward(std::span<const MicroBatch> micro_batches) {
  const std::vector<std::vector<double>> reference = reference_losses(micro_batches);
  if (tallies_) tallies_->begin();
  return run_step(micro_batches, {.sums_over_copies = true,
                                  .replicas = replicas_.get(),
                                  .trace = trace_,
                                  .tallies = tallies_.get(),
                                  .reference_losses = reference});
}

LossSums Executor::forward_backward_alone(const MicroBatch& only) {
  const std::vector<std::vector<double>> reference = reference_losses({&only, 1});
  return run_step({&only, 1}, {.sums_over_copies = false, .trace = trace_, .reference_losses = reference});
}

// A step receives ahead of what it sends, so a rank that fails in it leaves receives that wait for ever.
LossSums Executor::run_step(std::span<const MicroBatch> micro_batches, const StepRun::Options& options) {
  StepRun step(backend_, *mesh_, *plan_, passes_, micro_batches, options);
  return mesh_->model->or_give_up([&] { return step.run(); });
}

std::vector<double> Executor::target_losses(const MicroBatch& micro_batch, const ForwardOptions& options) {
  std::vector<double> losses(micro_batch.targets.size());
  run_forward(micro_batch, options,
              [&](const SliceCall& call, TensorRef x) { passes_.target_losses(call, micro_batch, x, losses); });
  return losses;
}

std::vector<std::vector<double>> Executor::reference_losses(std::span<const MicroBatch> micro_batches) {
  std::vector<std::vector<double>> losses;
  if (!options().preferences) return losses;
  const bool share_memory = plan_->memory().timeline().micro_batches() == 1;
  for (const MicroBatch& micro_batch : micro_batches) {
    const int number = share_memory ? 0 : static_cast<int>(losses.size());
    losses.push_back(target_losses(micro_batch, {.without_adapters = true, .micro_batch = number}));
  }
  return losses;
}

void Executor::share_from_last_stage(std::span<float> values) const {
  if (plan_->cells().stages() == 1) return;
  // The others have zeros.
  std::vector<double> sums(values.size());
  if (plan_->cells().has_head()) sums.assign(values.begin(), values.end());
  mesh_->pipeline->all_reduce_host(sums);
  std::transform(sums.begin(), sums.end(), values.begin(), [](double value) { return static_cast<float>(value); });
}

TensorRef Executor::output(const SliceCall& call) const {
  const StageCells& cells = plan_->cells();
  const bool stays = cells.is_last(call.key.chunk) || cells.is_continued(call.key.chunk);
  return stays ? passes_.kept_output(call) : plan_->memory().sent(call.pass, 0);
}

void Executor::run_forward(const MicroBatch& micro_batch, const ForwardOptions& options,
                           const std::function<void(const SliceCall&, TensorRef)>& use_output, const After& after) {
  const StageCells& cells = plan_->cells();
  const StageMemory& memory = plan_->memory();
  const bool has_joint_ends = memory.has_joint_ends(), keeps_packed = !plan_->options().trains();
  for (int slice = 0; slice < memory.timeline().slices_of(options.micro_batch); ++slice) {
    for (int chunk = 0; chunk < cells.chunks(); ++chunk) {
      const SliceKey key{.chunk = chunk, .micro_batch = options.micro_batch, .slice = slice};
      SliceCall call = passes_.call_of(micro_batch, key, options.training);
      call.pass.without_adapters = options.without_adapters;
      passes_.begin(call, micro_batch);
      if (keeps_packed) plan_->packed_weights().pack(backend_, memory.arena(), chunk, WeightProduct::kForward);
      const bool embeds = has_joint_ends ? chunk == 0 : cells.is_first(chunk);
      if (embeds) passes_.embed(call, micro_batch, after);
      if (!cells.is_first(chunk) && !cells.continues(chunk)) {
        messages_.receive(*mesh_->pipeline, memory.input(call.pass, call.key, 0), cells.stage_before(chunk)).wait();
      }
      const TensorRef out = output(call);
      passes_.forward_layers(call, out, after);
      if (cells.is_last(chunk)) {
        use_output(call, out);
      } else if (!cells.is_continued(chunk)) {
        messages_.send(*mesh_->pipeline, out, cells.stage_after(chunk)).wait();
      }
      if (has_joint_ends && !cells.has_head() && chunk + 1 == cells.chunks()) use_output(call, TensorRef());
    }
  }
}

LossSums Executor::evaluate_preferences(const MicroBatch& micro_batch) {
  const std::vector<double> reference = target_losses(micro_batch, {.without_adapters = true}),
                            losses = target_losses(micro_batch, {});
  LossSums sums = no_losses(preference_losses());
  if (plan_->cells().has_head()) preference_weights(*options().preferences, micro_batch, losses, reference, sums);
  mesh_->pipeline->all_reduce_host(sums.of_kind);
  return sums;
}

LossSums Executor::evaluate(const MicroBatch& micro_batch) {
  if (options().preferences) return evaluate_preferences(micro_batch);
  passes_.clear_losses();
  run_forward(micro_batch, {},
              [&](const SliceCall& call, TensorRef x) { passes_.head(call, micro_batch, x, TensorRef()); });
  LossSums losses = passes_.losses(micro_batch.loss_scale);
  mesh_->pipeline->all_reduce_host(losses.of_kind);  // of the last stage alone
  return losses;
}

Executor::NotFinite Executor::first_not_finite(const MicroBatch& micro_batch) {
  NotFinite first;
  run_forward(
      micro_batch, {.training = true}, [](const SliceCall&, TensorRef) {},
      [&](const StagePasses::Passed& passed) {
        if (!first.name.empty() || backend_.is_finite(passed.x)) return;
        first.layer = passed.layer;
        first.name = passed.layer < 0 ? "the embedding" : fmt::format("layer {}", passed.layer);
        if (passed.of == nullptr) return;
        first.operation = passed.of->first_result(*passed.pass, passed.x, passed.saved, passed.workspace,
                                                  [&](TensorRef result) { return !backend_.is_finite(result); });
        for (const Parameter* parameter : parameters_of(model_.layers[static_cast<std::size_t>(passed.layer)])) {
          const bool is_checked = first.parameter.empty() && !parameter->widens_tiles;
          if (is_checked && !backend_.is_finite(parameter->value)) first.parameter = parameter->name;
        }
      });
  return first;
}

void Executor::forward(const MicroBatch& micro_batch, const UseOutput& use) {
  run_forward(micro_batch, {}, [&](const SliceCall& call, TensorRef x) {
    passes_.with_head(call, [&](const EndCall& end) { use(end, x); });
  });
}

void Executor::extend(std::span<const std::int32_t> ids, std::int64_t first_position, const UseOutput& use,
                      std::int64_t cache) {
  const auto tokens = static_cast<std::int64_t>(ids.size());
  const bool has_cache = options().purpose == Purpose::kGeneration;
  check(has_cache || (first_position == 0 && cache == 0), "only generation keeps a cache");
  SliceCall call{.pass = {.backend = backend_,
                          .tensor = *mesh_->tensor,
                          .tokens = tokens,
                          .first_position = first_position,
                          .first_cache = cache,
                          .rotary = plan_->memory().rotary(),
                          .sequence_length = first_position + tokens},
                 .key = {}};
  check_room(call.pass);
  if (plan_->memory().window() > 0) passes_.see_from(call.pass, {});
  run_call(
      call, ids, [&](TensorRef out) { passes_.forward_layers(call, out); }, use);
}

void Executor::extend_each(std::span<const std::int32_t> ids, std::span<const std::int32_t> positions,
                           const UseOutput& use) {
  const auto batch = static_cast<std::int64_t>(ids.size());
  check(options().purpose == Purpose::kGeneration, "only generation keeps a cache");
  check(batch > 0, "tokens to extend sequences with");
  check_equal(static_cast<std::int64_t>(positions.size()), batch, "positions of tokens");
  const auto last = static_cast<std::int64_t>(*std::max_element(positions.begin(), positions.end()));
  const TensorRef lengths = plan_->memory().cache_lengths(batch);
  const SliceCall call{.pass = {.backend = backend_,
                                .tensor = *mesh_->tensor,
                                .batch = batch,
                                .tokens = 1,
                                .cache_lengths = lengths,
                                .position_ids = lengths.reshape({batch, 1}),
                                .rotary = plan_->memory().rotary(),
                                .sequence_length = last + 1},
                       .key = {}};
  check_room(call.pass);
  backend_.upload(call.pass.cache_lengths, positions.data());
  // Layers that ranks split exchange values with other ranks, which a graph cannot hold.
  const bool replays = backend_.captures_graphs() && mesh_->tensor->size() == 1;
  const auto layers = [&](TensorRef out) {
    const auto work = [&] { passes_.forward_layers(call, out); };
    replays ? backend_.replay(next_tokens_[batch], work) : work();
  };
  run_call(call, ids, layers, use);
}

void Executor::check_room(const LayerPass& pass) const {
  check(pass.sequence_length <= model_.traits.longest_sequence, "the model has positions for the tokens");
  if (options().purpose != Purpose::kGeneration) return;
  check(pass.first_cache >= 0 && pass.first_cache + pass.batch <= options().caches, "a cache for each sequence");
  check(options().cache_tokens == 0 || pass.sequence_length <= options().cache_tokens,
        "caches have room for the tokens");
}

void Executor::run_call(const SliceCall& call, std::span<const std::int32_t> ids,
                        const std::function<void(TensorRef out)>& layers, const UseOutput& use) {
  const StageCells& cells = plan_->cells();
  if (cells.has_embedding()) {
    passes_.embed(call, ids);
  } else {
    messages_.receive(*mesh_->pipeline, plan_->memory().input(call.pass, call.key, 0), cells.stage_before(0)).wait();
  }
  const TensorRef out = output(call);
  layers(out);
  if (cells.has_head()) {
    passes_.with_head(call, [&](const EndCall& end) { use(end, out); });
  } else {
    messages_.send(*mesh_->pipeline, out, cells.stage_after(0)).wait();
  }
}

void Executor::copy_cache(std::int64_t from, std::int64_t to, std::int64_t tokens) {
  for (int layer = 0; layer < plan_->cells().layers(0); ++layer) {
    backend_.copy(plan_->memory().cached(to, layer, tokens), plan_->memory().cached(from, layer, tokens));
  }
}

}  // namespace teratron

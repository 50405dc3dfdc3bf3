// Making a Gpt2Runner: which part of the model it holds, and what memory that takes.
#include <algorithm>

#include "base/error.h"
#include "model/gpt2.h"
#include "pipeline/checker.h"
#include "pipeline/generators.h"
#include "pipeline/send_slots.h"

namespace teratron {
namespace {

using pipeline::Schedule;

RunnerOptions with_schedule(RunnerOptions options) {
  if (options.purpose != Purpose::kTraining) {
    // Each stage runs its layers once, whatever is trained with.
    options.schedule = {};
    options.slice_tokens.clear();
    return options;
  }
  if (options.schedule.actions.empty()) {
    options.schedule = pipeline::make_schedule(pipeline::ScheduleKind::k1F1B,
                                               {.micro_batches = std::max(options.schedule.micro_batches, 1)});
  }
  pipeline::check_schedule(options.schedule);
  return options;
}

// One stage that has done with a micro-batch before it takes the next runs them all in the same place.
int places_of_micro_batches(const RunnerOptions& options, const StagePart& part) {
  if (options.purpose != Purpose::kTraining) return 1;
  check_equal(options.schedule.stages, part.stages(), "stages of the schedule and of the mesh");
  if (part.stages() > 1) return options.schedule.micro_batches;
  int current = 0;
  for (const pipeline::Action& action : options.schedule.actions.front()) {
    if (action.micro_batch < current) return options.schedule.micro_batches;
    current = action.micro_batch;
  }
  return 1;
}

Timeline timeline_of(const RunnerOptions& options, const StagePart& part) {
  if (options.purpose != Purpose::kTraining) return {{pipeline::Action{}}, part, 1, 1};
  const int places = places_of_micro_batches(options, part);
  const Schedule planned = pipeline::first_micro_batches(options.schedule, places);
  return {planned.actions[static_cast<std::size_t>(part.stage())], part, places, planned.slices};
}

}  // namespace

Gpt2Runner::Gpt2Runner(Backend& backend, const ModelConfig& config, const RunnerOptions& options,
                       std::shared_ptr<Mesh> mesh)
    : backend_(backend),
      mesh_(mesh ? std::move(mesh) : std::make_shared<Mesh>(make_single_rank_mesh())),
      options_(with_schedule(options)),
      model_(config, {.rank = mesh_->tensor->rank(), .size = mesh_->tensor->size()}),
      part_(config.num_layers, options_, *mesh_->pipeline),
      memory_(model_.config, options_, part_, *mesh_, backend.compute_dtype(), timeline_of(options_, part_),
              options_.schedule.stages > 1 ? pipeline::send_slots(options_.schedule) : 1) {
  mesh_->attach(&backend);
  for (TransformerLayer& layer : model_.layers) {
    layer.visit([&](Parameter& parameter) { parameter.stage = part_.stage_of_layer(layer.index); });
  }
  model_.final_norm.visit([&](Parameter& parameter) { parameter.stage = part_.stages() - 1; });
  plan_parameters();
  memory_.plan();
  memory_.arena().plan();
}

void Gpt2Runner::plan_parameters() {
  const bool training = options_.purpose == Purpose::kTraining;
  const Timeline& timeline = memory_.timeline();
  // With one backward pass a step, a gradient is born when that first writes it. Its life ends with the step: nothing
  // of the next exists then.
  const bool once = options_.schedule.micro_batches == 1 && options_.schedule.slices == 1;
  const auto add = [&](std::string name, std::vector<Parameter*> members, int moment) {
    buckets_.add(std::move(name), std::move(members), once && training ? moment : 0, timeline.end());
  };
  const auto members = [](auto& part) {
    std::vector<Parameter*> all;
    part.visit([&](Parameter& parameter) { all.push_back(&parameter); });
    return all;
  };
  for (int chunk = part_.chunks(); chunk-- > 0;) {
    const Timeline::Passes& passes = timeline.of({.chunk = chunk});
    if (part_.is_last(chunk)) add("final_norm", members(model_.final_norm), passes.backward);
    for (int layer = part_.layers(chunk); layer-- > 0;) {
      const std::int64_t index = part_.first_layer(chunk) + layer;
      add(fmt::format("layers.{}", index), members(model_.layers[static_cast<std::size_t>(index)]),
          passes.backward_of(layer));
    }
  }
  const int embedding = timeline.of({}).backward_end();
  if (part_.has_embedding()) add("embedding.positions", {&model_.embedding.positions}, embedding);
  if (part_.has_embedding() || part_.has_head()) {
    add("embedding.tokens", {&model_.embedding.tokens}, part_.has_head() ? memory_.head_moments().first : embedding);
  }
  buckets_.plan(memory_.arena(), backend_.compute_dtype(), training,
                options_.shard_optimizer ? mesh_->data.get() : nullptr);
}

void Gpt2Runner::allocate() {
  memory_.arena().allocate(backend_);
  buckets_.place(memory_.arena());
}

}  // namespace teratron

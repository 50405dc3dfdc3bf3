#include "executor/step_run.h"

#include "base/error.h"
#include "pipeline/dependencies.h"

namespace teratron {

using pipeline::Pass;
using pipeline::TraceSpan;
using Part = ParameterBucket::Part;

StepRun::StepRun(Backend& backend, Mesh& mesh, const StagePlan& plan, StagePasses& passes,
                 std::span<const MicroBatch> micro_batches, const Options& options)
    : backend_(backend),
      mesh_(mesh),
      plan_(plan),
      passes_(passes),
      messages_(mesh, plan.options().sequence_parallel),
      micro_batches_(micro_batches),
      options_(options),
      schedule_(pipeline::first_micro_batches(plan.options().schedule, static_cast<int>(micro_batches.size()))),
      actions_(schedule_.actions[static_cast<std::size_t>(plan.cells().stage())]),
      outputs_(plan.memory().send_slots()),
      gradients_(plan.memory().gradient_slots()),
      progress_(static_cast<std::size_t>(plan.cells().chunks())),
      complete_(plan.buckets().size()),
      preference_weights_(micro_batches.size()),
      preference_sums_(no_losses(preference_losses())) {
  for (const Action& action : actions_) {
    if (makes_weight_gradient(action.pass)) ++progress_of(action).passes;
    if (is_joint(action.pass)) ++joint_passes_[static_cast<std::size_t>(action.pass)];
  }
}

LossSums StepRun::run() {
  const std::int64_t iteration = std::int64_t{micro_batches_.front().iteration} + 1;
  passes_.clear_losses();
  Incoming incoming = receive_for(0);
  for (std::size_t at = 0; at < actions_.size(); ++at) {
    Incoming own = std::move(incoming);
    incoming = receive_for(at + 1);
    note_activity(activity_of(actions_[at]));  // whose input may be on its way
    traced(TraceSpan::Kind::kReceive, actions_[at], [&] { own.receive.wait(); });
    act(actions_[at], own.slot);
  }
  note_activity({.name = "the last messages", .iteration = iteration});
  traced(TraceSpan::Kind::kSend, {}, [&] {
    outputs_.wait_for_all();
    gradients_.wait_for_all();
  });
  note_activity({.name = "the sums of gradients", .iteration = iteration});
  traced(TraceSpan::Kind::kGradientSums, {}, [&] { finish_gradients(); });
  report_spans();
  LossSums losses = passes_.losses(loss_scale());
  if (plan_.options().preferences) losses = preference_sums_;
  mesh_.pipeline->all_reduce_host(losses.of_kind);  // of the last stage alone
  return losses;
}

double StepRun::loss_scale() const {
  const double scale = micro_batches_.front().loss_scale;
  for (const MicroBatch& micro_batch : micro_batches_) {
    check(micro_batch.loss_scale == scale, "all micro-batches of a step have one scale of the loss");
  }
  return scale;
}

SliceCall StepRun::call_of(const Action& action) const {
  const bool share_memory = plan_.memory().timeline().micro_batches() == 1;
  const int slot = share_memory ? 0 : action.micro_batch;
  return passes_.call_of(micro_batch_of(action), {action.chunk, slot, action.slice}, true);
}

template <class Work>
void StepRun::traced(TraceSpan::Kind kind, const Action& action, const Work& work) {
  if (options_.trace == nullptr) return work();
  auto start = backend_.timestamp();  // of the device's work, not of queueing it
  work();
  spans_.push_back({kind, action, std::move(start), backend_.timestamp()});
}

void StepRun::report_spans() {
  if (options_.trace == nullptr) return;
  backend_.wait();
  for (const MarkedSpan& span : spans_) {
    options_.trace->push_back({span.kind, span.action, span.start->seconds(), span.end->seconds()});
  }
}

StepRun::Incoming StepRun::receive_for(std::size_t at) {
  Incoming incoming;
  if (at >= actions_.size()) return incoming;
  const Action& action = actions_[at];
  const std::optional<int> from = pipeline::receives_from(schedule_, plan_.cells().stage(), action);
  const SliceCall call = call_of(action);
  if (makes_input_gradient(action.pass)) {
    incoming.slot = gradients_.next();
    traced(TraceSpan::Kind::kSend, action, [&] { gradients_.wait_for(incoming.slot); });
    if (!from) return incoming;
    incoming.receive =
        messages_.receive(*mesh_.pipeline_back, plan_.memory().gradient(call.pass, incoming.slot), *from);
  } else if (from) {
    incoming.receive = messages_.receive(*mesh_.pipeline, plan_.memory().input(call.pass, call.key, 0), *from);
  }
  return incoming;
}

Activity StepRun::activity_of(const Action& action) const {
  return {.name = pipeline::name_of(action.pass),
          .iteration = std::int64_t{micro_batch_of(action).iteration} + 1,
          .micro_batch = action.micro_batch,
          .slice = schedule_.slices > 1 ? action.slice : -1,
          .chunk = schedule_.virtual_stages > 1 ? action.chunk : -1};
}

void StepRun::act(const Action& action, std::size_t slot) {
  const BackendRange range(backend_, activity_of(action).text());
  if (action.pass == Pass::kForward) return forward(action);
  if (makes_input_gradient(action.pass)) return backward(action, slot);
  if (is_joint(action.pass)) return traced(TraceSpan::Kind::kPass, action, [&] { joint(action); });
  traced(TraceSpan::Kind::kPass, action, [&] { weight_gradients(action); });
}

void StepRun::pack_weights(const Action& action) {
  const auto pack = [&](int place, WeightProduct use) {
    plan_.packed_weights().pack(backend_, plan_.memory().arena(), place, use);
  };
  const bool is_backward = makes_input_gradient(action.pass);
  const bool ends = is_backward && plan_.cells().is_last(action.chunk) && !plan_.memory().has_joint_ends();
  if (ends || action.pass == Pass::kHead) {
    pack(PackedWeights::kHead, WeightProduct::kForward);
    pack(PackedWeights::kHead, WeightProduct::kInputGradient);
  }
  if (action.pass == Pass::kForward) pack(action.chunk, WeightProduct::kForward);
  if (is_backward) pack(action.chunk, WeightProduct::kInputGradient);
}

void StepRun::forward(const Action& action) {
  SliceCall call = call_of(action);
  const MicroBatch& micro_batch = micro_batch_of(action);
  const std::optional<int> to = pipeline::sends_to(schedule_, plan_.cells().stage(), action);
  std::size_t slot = 0;
  if (to) {
    slot = outputs_.next();
    traced(TraceSpan::Kind::kSend, action, [&] { outputs_.wait_for(slot); });
  }
  const TensorRef out = to ? plan_.memory().sent(call.pass, slot) : passes_.kept_output(call);
  traced(TraceSpan::Kind::kPass, action, [&] {
    pack_weights(action);
    passes_.begin(call, micro_batch);
    const bool embeds = plan_.cells().is_first(action.chunk) && !plan_.memory().has_joint_ends();
    if (embeds) passes_.embed(call, micro_batch, tally_output());
    passes_.forward_layers(call, out, tally_output());
  });
  if (to) outputs_.sent_from(slot, messages_.send(*mesh_.pipeline, out, *to));
}

void StepRun::backward(const Action& action, std::size_t slot) {
  SliceCall call = call_of(action);
  const MicroBatch& micro_batch = micro_batch_of(action);
  ChunkProgress& progress = progress_of(action);
  call.pass.accumulate = progress.input_gradients_done++ > 0;
  call.pass.weights_later = action.pass == Pass::kBackwardInput;
  const bool is_last_pass = progress.input_gradients_done == progress.passes;
  const bool is_final = makes_weight_gradient(action.pass) && is_final_weight_pass(action);
  const TensorRef dx = plan_.memory().gradient(call.pass, slot);
  traced(TraceSpan::Kind::kPass, action, [&] {
    pack_weights(action);
    passes_.begin(call, micro_batch);
    const bool has_joint_ends = plan_.memory().has_joint_ends(), is_last = plan_.cells().is_last(action.chunk);
    if (plan_.cells().is_continued(action.chunk) || (is_last && has_joint_ends)) {
      backend_.copy(dx, plan_.memory().output_gradient(call.pass, call.key));
    }
    if (is_last && !has_joint_ends) {
      passes_.head(call, weighed(action), plan_.memory().final_x(call.pass, call.key), dx);
      if (is_last_pass) complete(Part::kHead);
    }
    const StageCells& cells = plan_.cells();
    const std::int64_t bottom = cells.first_layer(action.chunk);
    tally_gradient(bottom + cells.layers(action.chunk) - 1, dx);
    passes_.backward_layers(call, dx, [&](std::int64_t layer) {
      if (is_final) complete(Part::kLayer, layer);
      if (layer > bottom || cells.is_first(action.chunk)) tally_gradient(layer - 1, dx);
    });
    if (cells.is_first(action.chunk) && has_joint_ends) {
      backend_.copy(plan_.memory().input_gradient(call.pass, call.key), dx);
    } else if (cells.is_first(action.chunk)) {
      passes_.embed_backward(call, micro_batch, dx);
      if (is_last_pass) complete(Part::kEmbedding);
    }
    if (plan_.cells().continues(action.chunk)) {
      const SliceKey before{call.key.chunk - 1, call.key.micro_batch, call.key.slice};
      backend_.copy(plan_.memory().output_gradient(call.pass, before), dx);
    }
  });
  const std::optional<int> to = pipeline::sends_to(schedule_, plan_.cells().stage(), action);
  if (to) gradients_.sent_from(slot, messages_.send(*mesh_.pipeline_back, dx, *to));
}

// Runs an end of the model, which all ranks of its copy share by the rows of the vocabulary. x and dx are null on
// stages that do not hold the end's layers.
//   embedding            every rank looks up its rows; the sum goes to all, the first stage keeps it until its forward
//   head                 the last stage's normed output goes to all; each rank makes the logits of its rows, some at a
//                        time, and exchanges a maximum and two sums a token; the ranks' parts of the output's gradient
//                        are summed, and the last stage keeps that until its backward
//   embedding's backward the first stage's gradient goes to all, which add it to their rows
void StepRun::joint(const Action& action) {
  SliceCall call = call_of(action);
  const MicroBatch& micro_batch = micro_batch_of(action);
  const auto pass = static_cast<std::size_t>(action.pass);
  call.pass.accumulate = joint_done_[pass]++ > 0;
  const bool is_last = joint_done_[pass] == joint_passes_[pass];
  const StageMemory& memory = plan_.memory();
  pack_weights(action);
  passes_.begin(call, micro_batch);
  if (action.pass == Pass::kEmbedding) return passes_.embed(call, micro_batch, tally_output());
  if (action.pass == Pass::kHead) {
    const bool has_layers = plan_.cells().has_head();
    passes_.head(call, weighed(action), has_layers ? memory.final_x(call.pass, call.key) : TensorRef(),
                 has_layers ? memory.output_gradient(call.pass, call.key) : TensorRef());
    if (is_last) complete(Part::kHead);
    return;
  }
  const bool has_layers = plan_.cells().has_embedding();
  passes_.embed_backward(call, micro_batch, has_layers ? memory.input_gradient(call.pass, call.key) : TensorRef());
  if (is_last) complete(Part::kEmbedding);
}

// The first backward pass of a micro-batch comes after the forward passes of all its slices, so every target's loss can
// be made here. The head makes logits again, slice by slice, for the gradients; nothing else is computed twice. Where
// stages share the vocabulary, a slice's head may come before the last slice's layers: sequences run whole there.
MicroBatch StepRun::weighed(const Action& action) {
  MicroBatch micro_batch = micro_batch_of(action);
  if (!plan_.options().preferences) return micro_batch;
  const auto number = static_cast<std::size_t>(action.micro_batch);
  std::vector<float>& weights = preference_weights_[number];
  if (weights.empty()) {
    const bool has_layers = plan_.cells().has_head();
    std::vector<double> losses(micro_batch.targets.size());
    Action each = action;
    for (each.slice = 0; each.slice < schedule_.slices_of(action.micro_batch); ++each.slice) {
      const SliceCall call = call_of(each);
      passes_.target_losses(call, micro_batch, has_layers ? plan_.memory().final_x(call.pass, call.key) : TensorRef(),
                            losses);
    }
    LossSums elsewhere = preference_sums_;  // stages that share the vocabulary compute the pairs, too
    weights = preference_weights(*plan_.options().preferences, micro_batch, losses, options_.reference_losses[number],
                                 has_layers ? preference_sums_ : elsewhere);
  }
  micro_batch.weights = weights;
  return micro_batch;
}

StagePasses::After StepRun::tally_output() {
  if (options_.tallies == nullptr) return {};
  return [this](const StagePasses::Passed& passed) { options_.tallies->take_output(passed.layer, passed.x); };
}

void StepRun::tally_gradient(std::int64_t layer, TensorRef dx) {
  if (options_.tallies != nullptr) options_.tallies->take_gradient(layer, dx);
}

bool StepRun::is_final_weight_pass(const Action& action) {
  ChunkProgress& progress = progress_of(action);
  return ++progress.weight_gradients_done == progress.passes;
}

void StepRun::weight_gradients(const Action& action) {
  SliceCall call = call_of(action);
  call.pass.accumulate = progress_of(action).weight_gradients_done > 0;
  const bool is_final = is_final_weight_pass(action);
  passes_.weight_gradients(call, [&](std::int64_t layer) {
    if (is_final) complete(Part::kLayer, layer);
  });
}

void StepRun::complete(Part part, std::int64_t layer) {
  for (const std::size_t bucket : plan_.buckets_at(part, layer)) complete_[bucket] = true;
  start_sums();
}

// Sums are started in the order of the buckets, which is the same on all copies of the model, whatever the number of
// their micro-batches.
void StepRun::start_sums() {
  if (!options_.sums_over_copies) return;
  while (sums_.size() < complete_.size() && complete_[sums_.size()]) {
    plan_.buckets().sum_over_ranks(sums_.size(), *mesh_.tensor, options_.replicas, plan_.options().sequence_parallel);
    sums_.push_back(plan_.buckets().start_gradient_sum(sums_.size(), *mesh_.data));
  }
}

// Both ends have a share of the tied gradient; its sum comes last, since backward ends with the embedding. A stage that
// is both ends has added them up.
void StepRun::finish_gradients() {
  if (!options_.sums_over_copies) return;
  for (const std::size_t bucket : plan_.buckets_at(Part::kBothEnds)) {
    const bool is_trained = plan_.buckets().gradients(bucket).elements() > 0,
               is_whole = plan_.cells().has_embedding() && plan_.cells().has_head();
    if (is_trained && !is_whole && !plan_.memory().has_joint_ends()) {
      mesh_.ends->all_reduce(plan_.buckets().gradients(bucket));
    }
    complete_[bucket] = true;
  }
  start_sums();
  check_equal(sums_.size(), complete_.size(), "buckets of gradients that are complete");
  for (Pending& sum : sums_) sum.wait();
}

}  // namespace teratron

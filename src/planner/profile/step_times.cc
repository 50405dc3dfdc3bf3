#include "profile/step_times.h"

#include "base/host/monotonic_clock.h"
#include "base/philox.h"
#include "data/batch_sampler.h"

namespace teratron {
namespace {

using pipeline::TraceSpan;

// Layers of each stage, all its cells together.
std::vector<std::int64_t> stage_layers(const StepSettings& settings) {
  std::vector<std::int64_t> stages(static_cast<std::size_t>(settings.layout.pipeline_parallel));
  const std::vector<std::int64_t> cells = cell_layers(settings);
  const pipeline::CellMap map{static_cast<int>(settings.layout.pipeline_parallel),
                              pipeline::traits_of(schedule_kind(settings.pipeline)).placement};
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    stages[static_cast<std::size_t>(map.stage_of(static_cast<int>(cell)))] += cells[cell];
  }
  return stages;
}

ExecutorOptions options_of(const ProfileRequest& request, const pipeline::Schedule& schedule,
                           const std::vector<std::int64_t>& slices) {
  return {.batch = request.sequences,
          .tokens = request.tokens,
          .logits_chunk = request.logits_chunk,
          .weight_tiles = request.weight_tiles,
          .schedule = schedule,
          .cuts = cut_alike(request.sequences, slices),
          .recompute = request.recompute,
          .kept_layers = request.kept_layers,
          .packed_weights = request.packed_weights,
          .sequence_parallel = request.sequence_parallel,
          .shard_optimizer = request.shard_optimizer,
          .cell_layers = request.cell_layers};
}

// Over all ranks of the mesh.
void all_reduce(Mesh& mesh, std::span<double> values, ReduceOp op = ReduceOp::kSum) {
  mesh.model->all_reduce_host(values, op);
  mesh.data->all_reduce_host(values, op);
}

// Draws the weights and clears the optimizer's slots. Weights in tiles, which are not drawn, are zero: they take as
// long.
void begin(Executor& executor, Backend& backend) {
  executor.clear_slots();
  std::vector<Parameter*> drawn;
  for (Parameter* parameter : executor.all_parameters()) {
    if (!parameter->widens_tiles) drawn.push_back(parameter);
    if (parameter->widens_tiles && parameter->value.data != nullptr) backend.fill_zero(parameter->value);
  }
  executor.initialize(1, drawn);
}

}  // namespace

ProfileRequest profile_request(const StepSettings& settings, std::int64_t vocab_size, const std::string& ranks) {
  const BatchSampler largest(settings.largest_batch(), settings.micro_batch_sizes(), 0, settings.layout.data_parallel,
                             settings.batch.samples_together);
  return {.model = settings.model.model_for(vocab_size),
          .sequences = largest.largest_micro_batch(),
          .tokens = settings.model.seq_length,
          .logits_chunk = settings.rows_of_logits(),
          .cell_layers = stage_layers(settings),
          .recompute = settings.layout.recomputation().uniform().value_or(Recompute::kNone),
          .kept_layers = settings.kept_layers(),
          .packed_weights = settings.weight_packing(),
          .weight_tiles = settings.backend.weight_tiles,
          .sequence_parallel = settings.layout.sequence_parallel,
          .shard_optimizer = settings.layout.distributed_optimizer,
          .ranks = ranks};
}

StepClock::StepClock(const ProfileRequest& request, const pipeline::Schedule& schedule,
                     const std::vector<std::int64_t>& slices, const std::shared_ptr<Mesh>& mesh, Backend& backend)
    : slices_(slices.size()),
      backend_(backend),
      model_(make_model(request.model, mesh->coordinates().tensor)),
      executor_(backend, *model_, options_of(request, schedule, slices), mesh),
      parameters_(executor_.parameters()) {
  executor_.allocate();
  begin(executor_, backend);
  executor_.record(&trace_);
  const auto count = static_cast<std::size_t>(request.sequences * request.tokens);
  RandomSequence random(RandomStream{.seed = 1});
  for (std::size_t i = 0; i <= count; ++i) {
    ids_.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(request.model.vocab_size))));
  }
  const int micro_batches = schedule.micro_batches, copies = micro_batches * mesh->data->size();
  weights_.assign(count, 1.0F / static_cast<float>(count * static_cast<std::size_t>(copies)));
  for (int i = 0; i < micro_batches; ++i) {
    micro_batches_.push_back({.ids = std::span(ids_).first(count),
                              .targets = std::span(ids_).last(count),
                              .weights = weights_,
                              .batch = request.sequences,
                              .tokens = request.tokens,
                              .first_sample = request.sequences * (mesh->data->rank() * micro_batches + i)});
  }
}

StepTimes StepClock::step() {
  Mesh& mesh = executor_.mesh();
  trace_.clear();
  for (MicroBatch& one : micro_batches_) one.iteration = static_cast<std::uint32_t>(updates_);
  all_reduce(mesh, {});  // all start together
  const double start = monotonic_seconds();
  executor_.forward_backward(micro_batches_);
  const double norm = gradient_norm(backend_, parameters_, mesh);
  executor_.update({.learning_rate = 1e-5, .update = ++updates_, .gradient_norm = norm});
  backend_.wait();
  return shared(start, monotonic_seconds());
}

StepTimes StepClock::shared(double step_start, double step_end) const {
  Mesh& mesh = executor_.mesh();
  const auto stages = static_cast<std::size_t>(mesh.pipeline->size());
  const auto stage = static_cast<std::size_t>(mesh.pipeline->rank());
  const double holders = mesh.tensor->size() * mesh.data->size();
  const std::size_t passes = micro_batches_.size() * slices_;
  constexpr std::size_t kTimes = 3;
  // [stage, micro-batch, slice, (forward, backward, the weights' part of the backward)]
  std::vector<double> flat(kTimes * stages * passes);
  std::array<double, 2> ends = {0, 1e3 * (step_end - step_start)};
  for (const TraceSpan& span : trace_) {
    if (span.kind != TraceSpan::Kind::kPass) continue;
    const std::size_t at = stage * passes + static_cast<std::size_t>(span.action.micro_batch) * slices_ +
                           static_cast<std::size_t>(span.action.slice);
    const double milliseconds = 1e3 * (span.end - span.start) / holders;
    flat[kTimes * at + (span.action.pass == pipeline::Pass::kForward ? 0 : 1)] += milliseconds;
    if (span.action.pass == pipeline::Pass::kBackwardWeight) flat[kTimes * at + 2] += milliseconds;
    ends[0] = 1e3 * (span.end - step_start);
  }
  all_reduce(mesh, flat);
  all_reduce(mesh, ends, ReduceOp::kMax);
  StepTimes times{
      .passes = std::vector(stages, std::vector<StepTimes::Pass>(passes)), .pipeline = ends[0], .iteration = ends[1]};
  for (std::size_t i = 0; i < stages * passes; ++i) {
    times.passes[i / passes][i % passes] = {
        .forward = flat[kTimes * i], .backward = flat[kTimes * i + 1], .backward_weight = flat[kTimes * i + 2]};
  }
  return times;
}

}  // namespace teratron

#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/host/monotonic_clock.h"
#include "checkpoint/adapter_base.h"
#include "checkpoint/initial_weights.h"
#include "runtime/recorded_data.h"
#include "runtime/weight_use.h"
#include "train/config/resume_rules.h"
#include "train/micro_batches.h"
#include "train/plans/memory_plan.h"
#include "train/watch/not_finite.h"

namespace teratron {
namespace {

// Names in a checkpoint's training state.
constexpr const char* kLossScale = "loss_scale";
constexpr const char *kGoodUpdates = "updates_since_overflow", *kOverflowsLeft = "overflows_left";
constexpr const char *kBestValidation = "best_validation_loss", *kSinceBest = "validations_since_best",
                     *kBestIteration = "best_validation_iteration";
constexpr const char* kValidationIsOwed = "validation_is_owed";
constexpr const char *kLossLevel = "loss_level", *kLowestLoss = "lowest_loss_level";

std::int64_t counter_of(const TrainingState& state, const char* name, std::int64_t otherwise) {
  const auto found = state.counters.find(name);
  return found == state.counters.end() ? otherwise : found->second;
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, Backend& backend, TrainingTask task, const std::shared_ptr<Mesh>& mesh,
                 const slicing::Profile* profile)
    : config_(config),
      task_(std::move(task)),
      batches_(config.batches()),
      pipeline_(plan_pipeline(config, profile)),
      sampler_(pipeline_.sampler(batches_.batch_size(0), mesh ? mesh->coordinates().data : GroupRank{})),
      executor_(backend, *task_.model, training_options(config, pipeline_), mesh),
      parameters_(executor_.parameters()),
      schedule_(config.schedule()),
      scaler_(config.backend.fp16 ? std::optional<LossScaler>(config.optimizer.loss_scaling) : std::nullopt),
      share_(task_.training->make_batch(config.largest_share())) {
  check(!task_.model->traits.losses.empty(), "a model that is trained has a loss");
  if (!config.output.trace.empty()) trace_.emplace();
  if (config.output.trace_numerics) doctor_.emplace(executor_);
}

std::int64_t Trainer::bytes_of_copy() {
  if (!config_.output.async_save || config_.output.save.empty()) return 0;
  if (!writes_checkpoints(executor_.plan().coordinates())) return 0;
  return bytes_of_copied_checkpoint(executor_.all_parameters(), executor_.backend().compute_dtype());
}

std::int64_t Trainer::start() {
  note_activity({.name = "start from weights or a checkpoint"});
  executor_.allocate();
  if (config_.output.async_save) background_.emplace(bytes_of_copy());
  config_.output.load.empty() ? start_weights() : resume();
  return iteration_;
}

void Trainer::start_weights() {
  const auto seed = static_cast<std::uint64_t>(config_.seed);
  if (config_.output.finetune.empty()) return executor_.initialize(seed);
  executor_.clear_slots();
  if (task_.config.adapters.active() && writes_checkpoints(executor_.plan().coordinates())) {
    task_.run.base = adapter_base_of(config_.output.finetune);
  }
  const std::vector<Parameter*> lacking =
      load_weights(config_.output.finetune, task_.config, executor_.all_parameters(), executor_.backend(), verifies());
  executor_.initialize(seed, lacking);
}

void Trainer::resume() {
  executor_.clear_slots();
  const CheckpointInfo checkpoint = read_checkpoint_info(config_.output.checkpoint());
  config_ = filled_from(checkpoint, config_);
  schedule_ = config_.schedule();
  require_usable(task_.run.kind == RunKind::kFinetuning ? WeightUse::kFinetuneAgain : WeightUse::kTrainLoad,
                 source_of(checkpoint), task_.run.task, task_.config);
  require_resumable(checkpoint, config_);
  if (!config_.split.override_data) require_same_data(checkpoint, task_.run, task_.data);
  task_.run.base = checkpoint.run.base;
  load_base(checkpoint.folder, checkpoint.run.base, task_.config, executor_.all_parameters(), executor_.backend(),
            verifies());
  const TrainingState state = load_checkpoint(checkpoint.folder, task_.config, executor_.all_parameters(),
                                              executor_.backend(), {.verify = verifies()});
  restore(state);
  saves_.kept = replicas_were_equal_ = iteration_;
  good_folder_ = checkpoint.folder;
  if (doctor_) doctor_->goes_on_from(iteration_, state.learning_rate);
  // Samples are counted, so that a run may go on with another batch size and reads each one once.
  batches_ = config_.batches({.updates = state.iteration, .samples = state.consumed_samples});
}

std::vector<MicroBatch> Trainer::read_share() {
  const std::int64_t consumed = batches_.consumed_after(iteration_);
  const Samples::TotalWeights totals = reader_.total_weights(*task_.training, {consumed, sampler_.global_batch()});
  if (sampler_.micro_batches() == 0) {
    // All ranks take part in a step. This one computes some samples of the batch, which weigh nothing here.
    const SampleRange any{consumed, config_.batch.samples_together};
    reader_.read(*task_.training, any, share_, 0);
    std::ranges::fill(share_.weights, 0.0F);
    std::ranges::fill(share_.label_weights, 0.0F);
    return {cut_micro_batch(0, any)};
  }
  std::vector<MicroBatch> share;
  std::int64_t done = 0;
  const std::vector<std::int64_t> by_length =
      order_of_lengths(task_.training->lengths({consumed, sampler_.global_batch()}));
  for (std::int64_t index = 0; index < sampler_.micro_batches(); ++index) {
    SampleRange range = sampler_.samples(consumed, index);
    if (by_length.empty()) {
      reader_.read(*task_.training, range, share_, done);
    } else {
      const SampleRange sorted = sampler_.places_by_length(index);
      for (std::int64_t i = 0; i < sorted.count; ++i) {
        const std::int64_t sample = by_length[static_cast<std::size_t>(sorted.first + i)];
        reader_.read(*task_.training, {consumed + sample, 1}, share_, done + i);
      }
      range = {consumed + sorted.first, sorted.count};
    }
    // Every target of the global batch weighs the same, however the batch is cut.
    divide_weights(share_, totals, config_.model.seq_length, done, range.count);
    share.push_back(cut_micro_batch(done, range));
    done += range.count;
  }
  return share;
}

MicroBatch Trainer::cut_micro_batch(std::int64_t first, SampleRange range) {
  MicroBatch micro_batch =
      MicroBatchCutter(executor_, config_.model.seq_length).micro_batch(share_, first, range.count);
  micro_batch.first_sample = range.first - batches_.consumed_after(iteration_);
  micro_batch.seed = static_cast<std::uint64_t>(config_.seed);
  micro_batch.iteration = static_cast<std::uint32_t>(iteration_);
  micro_batch.loss_scale = scaler_ ? scaler_->scale() : 1.0;
  return micro_batch;
}

IterationReport Trainer::update(const RunControl& control, Requests& agreed) {
  const double start = monotonic_seconds();
  sampler_ = pipeline_.sampler(batches_.batch_size(iteration_), executor_.mesh().coordinates().data);
  IterationReport report{.global_batch_size = sampler_.global_batch(),
                         .learning_rate = schedule_.at(applied_updates() + 1),
                         .loss_scale = scaler_ ? scaler_->scale() : 1.0};
  if (trace_) executor_.record(replays() ? nullptr : trace_->begin(iteration_ + 1));
  note_activity({.name = "reading of samples", .iteration = iteration_ + 1});
  const std::vector<MicroBatch> share = read_share();
  report.losses = executor_.forward_backward(share);
  note_activity({.name = "update", .iteration = iteration_ + 1});
  agreed = requests(control);
  const auto losses = static_cast<std::ptrdiff_t>(report.losses.of_kind.size());
  std::vector<double> sums = report.losses.of_kind;
  sums.insert(sums.end(), agreed.counts().begin(), agreed.counts().end());
  sums.push_back(sampler_.micro_batches() > 0 ? static_cast<double>(tokens_before_padding(share)) : 0);
  executor_.mesh().data->all_reduce_host(sums);
  report.tokens = static_cast<std::int64_t>(sums.back());
  report.losses.of_kind.assign(sums.begin(), sums.begin() + losses);
  std::copy(sums.begin() + losses, sums.end() - 1, agreed.counts().begin());
  report.loss = report.losses.total();
  if (doctor_) {
    doctor_->take({.iteration = iteration_ + 1,
                   .loss = report.loss,
                   .loss_scale = report.loss_scale,
                   .learning_rate = report.learning_rate,
                   .has_samples = sampler_.micro_batches() > 0});
    report.layers = doctor_->layers();
  }
  // No scale of the loss explains it: the forward pass does not use the scale.
  if (!std::isfinite(report.loss)) throw_diverged();
  if (background_ && !replays()) background_->release();  // it is the loss of the weights that were copied
  if (saves_.unproven && !replays()) keep_as_good(*std::exchange(saves_.unproven, std::nullopt));
  const double norm = gradient_norm(executor_.backend(), parameters_, executor_.mesh(), agreed.counts());
  if (doctor_) doctor_->take_norm(norm, report.loss_scale);
  if (agreed.corpus_fails()) require_readable_corpus();
  report.skipped = !apply(norm, report.learning_rate);
  report.gradient_norm = norm / report.loss_scale;
  report.iteration = ++iteration_;
  report.consumed_samples = batches_.consumed_after(iteration_);
  report.consumed_tokens = report.consumed_samples * config_.model.seq_length;
  report.seconds = monotonic_seconds() - start;
  report.done_at = wall_seconds();
  return report;
}

bool Trainer::apply(double gradient_norm, double learning_rate) {
  const bool finite = std::isfinite(gradient_norm);
  if (!finite && (!scaler_ || scaler_->exhausted())) throw_diverged();
  const double scale = scaler_ ? scaler_->scale() : 1.0;
  if (scaler_) scaler_->update(!finite);
  if (!finite) {
    ++skipped_;
    return false;
  }
  executor_.update({.learning_rate = learning_rate,
                    .update = applied_updates() + 1,
                    .gradient_norm = gradient_norm,
                    .gradient_scale = 1.0 / scale,
                    .seed = static_cast<std::uint64_t>(config_.seed)});
  return true;
}

void Trainer::throw_diverged() {
  require_readable_corpus();  // of samples that stand for others, a loss says nothing
  std::string first;
  for (std::string& found : executor_.mesh().data->all_gather_host(first_not_finite(executor_, read_share()))) {
    if (first.empty()) first = std::move(found);
  }
  throw DivergedError(
      fmt::format("training has diverged in iteration {}: {}; the weights were not updated. Lower --lr, lengthen "
                  "--lr-warmup-iters or set --clip-grad, and go on from the last checkpoint, or begin anew",
                  iteration_ + 1, first.empty() ? "the sum of all gradients is not finite" : first));
}

void Trainer::throw_weights_diverged(const std::string& what) const {
  throw DivergedError(fmt::format(
      "training has diverged: {} of the weights after iteration {} is not finite; they are not saved. Lower --lr, "
      "lengthen --lr-warmup-iters or set --clip-grad, and go on from the last checkpoint, or begin anew",
      what, iteration_));
}

std::optional<LossSums> Trainer::validation_losses(std::int64_t batches) {
  if (!task_.validation) return std::nullopt;
  const Samples& samples = *task_.validation;
  note_activity({.name = "validation", .iteration = iteration_});
  const LossSums losses =
      mean_losses(samples, {0, std::min(samples.samples_per_epoch(), batches * batches_.largest())});
  require_readable_corpus();
  return losses;
}

LossSums Trainer::loss_sums(const Samples& samples, SampleRange positions, SampleBatch& batch) {
  reader_.read(samples, positions, batch, 0);
  return executor_.evaluate(
      MicroBatchCutter(executor_, config_.model.seq_length).micro_batch(batch, 0, positions.count));
}

LossSums Trainer::mean_losses(const Samples& samples, SampleRange positions) {
  Communicator& replicas = *executor_.mesh().data;
  const std::int64_t size = executor_.options().batch;
  const std::vector<ModelTraits::Loss>& kinds = executor_.loss_kinds();
  LossSums means = no_losses(kinds);
  SampleBatch batch = samples.make_batch(size);
  for (std::int64_t done = replicas.rank() * size; done < positions.count; done += replicas.size() * size) {
    const LossSums sums = loss_sums(samples, {positions.first + done, std::min(size, positions.count - done)}, batch);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) means.of_kind[kind] += sums.of_kind[kind];
  }
  replicas.all_reduce_host(means.of_kind);
  const Samples::TotalWeights totals = reader_.total_weights(samples, positions);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const double total = kinds[kind].of_labels ? totals.labels : totals.targets;
    means.of_kind[kind] = total > 0 ? means.of_kind[kind] / total : 0;  // a mean over nothing is 0
  }
  return means;
}

TrainingState Trainer::state() const {
  const std::int64_t samples = batches_.consumed_after(iteration_);
  TrainingState state{.iteration = iteration_,
                      .consumed_samples = samples,
                      .consumed_tokens = samples * config_.model.seq_length,
                      .seed = static_cast<std::uint64_t>(config_.seed),
                      .learning_rate = applied_updates() > 0 ? schedule_.at(applied_updates()) : 0,
                      .counters = {{kSkippedIterations, skipped_}}};
  record_data(task_.data, state);
  record_split(task_.split_rule, state);
  record_documents(config_.documents, state);
  if (best_.value) {
    state.values[kBestValidation] = *best_.value;
    state.counters[kSinceBest] = best_.since;
    state.counters[kBestIteration] = best_.iteration;
  }
  if (validation_is_owed_) state.counters[kValidationIsOwed] = 1;
  if (const std::optional<LossWatch::State> watch = loss_watch_.state(); doctor_ && watch) {
    state.values[kLossLevel] = watch->level;
    state.values[kLowestLoss] = watch->lowest;
  }
  if (!scaler_) return state;
  state.values[kLossScale] = scaler_->state().scale;
  state.counters[kGoodUpdates] = scaler_->state().good_updates;
  state.counters[kOverflowsLeft] = scaler_->state().overflows_left;
  return state;
}

void Trainer::restore(const TrainingState& state) {
  restore_updates(state);
  best_.since = counter_of(state, kSinceBest, 0);
  best_.iteration = counter_of(state, kBestIteration, -1);
  validation_is_owed_ = counter_of(state, kValidationIsOwed, 0) != 0;
  if (const auto best = state.values.find(kBestValidation); best != state.values.end()) {
    best_.value = best->second;
  }
  const auto level = state.values.find(kLossLevel), lowest = state.values.find(kLowestLoss);
  if (!doctor_ || level == state.values.end() || lowest == state.values.end()) return;
  loss_watch_.restore({.level = level->second, .lowest = lowest->second});
}

void Trainer::restore_updates(const TrainingState& state) {
  iteration_ = state.iteration;
  skipped_ = counter_of(state, kSkippedIterations, 0);
  // A run that was not scaled before begins with the scale of the options.
  const auto scale = state.values.find(kLossScale);
  if (!scaler_ || scale == state.values.end()) return;
  scaler_->restore({.scale = scale->second,
                    .good_updates = counter_of(state, kGoodUpdates, 0),
                    .overflows_left = counter_of(state, kOverflowsLeft, config_.optimizer.loss_scaling.hysteresis)});
}

}  // namespace teratron

#include "train/updates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/host/monotonic_clock.h"
#include "checkpoint/initial_weights.h"
#include "runtime/recorded_data.h"
#include "train/config/resume_rules.h"
#include "train/micro_batches.h"
#include "train/plans/memory_plan.h"
#include "train/watch/not_finite.h"

namespace teratron {
namespace {

// Names in a checkpoint's training state.
constexpr const char *kLossScale = "loss_scale", *kGoodUpdates = "updates_since_overflow",
                     *kOverflowsLeft = "overflows_left";

constexpr const char* kAdvice =
    "Lower --lr, lengthen --lr-warmup-iters or set --clip-grad, and go on from the last checkpoint, or begin anew";

}  // namespace

Updates::Updates(const TrainConfig& config, const TrainingTask& task, Backend& backend,
                 const std::shared_ptr<Mesh>& mesh, const slicing::Profile* profile)
    : config_(config),
      task_(task),
      batches_(config.batches()),
      pipeline_(plan_pipeline(config, profile)),
      sampler_(pipeline_.sampler(batches_.batch_size(0), mesh ? mesh->coordinates().data : GroupRank{})),
      executor_(backend, *task.model, training_options(config, pipeline_), mesh),
      parameters_(executor_.parameters()),
      schedule_(config.schedule()),
      scaler_(config.backend.fp16 ? std::optional<LossScaler>(config.optimizer.loss_scaling) : std::nullopt),
      share_(task.training->make_batch(config.largest_share())) {}

void Updates::begin() {
  iteration_ = skipped_ = consumed_tokens_ = 0;
  if (scaler_) scaler_.emplace(config_.optimizer.loss_scaling);
  const auto seed = static_cast<std::uint64_t>(config_.seed);
  const std::filesystem::path& finetune = config_.output.finetune;
  if (finetune.empty()) return executor_.initialize(seed);
  executor_.clear_slots();
  const std::vector<Parameter*> lacking =
      load_weights(finetune, task_.config, executor_.all_parameters(), executor_.backend(), is_first_rank());
  executor_.initialize(seed, lacking);
}

// Every rank reads its own parts of a checkpoint; one is enough to compare the checksums.
TrainingState Updates::load(const std::filesystem::path& folder) {
  executor_.clear_slots();
  const TrainingState state = load_checkpoint(folder, task_.config, executor_.all_parameters(), executor_.backend(),
                                              {.verify = is_first_rank()});
  iteration_ = state.iteration;
  consumed_tokens_ = state.consumed_tokens;
  skipped_ = state.counter(kSkippedIterations);
  if (!scaler_) return state;
  const LossScaling& scaling = config_.optimizer.loss_scaling;
  scaler_.emplace(scaling);
  // A run that was not scaled before begins with the scale of the options.
  if (const auto scale = state.values.find(kLossScale); scale != state.values.end()) {
    scaler_->restore({.scale = scale->second,
                      .good_updates = state.counter(kGoodUpdates),
                      .overflows_left = state.counter(kOverflowsLeft, scaling.hysteresis)});
  }
  return state;
}

TrainingState Updates::resume(const std::filesystem::path& folder) {
  const TrainingState state = load(folder);
  schedule_ = config_.schedule();
  // Samples are counted, so that a run may go on with another batch size and reads each one once.
  batches_ = config_.batches(batches_done(state));
  return state;
}

std::vector<MicroBatch> Updates::read_share() {
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

MicroBatch Updates::cut_micro_batch(std::int64_t first, SampleRange range) {
  MicroBatch micro_batch =
      MicroBatchCutter(executor_, config_.model.seq_length).micro_batch(share_, first, range.count);
  micro_batch.first_sample = range.first - batches_.consumed_after(iteration_);
  micro_batch.seed = static_cast<std::uint64_t>(config_.seed);
  micro_batch.iteration = static_cast<std::uint32_t>(iteration_);
  micro_batch.loss_scale = scaler_ ? scaler_->scale() : 1.0;
  return micro_batch;
}

Update Updates::compute(const std::function<Requests()>& requests) {
  Update update{.began = monotonic_seconds()};
  IterationReport& report = update.report;
  sampler_ = pipeline_.sampler(batches_.batch_size(iteration_), mesh().coordinates().data);
  update.has_samples = sampler_.micro_batches() > 0;
  report.iteration = iteration_ + 1;
  report.global_batch_size = sampler_.global_batch();
  report.learning_rate = schedule_.at(applied() + 1);
  report.loss_scale = scaler_ ? scaler_->scale() : 1.0;
  note_activity({.name = "reading of samples", .iteration = iteration_ + 1});
  const std::vector<MicroBatch> share = read_share();
  report.losses = executor_.forward_backward(share);
  note_activity({.name = "update", .iteration = iteration_ + 1});
  update.requests = requests();
  if (!reader_.fault().empty()) update.requests.say_corpus_fails();
  sum_over_copies(update, share);
  report.loss = report.losses.total();
  if (std::isfinite(report.loss)) {
    update.gradient_norm = gradient_norm(executor_.backend(), parameters_, mesh(), update.requests.counts());
  }
  // Losses of samples that stand in for unreadable ones mean nothing.
  if (!update.gradient_norm || update.requests.corpus_fails()) reader_.require_readable(mesh());
  return update;
}

// Losses, requests and tokens; gradients were summed by the backward pass, and their norm sums requests over the ranks
// of a copy.
void Updates::sum_over_copies(Update& update, std::span<const MicroBatch> share) {
  std::vector<double>& losses = update.report.losses.of_kind;
  const std::span<double> counts = update.requests.counts();
  std::vector<double> sums = losses;
  sums.insert(sums.end(), counts.begin(), counts.end());
  sums.push_back(update.has_samples ? static_cast<double>(tokens_before_padding(share)) : 0);
  mesh().data->all_reduce_host(sums);
  const auto end = sums.begin() + std::ssize(losses);
  losses.assign(sums.begin(), end);
  std::copy(end, sums.end() - 1, counts.begin());
  update.report.tokens = static_cast<std::int64_t>(sums.back());
}

void Updates::apply(Update& update) {
  IterationReport& report = update.report;
  // fp16's scale explains a norm that is not finite, but no loss: the forward pass does not use the scale.
  report.skipped = update.gradient_norm && !std::isfinite(*update.gradient_norm);
  if (!update.gradient_norm || (report.skipped && (!scaler_ || scaler_->exhausted()))) throw_diverged();
  if (scaler_) scaler_->update(report.skipped);
  if (report.skipped) {
    ++skipped_;
  } else {
    executor_.update({.learning_rate = report.learning_rate,
                      .update = applied() + 1,
                      .gradient_norm = *update.gradient_norm,
                      .gradient_scale = 1.0 / report.loss_scale,
                      .seed = static_cast<std::uint64_t>(config_.seed)});
  }
  ++iteration_;
  consumed_tokens_ += report.global_batch_size * config_.model.seq_length;
  report.gradient_norm = *update.gradient_norm / report.loss_scale;
  report.consumed_samples = batches_.consumed_after(iteration_);
  report.consumed_tokens = consumed_tokens_;
  report.seconds = monotonic_seconds() - update.began;
  report.done_at = wall_seconds();
}

void Updates::throw_diverged() {
  std::string first;
  for (std::string& found : mesh().data->all_gather_host(first_not_finite(executor_, read_share()))) {
    if (first.empty()) first = std::move(found);
  }
  throw DivergedError(fmt::format("training has diverged in iteration {}: {}; the weights were not updated. {}",
                                  iteration_ + 1, first.empty() ? "the sum of all gradients is not finite" : first,
                                  kAdvice));
}

void Updates::throw_weights_diverged(const std::string& what) const {
  throw DivergedError(
      fmt::format("training has diverged: {} of the weights after iteration {} is not finite; they are not saved. {}",
                  what, iteration_, kAdvice));
}

TrainingState Updates::state() const {
  TrainingState state{.iteration = iteration_,
                      .consumed_samples = batches_.consumed_after(iteration_),
                      .consumed_tokens = consumed_tokens_,
                      .seed = static_cast<std::uint64_t>(config_.seed),
                      .learning_rate = applied() > 0 ? schedule_.at(applied()) : 0,
                      .counters = {{kSkippedIterations, skipped_}}};
  if (!scaler_) return state;
  state.values[kLossScale] = scaler_->state().scale;
  state.counters[kGoodUpdates] = scaler_->state().good_updates;
  state.counters[kOverflowsLeft] = scaler_->state().overflows_left;
  return state;
}

}  // namespace teratron

#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "checkpoint/adapter_base.h"
#include "eval/finite_outputs.h"
#include "runtime/recorded_data.h"
#include "runtime/weight_use.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

// Names in a checkpoint's training state.
constexpr const char *kBestValidation = "best_validation_loss", *kSinceBest = "validations_since_best",
                     *kBestIteration = "best_validation_iteration", *kBestSamples = "best_validation_samples",
                     *kBestBeta = "best_validation_dpo_beta";
constexpr const char* kValidationIsOwed = "validation_is_owed";
constexpr const char *kLossLevel = "loss_level", *kLowestLoss = "lowest_loss_level";

}  // namespace

Trainer::Trainer(const TrainConfig& config, Backend& backend, TrainingTask task, const std::shared_ptr<Mesh>& mesh,
                 const slicing::Profile* profile)
    : config_(config),
      task_(std::move(task)),
      updates_(config_, task_, backend, mesh, profile),
      doctor_(config.output.trace_numerics ? std::optional<Doctor>(std::in_place, updates_) : std::nullopt),
      saves_(config_, task_, updates_, doctor_ ? &*doctor_ : nullptr) {
  check(!task_.model->traits.losses.empty(), "a model that is trained has a loss");
  if (!config.output.trace.empty()) trace_.emplace();
}

std::int64_t Trainer::start() {
  note_activity({.name = "start from weights or a checkpoint"});
  executor().allocate();
  saves_.allocate();
  if (!config_.output.load.empty()) {
    resume();
    return iteration();
  }
  const bool has_base = !config_.output.finetune.empty() && task_.config.adapters.active();
  if (has_base && writes_checkpoints(executor().plan().coordinates())) {
    task_.run.base = adapter_base_of(config_.output.finetune);
  }
  updates_.begin();
  return 0;
}

void Trainer::resume() {
  const CheckpointInfo checkpoint = read_checkpoint_info(config_.output.checkpoint());
  config_ = filled_from(checkpoint, config_);
  require_usable(task_.run.kind == RunKind::kFinetuning ? WeightUse::kFinetuneAgain : WeightUse::kTrainLoad,
                 source_of(checkpoint), task_.run.task, task_.config);
  require_resumable(checkpoint, config_);
  if (!config_.split.override_data) require_same_data(checkpoint, task_.run, task_.data);
  task_.run.base = checkpoint.run.base;
  load_base(checkpoint.folder, checkpoint.run.base, task_.config, executor().all_parameters(), executor().backend(),
            updates_.is_first_rank());
  const TrainingState state = updates_.resume(checkpoint.folder);
  restore(state);
  saves_.begin_at(state);
  replicas_.begin_at(iteration());
  if (doctor_) doctor_->goes_on_from(checkpoint.folder, state);
}

Update Trainer::update(const RunControl& control) {
  if (trace_) executor().record(trace_->begin(iteration() + 1));
  Update update = updates_.compute([&] { return requests(control); });
  if (doctor_) doctor_->take(update);
  if (update.gradient_norm) saves_.release();
  updates_.apply(update);
  if (doctor_) update.report.layers = doctor_->layers();
  return update;
}

std::int64_t Trainer::validated_samples() const {
  if (!task_.validation) return 0;
  return std::min(task_.validation->samples_per_epoch(), config_.output.eval_iters * batches().largest());
}

std::optional<LossSums> Trainer::validation_losses() {
  if (!task_.validation) return std::nullopt;
  note_activity({.name = "validation", .iteration = iteration()});
  const SampleRange first{0, validated_samples()};
  const LossSums losses = mean_losses(executor(), updates_.reader(), *task_.validation, first);
  updates_.reader().require_readable(updates_.mesh());
  return losses;
}

TrainingState Trainer::state() const {
  TrainingState state = updates_.state();
  record_data(task_.data, state);
  record_split(task_.split_rule, state);
  record_documents(config_.documents, state);
  if (best_.value) {
    state.values[kBestValidation] = *best_.value;
    state.counters[kSinceBest] = best_.since;
    state.counters[kBestIteration] = best_.iteration;
    if (!task_.scores) state.counters[kBestSamples] = validated_samples();
    if (config_.documents.dpo) state.values[kBestBeta] = config_.documents.dpo_beta;
  }
  if (validation_is_owed_) state.counters[kValidationIsOwed] = 1;
  if (const std::optional<LossWatch::State> watch = loss_watch_.state(); doctor_ && watch) {
    state.values[kLossLevel] = watch->level;
    state.values[kLowestLoss] = watch->lowest;
  }
  return state;
}

// Older checkpoints know neither the number of samples nor --dpo-beta, and pass.
bool Trainer::validates_as(const TrainingState& state) const {
  const std::int64_t there = state.counter(kBestSamples), here = validated_samples();
  const auto beta = state.values.find(kBestBeta);
  return !validates_on_others(state, task_.data) && (there == 0 || here == 0 || there == here) &&
         (beta == state.values.end() || beta->second == config_.documents.dpo_beta);
}

void Trainer::restore(const TrainingState& state) {
  validation_is_owed_ = state.counter(kValidationIsOwed) != 0;
  if (const auto best = state.values.find(kBestValidation); best != state.values.end()) {
    const BestValidation before{
        .value = best->second, .iteration = state.counter(kBestIteration, -1), .since = state.counter(kSinceBest)};
    (validates_as(state) ? best_ : best_elsewhere_) = before;
  }
  const auto level = state.values.find(kLossLevel), lowest = state.values.find(kLowestLoss);
  if (!doctor_ || level == state.values.end() || lowest == state.values.end()) return;
  loss_watch_.restore({.level = level->second, .lowest = lowest->second});
}

Requests Trainer::requests(const RunControl& control) const {
  Requests own;
  own.ask_to_end(control.signal());
  if (!updates_.is_first_rank()) return own;
  const double now = control.seconds();
  if (has_passed(config_.output.exit_duration_in_mins, now - control.began)) own.say_time_is_up();
  if (saves_.is_due_by_time(now)) own.ask_to_save();
  return own;
}

void Trainer::validate(TrainingObserver& observer, TrainingResult& result) {
  observer.flush();
  validation_is_owed_ = true;  // until it is made: the corpus may fail
  // A validation that is made only because the run ends does not bring a longer run nearer to --early-stop.
  const std::int64_t interval = config_.output.eval_interval;
  const bool is_regular = interval > 0 && iteration() % interval == 0;
  if (const std::optional<LossSums> losses = validation_losses()) {
    const double loss = losses->total();
    if (!std::isfinite(loss)) updates_.throw_weights_diverged("the validation loss");
    result.validation_loss = loss;
    observer.validation(iteration(), *losses);
    if (!task_.scores) best_.add(loss, iteration(), is_regular);
  }
  if (task_.scores) {
    note_activity({.name = "scores", .iteration = iteration()});
    const std::vector<TaskScore> scores = finite_scores();
    observer.scored(iteration(), scores);
    best_.add(-scores.front().value, iteration(), is_regular);
  }
  validation_is_owed_ = false;
  sample(observer);
}

std::vector<TaskScore> Trainer::finite_scores() {
  try {
    return task_.scores(executor());
  } catch (const OutputNotFiniteError& error) {
    throw DivergedError(error.what());
  }
}

// The first copy of the model continues the prompts. The draws depend on the run's seed alone, so that samples of
// different iterations compare. All ranks of the copy get the same logits, so a text fails on all of them or on none,
// and training goes on.
void Trainer::sample(TrainingObserver& observer) {
  if (updates_.mesh().data->rank() != 0) return;
  for (const SamplePrompt& prompt : task_.samples.prompts) {
    note_activity({.name = "text sample", .iteration = iteration()});
    try {
      observer.sample(
          iteration(), prompt.text,
          continue_text(executor(), *task_.model, task_.config.vocab_size, prompt.tokens, task_.samples.settings));
    } catch (const UserError& error) {
      if (!std::exchange(reported_failed_sample_, true)) {
        observer.notice(fmt::format("warning: the sample after iteration {} failed, and training goes on: {}",
                                    iteration(), error.what()));
      }
    }
  }
}

void Trainer::end_if_asked(const Requests& requests, TrainingObserver& observer, TrainingResult& result) const {
  if (const int signal = requests.signal(); signal != 0) {
    result.end = RunEnd::kSignal;
    result.signal = signal;
    observer.notice(fmt::format("{}: ends after iteration {} of {}{}", name_of_signal(signal), iteration(),
                                config_.train_iters,
                                config_.output.save.empty() ? "; without --save nothing is kept" : ""));
  } else if (requests.time_is_up() && iteration() < config_.train_iters) {
    result.end = RunEnd::kExitDuration;
    observer.notice(fmt::format("--exit-duration-in-mins {:g}: ends after iteration {} of {}",
                                config_.output.exit_duration_in_mins, iteration(), config_.train_iters));
  }
}

void Trainer::end_if_stalled(TrainingObserver& observer, TrainingResult& result) const {
  if (result.end != RunEnd::kComplete || iteration() == config_.train_iters || !is_stalled()) return;
  result.end = RunEnd::kEarlyStop;
  const std::string best = task_.scores ? fmt::format("highest score was {:.2f}", -*best_.value)
                                        : fmt::format("lowest validation loss was {:.4f}", *best_.value);
  observer.notice(fmt::format("--early-stop {}: ends after iteration {} of {}; the {}", config_.output.early_stop,
                              iteration(), config_.train_iters, best));
}

void Trainer::save_if_due(const Requests& requests, bool ends, TrainingObserver& observer, const RunControl& control) {
  const Saves::Occasion occasion{.best = is_best(), .ends = ends, .asked = requests.save_is_due()};
  if (!saves_.is_due(occasion)) return;
  observer.flush();  // who goes on from the checkpoint does not report these updates again
  saves_.save(occasion, state(), observer);
  saves_.count_from(control.seconds());
}

TrainingResult Trainer::run(TrainingObserver& observer, const RunControl& control) {
  std::string diverged;
  try {
    return run_updates(observer, control);
  } catch (const DivergedError& error) {
    if (!doctor_) throw;
    diverged = error.what();
  } catch (const CorpusFailure& failure) {
    observer.flush();
    saves_.save_last(state(), observer);
    // A rank that ends takes those with it that still save.
    for (Communicator* const group : {updates_.mesh().model.get(), updates_.mesh().data.get()}) group->barrier();
    const std::string kept = iteration() == 0 ? "before its first update"
                             : saves_.has_last_update()
                                 ? fmt::format("after iteration {}, which is saved", iteration())
                                 : fmt::format("after iteration {}; without --save nothing is kept", iteration());
    throw_environment_error(
        "{}. The run ends {}; bring the corpus back as it was ('teratron data verify' looks at all "
        "of it), then start again from the last checkpoint",
        failure.what(), kept);
  }
  throw_diagnosed(diverged, observer);
}

Diagnosis Trainer::diagnose(std::int64_t bad, TrainingObserver& observer) {
  saves_.finish(observer);
  updates_.mesh().model->barrier();  // the checkpoint stands for all
  updates_.mesh().data->barrier();
  observer.flush();
  return doctor_->diagnose(bad, [&](const std::string& text) { observer.notice(text); });
}

void Trainer::diagnose_jump(const IterationReport& report, TrainingObserver& observer) {
  const Diagnosis diagnosis = diagnose(report.iteration, observer);
  if (!diagnosis.is_of_machine) return observer.notice("doctor: " + diagnosis.text);
  throw_environment_error(
      "the loss of iteration {} has jumped to {:.4f}. Doctor: {}. Nothing is saved; go on from the last checkpoint, on "
      "another machine if it happens again",
      report.iteration, report.loss, diagnosis.text);
}

void Trainer::throw_diagnosed(const std::string& diverged, TrainingObserver& observer) {
  const Diagnosis diagnosis = diagnose(iteration() + 1, observer);
  const std::string text = fmt::format("{}. Doctor: {}", diverged, diagnosis.text);
  if (!diagnosis.is_of_machine) throw DivergedError(text);
  throw_environment_error(
      "{}. The settings may be good as they are; go on from the last checkpoint, on another machine "
      "if it happens again",
      text);
}

TrainingResult Trainer::run_updates(TrainingObserver& observer, const RunControl& control) {
  TrainingResult result{.iterations = iteration(), .consumed_samples = batches().consumed_after(iteration())};
  double seconds = 0;
  std::int64_t tokens = 0;
  saves_.count_from(control.seconds());
  if (best_elsewhere_.value && (config_.output.save_best || config_.output.early_stop > 0)) {
    observer.notice(
        fmt::format("validation reads other samples than before{}: the lowest loss so far, {:.4f}, no longer counts",
                    config_.documents.dpo ? ", or has another --dpo-beta" : "", *best_elsewhere_.value));
  }
  if (config_.output.save_best && best_.value) saves_.restore_best_link(best_.iteration);
  const bool validates_first = makes_up_for_validation();
  if (validates_first) validate(observer, result);
  end_if_stalled(observer, result);
  if (validates_first) save_if_due({}, result.end != RunEnd::kComplete, observer, control);
  while (iteration() < config_.train_iters && result.end == RunEnd::kComplete) {
    const Update last = update(control);
    const IterationReport& report = last.report;
    observer.iteration(report);
    saves_.report_finished(observer);
    if (const std::int64_t every = config_.output.check_replicas; every > 0 && iteration() % every == 0) {
      replicas_.require_equal(executor(), iteration());
    }
    // The batches of a task differ too much; its scores are watched instead.
    if (!task_.scores && loss_watch_.explodes(report.loss)) {
      observer.notice(fmt::format("warning: the loss explodes: {:.4f} in iteration {}, after a level of {:.4f}",
                                  report.loss, iteration(), loss_watch_.lowest()));
      if (doctor_) diagnose_jump(report, observer);
    }
    seconds += report.seconds;
    tokens += report.tokens;
    result.iterations = iteration();
    result.consumed_samples = report.consumed_samples;
    result.final_loss = report.loss;
    end_if_asked(last.requests, observer, result);
    if (validation_is_due()) {
      // The sender of a signal waits; the run that goes on from here makes up for it.
      validation_is_owed_ = result.end == RunEnd::kSignal;
      if (!validation_is_owed_) validate(observer, result);
    }
    end_if_stalled(observer, result);
    save_if_due(last.requests, result.end != RunEnd::kComplete, observer, control);
  }
  saves_.finish(observer);
  observer.flush();
  if (seconds > 0) result.tokens_per_second = static_cast<double>(tokens) / seconds;
  return result;
}

}  // namespace teratron

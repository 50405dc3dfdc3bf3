// The loop of a Trainer: when it validates, saves and ends. Every decision follows from numbers that all ranks share.
#include <cmath>
#include <utility>

#include "base/error.h"
#include "checkpoint/native/folder_changes.h"
#include "checkpoint/native/folders.h"
#include "train/config/resume_rules.h"
#include "train/trainer.h"
#include "train/watch/replica_check.h"

namespace teratron {
namespace {

constexpr double kSecondsPerMinute = 60;

}  // namespace

Requests Trainer::requests(const RunControl& control) const {
  Requests own;
  own.ask_to_end(control.signal());
  if (!updates_.is_first_rank()) return own;
  const double now = control.seconds();
  const auto has_passed = [&](double minutes, double since) {
    return minutes > 0 && now - since >= minutes * kSecondsPerMinute;
  };
  if (has_passed(config_.output.exit_duration_in_mins, control.began)) own.say_time_is_up();
  if (config_.output.save_interval == 0 && has_passed(config_.output.save_interval_in_mins, saves_.at))
    own.ask_to_save();
  return own;
}

void Trainer::validate(TrainingObserver& observer, TrainingResult& result) {
  observer.flush();
  validation_is_owed_ = false;
  if (const std::optional<LossSums> losses = validation_losses(config_.output.eval_iters)) {
    const double loss = losses->total();
    if (!std::isfinite(loss)) throw_weights_diverged("the validation loss");
    result.validation_loss = loss;
    observer.validation(iteration(), *losses);
    if (!task_.scores) best_.add(loss, iteration());
  }
  if (task_.scores) {
    note_activity({.name = "scores", .iteration = iteration()});
    const std::vector<TaskScore> scores = task_.scores(executor());
    observer.scored(iteration(), scores);
    best_.add(-scores.front().value, iteration());
  }
  sample(observer);
}

// A kill may have come between the checkpoint that this run goes on from and its link.
void Trainer::restore_best_link() const {
  const std::filesystem::path& save = config_.output.save;
  if (!is_best() || save.empty() || !updates_.is_first_rank()) return;
  const std::filesystem::path folder = iteration_folder(save, iteration());
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::equivalent(folder, save / kBestLink, error)) {
    link_best(save, iteration());
  }
}

// By the first copy of the model; the draws depend on the run's seed alone, so that samples of different iterations
// compare. All ranks of the copy get the same logits, so a text fails on all of them or on none, and training goes on.
void Trainer::sample(TrainingObserver& observer) {
  if (updates_.mesh().data->rank() != 0) return;
  const ContinuationLimits limits{
      .count = config_.output.sample_tokens, .end = task_.samples.end_of_text, .tokens = task_.samples.tokens};
  for (const SamplePrompt& prompt : task_.samples.prompts) {
    note_activity({.name = "text sample", .iteration = iteration()});
    try {
      observer.sample(iteration(), prompt.text,
                      continue_text(executor(), *task_.model, task_.config.vocab_size, prompt.tokens, limits,
                                    {.seed = static_cast<std::uint64_t>(config_.seed)}));
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
  if (result.end != RunEnd::kComplete || iteration() == config_.train_iters) return;
  if (config_.output.early_stop == 0 || best_.since < config_.output.early_stop) return;
  result.end = RunEnd::kEarlyStop;
  const std::string best = task_.scores ? fmt::format("highest score was {:.2f}", -*best_.value)
                                        : fmt::format("lowest validation loss was {:.4f}", *best_.value);
  observer.notice(fmt::format("--early-stop {}: ends after iteration {} of {}; the {}", config_.output.early_stop,
                              iteration(), config_.train_iters, best));
}

void Trainer::save_if_due(const Requests& requests, bool ends, TrainingObserver& observer, const RunControl& control) {
  if (config_.output.save.empty()) return;
  const bool is_lasting = is_best() || ends || is_due(config_.output.save_interval, iteration());
  if (!is_lasting && !requests.save_is_due()) return;
  observer.flush();  // who goes on from the checkpoint does not report these updates again
  finish_save(observer);
  const SaveReason reason{.best = is_best(), .by_time = !is_lasting};
  if (background_ && !ends && iteration() < config_.train_iters) {
    begin_save(reason);
  } else {
    observer.saved(iteration(), save(reason));
  }
  saves_.at = control.seconds();
}

TrainingResult Trainer::run(TrainingObserver& observer, const RunControl& control) {
  std::string diverged;
  try {
    return run_updates(observer, control);
  } catch (const DivergedError& error) {
    if (!doctor_) throw;
    diverged = error.what();
  } catch (const CorpusFailure& failure) {
    save_before_failure(observer);
    // A rank that ends takes those with it that still save.
    for (Communicator* const group : {updates_.mesh().model.get(), updates_.mesh().data.get()}) group->barrier();
    const std::string kept = iteration() == 0 ? "before its first update"
                             : saves_.kept == iteration()
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
  if (!saves_.unproven) finish_save(observer);
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

void Trainer::save_before_failure(TrainingObserver& observer) {
  observer.flush();
  if (config_.output.save.empty()) return;
  const bool is_saved = saves_.kept == iteration();
  if (background_ && is_saved) {
    require_finite_loss();  // no further update tests the copy
    background_->release();
  }
  finish_save(observer);
  if (!is_saved) observer.saved(iteration(), save());
}

void Trainer::check_replicas() {
  if (config_.output.check_replicas == 0 || iteration() % config_.output.check_replicas != 0) return;
  note_activity({.name = "check of replicas", .iteration = iteration()});
  const std::string unequal = unequal_replicas(executor());
  if (unequal.empty()) {
    replicas_were_equal_ = iteration();
    return;
  }
  throw_environment_error(
      "after iteration {}, {}. They were equal after iteration {}; memory, a device or a transfer is at fault since. "
      "Nothing is saved; go on from a checkpoint of then or earlier (--load DIR --iteration N), on another machine if "
      "it happens again",
      iteration(), unequal, replicas_were_equal_);
}

TrainingResult Trainer::run_updates(TrainingObserver& observer, const RunControl& control) {
  TrainingResult result{.iterations = iteration(), .consumed_samples = batches().consumed_after(iteration())};
  double seconds = 0;
  std::int64_t tokens = 0;
  saves_.at = control.seconds();
  restore_best_link();
  if (validation_is_owed_ && validates_after(iteration())) {
    validate(observer, result);
    end_if_stalled(observer, result);
    save_if_due({}, result.end != RunEnd::kComplete, observer, control);
  }
  while (iteration() < config_.train_iters && result.end == RunEnd::kComplete) {
    const Update last = update(control);
    const IterationReport& report = last.report;
    observer.iteration(report);
    report_finished_save(observer);
    check_replicas();
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
    if (validates_after(iteration())) {
      // The sender of a signal waits; the run that goes on from here makes up for it.
      validation_is_owed_ = result.end == RunEnd::kSignal;
      if (!validation_is_owed_) validate(observer, result);
    }
    end_if_stalled(observer, result);
    save_if_due(last.requests, result.end != RunEnd::kComplete, observer, control);
  }
  finish_save(observer);
  observer.flush();
  if (seconds > 0) result.tokens_per_second = static_cast<double>(tokens) / seconds;
  return result;
}

SaveOptions Trainer::save_options(SaveReason reason) const {
  return {.run = task_.run,
          .tokenizer = config_.model.tokenizer,
          .settings = recorded_settings(config_, task_.config, task_.split_rule),
          .keep_last = config_.output.keep_last,
          .best = reason.best,
          .replaces = saves_.by_time};
}

void Trainer::note_save(SaveReason reason) {
  saves_.by_time = reason.by_time ? std::optional(iteration()) : std::nullopt;
  saves_.kept = iteration();
}

std::filesystem::path Trainer::save(SaveReason reason) {
  note_activity({.name = "checkpoint", .iteration = iteration()});
  require_finite_loss();
  const std::filesystem::path folder =
      save_checkpoint(config_.output.save, task_.config, executor().all_parameters(), executor().backend(), state(),
                      save_options(reason), &updates_.mesh());
  note_save(reason);
  goes_back_to(iteration());
  return updates_.mesh().data->rank() == 0 ? folder : std::filesystem::path();
}

void Trainer::begin_save(SaveReason reason) {
  note_activity({.name = "copy for the checkpoint", .iteration = iteration()});
  background_->begin(config_.output.save, task_.config, executor().all_parameters(), executor().backend(), state(),
                     save_options(reason), updates_.mesh());
  note_save(reason);
  saves_.unproven = iteration();
}

void Trainer::goes_back_to(std::int64_t iteration) {
  if (doctor_) doctor_->goes_back_to(iteration_folder(config_.output.save, iteration), iteration);
}

void Trainer::report_finished_save(TrainingObserver& observer) {
  if (!background_) return;
  if (const auto folder = background_->finished()) observer.saved(saves_.kept, *folder);
}

void Trainer::finish_save(TrainingObserver& observer) {
  if (!background_) return;
  note_activity({.name = "end of the checkpoint", .iteration = saves_.kept});
  if (const auto folder = background_->wait()) observer.saved(saves_.kept, *folder);
}

// A save may delete older checkpoints, so the one that replaces them must be resumable. Finite weights may be so large
// that no forward pass is finite: one micro-batch of the next samples tests that.
void Trainer::require_finite_loss() {
  const std::int64_t one_for_each_copy = executor().options().batch * updates_.mesh().data->size();
  const SampleRange next{batches().consumed_after(iteration()), one_for_each_copy};
  const LossSums losses = mean_losses(executor(), updates_.reader(), *task_.training, next);
  if (!std::isfinite(losses.total())) throw_weights_diverged("the loss");
}

}  // namespace teratron

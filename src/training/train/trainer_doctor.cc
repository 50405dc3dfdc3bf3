// Diagnosis of a loss that jumps or is not finite (--trace-numerics): the run goes back to its last good state, replays
// every update bit for bit, and compares. A replay that parts from the record says that the machine was at
// fault; one that repeats the fault says that settings or data are.
#include <utility>

#include "base/error.h"
#include "checkpoint/native/folders.h"
#include "train/trainer.h"

namespace teratron {
namespace {

// A replay hears no signal: what comes meanwhile is answered after it.
RunControl deaf_control() {
  return {.signal = [] { return 0; }};
}

std::string name_of_state(std::int64_t iteration) {
  return iteration == 0 ? "the start" : fmt::format("iteration {}", iteration);
}

// When the machine went wrong, if a run that goes on from `good` parts so.
std::string text_of_moment(const Parting& parting, std::int64_t good) {
  if (!parting.in_weights) return fmt::format("in iteration {}", parting.iteration);
  if (parting.iteration == good + 1) return "between the start of the run and its first update";
  return fmt::format("in iteration {} or after it", parting.iteration - 1);
}

}  // namespace

void Trainer::keep_as_good(std::int64_t iteration) {
  if (!doctor_) return;
  good_folder_ = iteration_folder(config_.output.save, iteration);
  doctor_->forget_until(iteration);
}

// A host that does not see the first one's disk has no checkpoint to go back to.
std::string Trainer::fault_of_going_back() const {
  std::string fault;
  try {
    if (!good_folder_.empty()) read_checkpoint_info(good_folder_);
  } catch (const std::exception& error) {
    fault = error.what();
  }
  return first_said(executor_.mesh(), std::move(fault));
}

void Trainer::go_back() {
  if (scaler_) scaler_.emplace(config_.optimizer.loss_scaling);
  if (good_folder_.empty()) {
    iteration_ = skipped_ = 0;
    return start_weights();
  }
  std::string fault;
  try {
    executor_.clear_slots();
    restore_updates(load_checkpoint(good_folder_, task_.config, executor_.all_parameters(), executor_.backend(),
                                    {.verify = verifies()}));
  } catch (const std::exception& error) {
    fault = error.what();
  }
  fault = first_said(executor_.mesh(), std::move(fault));
  if (!fault.empty()) throw_environment_error("the last good state cannot be loaded for a replay: {}", fault);
}

std::optional<Parting> Trainer::replay_until(std::int64_t iteration) {
  std::optional<Parting> parting;
  while (!parting && iteration_ < iteration) {
    Requests unheard;
    update(deaf_control(), unheard);
    parting = doctor_->parting();
  }
  return parting;
}

std::vector<SampleLoss> Trainer::losses_of_samples() {
  const Samples& samples = *task_.training;
  const std::vector<ModelTraits::Loss>& kinds = executor_.loss_kinds();
  const SampleRange all{batches_.consumed_after(iteration_), batches_.batch_size(iteration_)};
  const std::int64_t together = task_.model->traits.label_sequences;
  Communicator& copies = *executor_.mesh().data;
  note_activity({.name = "losses of the samples", .iteration = iteration_ + 1});
  SampleBatch batch = samples.make_batch(executor_.options().batch);
  std::vector<double> losses(static_cast<std::size_t>(all.count / together));
  for (std::size_t group = 0; group < losses.size(); ++group) {
    if (static_cast<int>(group) % copies.size() != copies.rank()) continue;
    const SampleRange positions{all.first + static_cast<std::int64_t>(group) * together, together};
    const LossSums sums = loss_sums(samples, positions, batch);
    const Samples::TotalWeights totals = reader_.total_weights(samples, positions);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      const double total = kinds[kind].of_labels ? totals.labels : totals.targets;
      if (!kinds[kind].is_rate && total > 0) losses[group] += sums.of_kind[kind] / total;
    }
  }
  copies.all_reduce_host(losses);
  std::vector<SampleLoss> result;
  for (const double loss : losses) {
    result.push_back({.positions = {all.first + std::ssize(result) * together, together}, .loss = loss});
  }
  return result;
}

Trainer::Diagnosis Trainer::diagnose(std::int64_t bad, TrainingObserver& observer) {
  if (!saves_.unproven) finish_save(observer);
  executor_.mesh().model->barrier();  // the checkpoint stands for all
  executor_.mesh().data->barrier();
  observer.flush();
  if (const std::string fault = fault_of_going_back(); !fault.empty()) {
    return {.text = fmt::format("No replay says why, since the last good state cannot be read: {}", fault)};
  }
  go_back();
  const std::int64_t good = iteration_;
  observer.notice(fmt::format("doctor: goes back to {} and replays {} update{}", name_of_state(good), bad - good,
                              bad - good == 1 ? "" : "s"));
  doctor_->begin_replay();
  std::optional<Parting> parting;
  std::vector<SampleLoss> losses;
  try {
    parting = replay_until(bad - 1);
    if (!parting) {
      losses = losses_of_samples();
      require_readable_corpus();
      parting = replay_until(bad);
    }
  } catch (const DivergedError&) {  // again, or otherwise
    parting = doctor_->parting();
  } catch (const CorpusFailure& failure) {
    throw_environment_error(
        "the corpus cannot be read again, so no replay says why the loss of iteration {} is at fault: {}. Nothing is "
        "saved; go on from the last checkpoint",
        bad, failure.what());
  }
  doctor_->end_replay();
  if (parting) {
    return {.text = fmt::format("A replay from {} comes to other numbers, first in iteration {}, in which {}. Neither "
                                "settings nor data do that: memory, a device or a transfer was at fault {}",
                                name_of_state(good), parting->iteration, parting->what, text_of_moment(*parting, good)),
            .is_of_machine = true};
  }
  return {.text =
              fmt::format("A replay from {} repeats it bit for bit: settings or data are at fault, not the machine.{}",
                          name_of_state(good), doctor_->account(bad, losses, *task_.training))};
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
  const Diagnosis diagnosis = diagnose(iteration_ + 1, observer);
  const std::string text = fmt::format("{}. Doctor: {}", diverged, diagnosis.text);
  if (!diagnosis.is_of_machine) throw DivergedError(text);
  throw_environment_error(
      "{}. The settings may be good as they are; go on from the last checkpoint, on another machine "
      "if it happens again",
      text);
}

}  // namespace teratron

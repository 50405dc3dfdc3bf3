#include "train/doctor/doctor.h"

#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

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

void Doctor::take(const Update& update) {
  StepNumbers numbers = numbers_of(update, updates_.executor());
  account_.add(update,
               layer_numerics(updates_.executor(), numbers.entries, update.has_samples, update.report.loss_scale));
  record_.add(std::move(numbers));
}

void Doctor::goes_on_from(const std::filesystem::path& folder, const TrainingState& state) {
  good_folder_ = folder;
  account_.begin_at(state);
}

void Doctor::goes_back_to(const std::filesystem::path& folder, std::int64_t iteration) {
  good_folder_ = folder;
  record_.forget_until(iteration);
}

// A host that does not see the first one's disk has no checkpoint to go back to.
std::string Doctor::fault_of_good_state() const {
  std::string fault;
  try {
    if (!good_folder_.empty()) read_checkpoint_info(good_folder_);
  } catch (const std::exception& error) {
    fault = error.what();
  }
  return first_said(updates_.mesh(), std::move(fault));
}

void Doctor::go_back() {
  updates_.executor().record(nullptr);  // a trace is of the run
  if (good_folder_.empty()) return updates_.begin();
  std::string fault;
  try {
    updates_.load(good_folder_);
  } catch (const std::exception& error) {
    fault = error.what();
  }
  fault = first_said(updates_.mesh(), std::move(fault));
  if (!fault.empty()) throw_environment_error("the last good state cannot be loaded for a replay: {}", fault);
}

std::optional<Parting> Doctor::replay_until(std::int64_t iteration) {
  while (updates_.iteration() < iteration) {
    Update update = updates_.compute();
    const StepNumbers* const record = record_.find(update.report.iteration);
    if (record != nullptr) {
      const StepNumbers numbers = numbers_of(update, updates_.executor());
      if (auto parting = first_parting(updates_.executor(), *record, numbers)) return parting;
    }
    updates_.apply(update);
  }
  return std::nullopt;
}

Diagnosis Doctor::diagnose(std::int64_t bad, const std::function<void(const std::string&)>& notice) {
  if (const std::string fault = fault_of_good_state(); !fault.empty()) {
    return {.text = fmt::format("No replay says why, since the last good state cannot be read: {}", fault)};
  }
  go_back();
  const std::int64_t good = updates_.iteration();
  notice(fmt::format("doctor: goes back to {} and replays {} update{}", name_of_state(good), bad - good,
                     bad - good == 1 ? "" : "s"));
  std::optional<Parting> parting;
  std::vector<SampleLoss> losses;
  try {
    parting = replay_until(bad - 1);
    if (!parting) {
      note_activity({.name = "losses of the samples", .iteration = bad});
      const BatchSchedule& batches = updates_.batches();
      losses = losses_of_each(updates_.executor(), updates_.reader(), *updates_.task().training,
                              {batches.consumed_after(bad - 1), batches.batch_size(bad - 1)});
      updates_.reader().require_readable(updates_.mesh());
      parting = replay_until(bad);
    }
  } catch (const DivergedError&) {  // again
  } catch (const CorpusFailure& failure) {
    throw_environment_error(
        "the corpus cannot be read again, so no replay says why the loss of iteration {} is at fault: {}. Nothing is "
        "saved; go on from the last checkpoint",
        bad, failure.what());
  }
  if (parting) {
    return {.text = fmt::format("A replay from {} comes to other numbers, first in iteration {}, in which {}. Neither "
                                "settings nor data do that: memory, a device or a transfer was at fault {}",
                                name_of_state(good), parting->iteration, parting->what, text_of_moment(*parting, good)),
            .is_of_machine = true};
  }
  return {.text =
              fmt::format("A replay from {} repeats it bit for bit: settings or data are at fault, not the machine.{}",
                          name_of_state(good), account_.text(bad, losses, *updates_.task().training))};
}

}  // namespace teratron

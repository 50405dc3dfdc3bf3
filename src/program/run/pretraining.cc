#include "run/pretraining.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/host/standard_streams.h"
#include "console/long_task.h"
#include "profile/pipeline_profile.h"
#include "runtime/backend_choice.h"
#include "slicing/joint_choice.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// File of the profile for micro-batches of `sequences`; empty: in the user's cache. Joint slices need several files:
// FILE-2.json, ..
fs::path profile_file(const PipelineSettings& settings, std::int64_t sequences) {
  if (settings.profile.empty() || !settings.chooses_micro_batches()) return settings.profile;
  fs::path file = settings.profile;
  const std::string name = fmt::format("{}-{}{}", file.stem().string(), sequences, file.extension().string());
  return file.replace_filename(name);
}

// Measured costs of slices, if the settings ask for them: a profile for every size of micro-batches.
std::vector<slicing::Profile> profiles_for(const TrainConfig& config, std::int64_t vocab_size, const Rank& rank,
                                           Backend& backend) {
  const PipelineSettings& settings = config.pipeline;
  const bool is_joint = settings.chooses_micro_batches();
  std::vector<slicing::Profile> profiles;
  if (!is_joint && settings.token_slices != "auto" && settings.profile.empty()) return profiles;
  ProfileRequest request = profile_request(config, vocab_size, rank.environment.ranks_are());
  for (const std::int64_t size :
       is_joint ? slicing::sizes_to_measure(request.sequences) : std::vector{request.sequences}) {
    request.sequences = size;
    const std::string what =
        is_joint ? fmt::format("measuring what slices of {} sequence{} cost", size, size == 1 ? "" : "s")
                 : "measuring what slices cost";
    profiles.push_back(profile_for(request, rank.mesh, backend, profile_file(settings, size),
                                   rank.is_first() ? show_steps(what) : ProfileProgress{}));
  }
  return profiles;
}

// Keeps the slices that a trial of the first updates chose, for the next run.
void keep_chosen_slices(Trainer& trainer, const PipelineSettings& settings, std::vector<slicing::Profile>& profiles) {
  trainer.when_slices_are_chosen([&](const slicing::ChosenSlices& chosen) {
    slicing::Profile& profile = profiles.front();
    profile.chosen.push_back(chosen);
    const fs::path file = profile_file(settings, profile.key.sequences);
    try {
      write_profile(profile, file.empty() ? cached_profile(profile.key) : file);
    } catch (const EnvironmentError& error) {  // the next run tries slices again
      report_to_user(fmt::format("warning: {}; the run goes on", error.what()));
    }
  });
}

}  // namespace

PretrainingResult pretrain(const TrainStart& start, const std::function<void(Run&)>& prepare) {
  const TrainConfig& config = start.config;
  RunLaunch launch(config);
  config.documents.options(config.model.tokenizer);  // what it lacks is reported once, before there are ranks
  const std::int64_t vocab_size = config.model.vocabulary_size();
  const TrainingData data = open_training_data(config);
  check_corpus_tokenizer(config, data);
  PretrainingResult result{.is_first_process = launch.is_first_process()};
  launch.run(to_toml(config), [&](const Rank& rank) {
    const std::unique_ptr<Backend> backend = make_backend(config.backend, rank);
    std::vector<slicing::Profile> profiles = profiles_for(config, vocab_size, rank, *backend);
    Run run({.launch = launch,
             .rank = rank,
             .backend = *backend,
             .config = config,
             .checkpoint = start.checkpoint ? &*start.checkpoint : nullptr,
             .profiles = profiles},
            make_training_task(config, data, vocab_size, rank.mesh->place().tensor));
    if (rank.is_first()) keep_chosen_slices(run.trainer(), config.pipeline, profiles);
    if (prepare) prepare(run);
    const TrainingResult training = run.run();
    const std::vector<std::int64_t> peaks = rank.peak_memory(*backend);
    if (!RunLaunch::speaks_for_process(rank)) return;
    result.training = training;
    result.peak_memory = peaks;
  });
  return result;
}

}  // namespace teratron

#include "run/pretraining.h"

#include <optional>

#include "console/long_task.h"
#include "profile/pipeline_profile.h"
#include "run/chosen_pipeline.h"
#include "runtime/backend_choice.h"

namespace teratron {
namespace {

constexpr double kLongRound = 60;  // seconds of measuring after which no slicing is measured once more

// Measured costs of slices, if the settings ask for them.
std::optional<slicing::Profile> measured_costs(const TrainStart& start, std::int64_t vocab_size, const Rank& rank,
                                               Backend& backend) {
  const TrainConfig& config = start.config;
  const PipelineSettings& settings = config.pipeline;
  const bool is_needed = chooses_pipeline(start) || settings.token_slices == "auto" || !settings.profile.empty();
  if (!is_needed) return std::nullopt;
  TrainConfig measured = config;
  if (chooses_pipeline(start) && !start.given.layout) measured.pipeline.layout.clear();
  ProfileRequest request = profile_request(measured, vocab_size, rank.environment.ranks_are());
  request.most_seconds = kLongRound;
  return profile_for(request, rank.mesh, backend, settings.profile,
                     rank.is_first() ? show_steps("measuring what slices cost") : ProfileProgress{});
}

}  // namespace

PretrainingResult pretrain(const TrainStart& start, const std::function<void(Run&)>& prepare) {
  const TrainConfig& config = start.config;
  RunLaunch launch(config);
  config.documents.options(config.model.tokenizer);      // what it lacks is reported once, before there are ranks
  const TrainingData data = open_training_data(config);  // a corpus that is not there names no tokenizer
  const std::int64_t vocab_size = config.model.vocabulary_size();
  check_corpus_tokenizer(config, data);
  PretrainingResult result{.is_first_process = launch.is_first_process()};
  launch.run(to_toml(config), [&](const Rank& rank) {
    const std::unique_ptr<Backend> backend = make_backend(config.backend, rank);
    const std::optional<slicing::Profile> profile = measured_costs(start, vocab_size, rank, *backend);
    const TrainConfig chosen =
        chooses_pipeline(start) ? with_chosen_pipeline(start, vocab_size, *profile, rank, *backend) : config;
    Run run({.launch = launch,
             .rank = rank,
             .backend = *backend,
             .config = chosen,
             .checkpoint = start.checkpoint ? &*start.checkpoint : nullptr,
             .profile = profile ? &*profile : nullptr},
            make_training_task(chosen, data, vocab_size, rank.mesh->coordinates()));
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

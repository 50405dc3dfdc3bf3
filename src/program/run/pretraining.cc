#include "run/pretraining.h"

#include <optional>

#include "base/error.h"
#include "base/host/standard_streams.h"
#include "console/long_task.h"
#include "model/family.h"
#include "plan/search/memory_wall.h"
#include "plan/search/pipeline_choice.h"
#include "profile/pipeline_profile.h"
#include "runtime/backend_choice.h"
#include "runtime/memory_table.h"
#include "runtime/ranks.h"

namespace teratron {
namespace {

constexpr double kLongRound = 60;  // seconds of measuring after which no slicing is measured once more

// The ranks of the run as devices of a cluster. Only their memory matters: their times are measured.
Cluster ranks_at_hand(const Rank& rank, Backend& backend) {
  constexpr double kUnlimited = 1e18;
  const std::optional<std::int64_t> room = room_of_rank(backend, rank.world, rank.ranks_in_this_process());
  Cluster cluster{.name = "this machine", .devices = rank.world.size()};
  cluster.device = {.name = backend.processor(), .memory = room ? static_cast<double>(*room) : kUnlimited};
  const int threads = computing_threads(backend);
  if (threads > 0) cluster.constants.push_back({"cores", static_cast<double>(threads), "this machine"});
  return cluster;
}

// EnvironmentError, as for a given pipeline: none fits into the memory that the machine has left.
plan::SearchResult choice_for_this_machine(const plan::PlanRequest& request) {
  try {
    return plan::choose_pipeline(request);
  } catch (const plan::TooLargeError& error) {
    throw EnvironmentError(error.what());
  }
}

// Whether --schedule auto or --pipeline-layout auto is given and leaves a choice: with several stages, of a model that
// continues text.
bool chooses_pipeline(const TrainStart& start) {
  return start.given.chooses() && start.config.layout.pipeline_parallel > 1 &&
         start.config.model.config.family().continues_text;
}

// The configuration with a pipeline chosen by the ranks' measured times and their memory, except for the given parts. A
// checkpoint records it as if it had been given. Every rank calls it and gets the same; the first one reports it.
// EnvironmentError: nothing fits.
TrainConfig with_chosen_pipeline(const TrainStart& start, std::int64_t vocab_size, const slicing::Profile& profile,
                                 const Rank& rank, Backend& backend) {
  GivenPipeline given = start.given;
  given.recompute = given.recompute || start.config.layout.recomputation() != Recompute::kNone;  // as it was measured
  plan::PlanRequest request = plan::pipeline_request(start.config, given, ranks_at_hand(rank, backend), vocab_size);
  request.profile = &profile;
  const plan::SearchResult result = choice_for_this_machine(request);
  if (rank.is_first()) report_to_user(plan::text_of_choice(result));
  TrainConfig config = start.config;
  config.pipeline.layout = request.config.pipeline.layout;
  return plan::with_layout(config, result.best.front().layout);
}

// Measured costs of slices, if the settings ask for them.
std::optional<slicing::Profile> measured_costs(const TrainStart& start, std::int64_t vocab_size, const Rank& rank,
                                               Backend& backend) {
  const TrainConfig& config = start.config;
  const PipelineSettings& settings = config.pipeline;
  const bool is_needed = chooses_pipeline(start) || settings.chooses_slices() || !settings.profile.empty();
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

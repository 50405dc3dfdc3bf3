#include "run/chosen_pipeline.h"

#include "base/error.h"
#include "base/host/standard_streams.h"
#include "model/family.h"
#include "plan/search/memory_wall.h"
#include "plan/search/pipeline_choice.h"
#include "runtime/memory_table.h"

namespace teratron {
namespace {

// The ranks of the run as devices of a cluster, whose memory counts and whose speed is measured.
Cluster ranks_at_hand(const Rank& rank, Backend& backend) {
  constexpr double kUnlimited = 1e18;
  const std::optional<std::int64_t> room = room_of_rank(backend, rank.world, rank.ranks_in_this_process());
  Cluster cluster{.name = "this machine", .devices = rank.world.size()};
  cluster.device = {.name = backend.processor(), .memory = room ? static_cast<double>(*room) : kUnlimited};
  const int threads = computing_threads(backend);
  if (threads > 0) cluster.constants.push_back({"cores", static_cast<double>(threads), "this machine"});
  return cluster;
}

// EnvironmentError: no pipeline fits into the memory that the machine has left, as where a given one does not.
plan::SearchResult choice_for_this_machine(const plan::PlanRequest& request) {
  try {
    return plan::choose_pipeline(request);
  } catch (const plan::TooLargeError& error) {
    throw EnvironmentError(error.what());
  }
}

}  // namespace

bool chooses_pipeline(const TrainStart& start) {
  return start.given.chooses() && start.config.layout.pipeline_parallel > 1 &&
         start.config.model.config.family().continues_text;
}

TrainConfig with_chosen_pipeline(const TrainStart& start, std::int64_t vocab_size, const slicing::Profile& profile,
                                 const Rank& rank, Backend& backend) {
  GivenPipeline given = start.given;
  given.recompute = given.recompute || start.config.layout.recomputation() != Recompute::kNone;  // as it was measured
  plan::PlanRequest request = plan::pipeline_request(start.config, given, ranks_at_hand(rank, backend), vocab_size);
  request.profile = &profile;
  const plan::SearchResult result = choice_for_this_machine(request);
  if (rank.is_first()) report_to_user(plan::text_of_choice(result));
  TrainConfig config = start.config;
  config.pipeline.layout = request.model.pipeline.layout;
  return plan::with_layout(config, result.best.front().layout);
}

}  // namespace teratron

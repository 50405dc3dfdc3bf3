// The pipeline of a training whose ranks are given (--schedule auto): the search for a layout (layout_search.h) over
// schedules, cells a stage, their layers, slices of tokens, deferred weight gradients, a shared vocabulary and, for
// every stage by itself, recomputation. None of them changes the result of training.
#pragma once

#include <string>

#include "plan/search/layout_search.h"
#include "train/config/given_pipeline.h"

namespace teratron::plan {

// `config` gives the ranks and the given parts; without --schedule auto, all but layers that are to be chosen.
// UserError: it cuts by documents, which the search does not know.
PlanRequest pipeline_request(const TrainConfig& config, const GivenPipeline& given, const Cluster& cluster,
                             std::int64_t vocab_size);

// The best pipeline first, then the best of other schedules or numbers of cells. TooLargeError: none fits into the
// memory of the cluster's devices.
SearchResult choose_pipeline(const PlanRequest& request, std::size_t runners_up = 2);

// Chooses so the pipeline of each layout that a search over meshes found, and sorts them again.
void choose_pipelines(const PlanRequest& request, SearchResult& result);

// Text for people: the chosen pipeline, its time and memory, and those of the next best.
std::string text_of_choice(const SearchResult& result);

}  // namespace teratron::plan

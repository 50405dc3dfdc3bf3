// Published runs of data/published: each a model, a cluster, a layout and measurements. Constants are fitted to one
// half of them, the fitting half, and judged by the other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/embedded_file.h"
#include "model/config.h"
#include "settings/layout_settings.h"

namespace teratron::plan {

// TOML of data/published, which the program holds: "mosaicml", ..
using PublishedFile = EmbeddedFile;
std::span<const PublishedFile> all_published_files();
std::vector<PublishedFile> published_files();  // of runs: without constants and causes

// constants.toml: what bench/fit_published.cc fitted to the fitting half, by scope and name ("Hopper saturation").
using RunConstants = std::map<std::string, double, std::less<>>;
RunConstants run_constants();
// causes.toml: why a run is missed, by its program and name.
std::map<std::string, std::string> published_causes();

struct PublishedRun {
  std::string program;  // the file's name
  std::string name, table, source, assumed;
  std::string cluster;  // a preset
  ModelConfig model;
  std::int64_t devices = 1, tokens = 0;            // tokens: of a sequence
  std::int64_t micro_batch = 1, batch = 1;         // sequences
  std::int64_t tensor = 1, stages = 1, cells = 1;  // cells: of a stage
  std::int64_t context = 1;                        // ranks that split each sequence
  double network = 1;                              // share of the preset's network that the hosts have
  bool is_ring = false;                            // ranks of `context` pass keys and values on; else they gather them
  bool sequence_parallel = false, is_fp8 = false;
  bool sums_in_fp32 = true;  // gradients of the copies
  bool is_compiled = true;   // by torch.compile
  bool loss_is_compiled = false;
  DataSharding sharding = DataSharding::kNone;
  std::vector<std::string> recompute, offload;  // parts: "block", "scores", ..; "opt-m", "residual", ..
  // Measured; those that are there.
  std::optional<double> tokens_per_second, teraflops;  // of a GPU
  std::optional<double> step_seconds, memory_gib, state_gib, activations_gib;
  bool counts_recompute = false;  // teraflops have the forward that is made again

  std::int64_t data() const { return copies() / context; }
  // Ranks that hold the same weights: copies, and ranks that split a sequence.
  std::int64_t copies() const { return devices / tensor / stages; }
  bool recomputes(std::string_view part) const;
  bool offloads(std::string_view part) const;
  // Whether it is of the fitting half: the lowest bit of XXH3 of the name is 0.
  bool is_for_fitting() const;
};

// All runs of a file, in its order. UserError: a word that is unknown.
std::vector<PublishedRun> published_runs(const PublishedFile& file);
std::string title_of(const PublishedFile& file);

}  // namespace teratron::plan

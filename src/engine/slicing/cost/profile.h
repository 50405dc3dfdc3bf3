// What the stages of a pipeline take, measured and kept on disk with what it was measured for, so that a stale one is
// never used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/schedule.h"
#include "pipeline/timing/costs.h"
#include "slicing/cost/cost_model.h"

namespace teratron::slicing {

// Everything that the time of a pass and of an update hangs on besides the slices.
struct ProfileKey {
  std::string processor;     // its model, as the system names it, and how many cores
  std::string backend;       // "cpu", ...
  std::string ranks;         // "threads", "processes" (of MPI) or "processes by address"
  std::string dtype;         // that the back end computes in: "f32", "bf16", ...
  std::string recompute;     // "none", "selective", "full"
  std::string dropout;       // "0.1 0.1": hidden, of attention
  std::string cell_layers;   // of each stage: "6,6"
  std::string settings;      // of the back end, where they are not the usual ones: "tf32"
  std::int64_t threads = 1;  // a rank
  std::int64_t hidden_size = 0, ffn_hidden_size = 0, attention_heads = 0, vocabulary = 0;  // that as padded
  std::int64_t tensor_parallel = 1, stages = 1, data_parallel = 1;
  std::int64_t sequence_parallel = 0, sharded_optimizer = 0;  // 1: yes
  std::int64_t sequences = 1, tokens = 0;                     // of a micro-batch
  std::int64_t logits_chunk = 0;

  std::int64_t unit() const {
    return sequence_parallel != 0 ? tensor_parallel : 1;
  }  // tokens that slices are multiples of
  bool operator==(const ProfileKey&) const = default;
};

// "hidden_size 512, ..." without what is 0 or empty; the same for equal keys only.
std::string text_of(const ProfileKey& key);

// A backward in two parts (pipeline/deferral.h), of a slice of a micro-batch. The weights' gradients know no context.
struct BackwardParts {
  LinearTime weights;  // milliseconds by the tokens of the slice
  LinearTime more;     // that both parts take together beyond the whole
  bool operator==(const BackwardParts&) const = default;
};

// The first stage embeds, the last one has the output projection and the loss (in its backward).
struct StageCosts {
  CostModel forward, backward;
  RelativeError forward_error, backward_error;  // on measurements left out of the fit
  // Of the same passes measured twice, by the half of the steps each: no model can be better. 0: there was one step.
  RelativeError forward_noise = {}, backward_noise = {};
  std::optional<BackwardParts> parts = {};  // nothing: not measured; a backward's parts then share it evenly

  pipeline::PassTimes times(std::int64_t length, std::int64_t context) const;  // milliseconds of a slice
  bool operator==(const StageCosts&) const = default;
};

// An iteration as it was measured with all stages at work: of one micro-batch by terapipe, of several by seq1f1b.
struct MeasuredIteration {
  std::vector<std::int64_t> slices;  // tokens
  int micro_batches = 1;
  bool held_out = false;  // of the fits
  double pipeline = 0;    // milliseconds until the last pass is done
  bool operator==(const MeasuredIteration&) const = default;
};

// What passes take in an iteration, in terms of the costs of their stages. It is more the more of the stages are at
// work at a time, where these share caches and memory, and since neither waits for the other's disturbances to end.
struct Pace {
  double alone = 1;     // one stage at a time
  double together = 1;  // all of them, all the time
  double of(double together_share) const { return alone + (together - alone) * together_share; }
  bool operator==(const Pace&) const = default;
};

// What was fastest of the likeliest ways to cut a batch, timed in a run's own updates (train/slice_trial.h), so that
// later runs do the same.
struct ChosenSlices {
  std::string schedule;                       // its name
  int micro_batches = 1;                      // of an update
  std::int64_t sequences = 0;                 // of an update, where micro-batches were chosen too; else 0
  std::vector<pipeline::MicroBatchCut> cuts;  // the last one stands for all that follow; empty: sequences run whole
  bool operator==(const ChosenSlices&) const = default;
};

struct Profile {
  ProfileKey key;
  std::vector<StageCosts> stages;
  Pace pace;
  LinearTime transfer;  // until what a stage has made is at the next one, by the tokens of the whole micro-batch
  double update = 0;    // milliseconds of an iteration after the last pass: the rest of the sums, the norm, AdamW
  std::vector<MeasuredIteration> iterations;
  std::vector<ChosenSlices> chosen;  // one for each schedule and number of micro-batches
  std::int64_t longest() const { return stages.front().forward.lengths.back(); }  // slice that it knows
  bool operator==(const Profile&) const = default;
};

// Of one pipeline and micro-batches of several sizes, of which nothing else differs; fewest sequences first.
using Profiles = std::span<const Profile>;

// Reads back exactly.
std::string to_json(const Profile& profile);

// UserError that names `path` where the text is not such a profile, or one that cannot be true (lengths that do not
// grow, times that are not positive, ...).
Profile profile_from_json(std::string_view text, const std::filesystem::path& path);

// UserError that lists what differs where the profile at `path` was measured for something else than `wanted`.
void require_key(const Profile& profile, const ProfileKey& wanted, const std::filesystem::path& path);

}  // namespace teratron::slicing

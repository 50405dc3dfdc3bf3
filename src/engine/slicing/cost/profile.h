// Measured times of the stages of a pipeline. The file on disk says what was measured, so that a stale one is refused.
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

// Everything besides the slices that the times of passes and updates depend on.
struct ProfileKey {
  std::string processor;     // its model, as the system names it, and how many cores
  std::string backend;       // "cpu", ...
  std::string ranks;         // "threads", "processes" (of MPI) or "processes by address"
  std::string dtype;         // of the back end's arithmetic: "f32", "bf16", ...
  std::string recompute;     // "none", "selective", "full"
  std::string dropout;       // "0.1 0.1": hidden, of attention
  std::string cell_layers;   // of each stage: "6,6"
  std::string settings;      // of the back end, where they are not the usual ones: "tf32"
  std::string layer;         // what a layer has beside the sizes below, where it is not GPT-2's or BERT's
  std::int64_t threads = 1;  // of a rank
  std::int64_t hidden_size = 0, ffn_hidden_size = 0, attention_heads = 0, vocabulary = 0;  // vocabulary: padded
  std::int64_t tensor_parallel = 1, stages = 1, data_parallel = 1;
  std::int64_t sequence_parallel = 0, sharded_optimizer = 0;  // 1: yes
  std::int64_t sequences = 1, tokens = 0;                     // of a micro-batch
  std::int64_t logits_chunk = 0;

  // Lengths of slices are multiples of so many tokens.
  std::int64_t unit() const { return sequence_parallel != 0 ? tensor_parallel : 1; }
  bool operator==(const ProfileKey&) const = default;
};

// "hidden_size 512, ..." without zeros and empty fields; different keys have different texts.
std::string text_of(const ProfileKey& key);

// A slice's backward in two parts (pipeline/deferral.h). The weights' part does not depend on context.
struct BackwardParts {
  LinearTime weights;  // milliseconds by the tokens of the slice
  LinearTime more;     // both parts together, less the whole; below 0, as a fit may say of short slices, it counts as 0
  bool operator==(const BackwardParts&) const = default;
};

// The first stage embeds, the last one has the output projection and the loss (in its backward).
struct StageCosts {
  CostModel forward, backward;
  RelativeError forward_error, backward_error;  // on measurements held out of the fit
  // Difference between two halves of the steps: no model can be better. 0: there was one step.
  RelativeError forward_noise = {}, backward_noise = {};
  std::optional<BackwardParts> parts = {};  // nothing: not measured; each part is then half of the backward

  pipeline::PassTimes times(std::int64_t length, std::int64_t context) const;  // milliseconds of a slice
  bool operator==(const StageCosts&) const = default;
};

// A measured iteration with all stages at work: one micro-batch by terapipe, or several by seq1f1b.
struct MeasuredIteration {
  std::vector<std::int64_t> slices;  // tokens
  int micro_batches = 1;
  bool held_out = false;  // not used by the fits
  double pipeline = 0;    // milliseconds until the last pass is done
  bool operator==(const MeasuredIteration&) const = default;
};

// Pace: measured over fitted time of a pass. It rises with the share of stages that run at once: they share caches and
// memory bandwidth.
struct Pace {
  double alone = 1;     // one stage at a time
  double together = 1;  // all of them, all the time
  double of(double together_share) const { return alone + (together - alone) * together_share; }
  bool operator==(const Pace&) const = default;
};

struct Profile {
  ProfileKey key;
  std::vector<StageCosts> stages;
  Pace pace;
  LinearTime transfer;  // until a stage's output is at the next one, by the tokens of the whole micro-batch
  double update = 0;    // milliseconds of an iteration after the last pass: the rest of the sums, the norm, AdamW
  std::vector<MeasuredIteration> iterations;
  std::int64_t longest() const { return stages.front().forward.lengths.back(); }  // measured slice
  bool operator==(const Profile&) const = default;
};

// Reads back exactly.
std::string to_json(const Profile& profile);

// UserError that names `path`: the text is no profile, or an impossible one (lengths that do not grow, passes or
// iterations that take no time, ...).
Profile profile_from_json(std::string_view text, const std::filesystem::path& path);

// UserError that lists the differences between `wanted` and the key of the profile at `path`, or says that the slices
// of this are too short.
void require_key(const Profile& profile, const ProfileKey& wanted, const std::filesystem::path& path);

}  // namespace teratron::slicing

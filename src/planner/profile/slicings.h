// The slicings of a sequence that are measured for a profile (profile/pipeline_profile.h): a few that together cover
// the plane of slice length and context.
#pragma once

#include <cstdint>
#include <vector>

namespace teratron {

struct ProfileSlicing {
  std::vector<std::int64_t> lengths;  // tokens, together the sequence
  int micro_batches = 1;              // several: for the pace when stages work together
  bool held_out = false;              // of the fits; its lengths are between those of the others
  bool is_deferred = false;           // every backward in two parts; only the times of the parts are used
  bool operator==(const ProfileSlicing&) const = default;
};

// Slicings of `tokens` tokens:
//   - even ones into 1, 2, 4 .. 32 slices, and ones that begin with 3/4, 3/8, 3/16 and 3/32 of the sequence. So t(l, 0)
//     is measured at lengths each of which is at most one and a half times the one before, from 1/16 on;
//   - three with slices from long to short, as the best ones have; these are held out;
//   - with several stages, also whole sequences with twice as many micro-batches as stages; two even slicings with as
//     many micro-batches as stages, in which stages hardly ever wait; and three with deferred weight gradients.
// Slices are at least 1/32 of the sequence, or 16 tokens of a short one. All lengths are multiples of `unit`, as
// `tokens` is, and lie on the grid of the slices that will be chosen (slice_grid) if that divides the sequence.
// UserError: fewer than 8 units.
std::vector<ProfileSlicing> profile_slicings(std::int64_t tokens, int stages, std::int64_t unit = 1);

}  // namespace teratron

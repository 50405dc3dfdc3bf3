// Which slicings of a sequence are measured for a profile (profile/pipeline_profile.h): few, that cover the plane of
// slice length and context between them.
#pragma once

#include <cstdint>
#include <vector>

namespace teratron {

struct ProfileSlicing {
  std::vector<std::int64_t> lengths;  // tokens, together the sequence
  int micro_batches = 1;              // several: for the pace at which stages work together
  bool held_out = false;              // of the fits: its lengths are between those of the others
  bool is_deferred = false;           // every backward in two parts, whose times are all that counts
  bool operator==(const ProfileSlicing&) const = default;
};

// Even slicings into 1, 2, 4 .. 32, and ones that begin with 3/4, 3/8, 3/16 and 3/32 of the sequence, so that t(l, 0)
// is known at lengths no further apart than by half; none shorter than 1/32 of the sequence, or 16 tokens of a short
// one. Slicings from long to short, as the best ones are, are held out. With several stages, whole sequences come again
// with twice as many micro-batches as there are stages, two even slicings with as many, where hardly a stage ever
// waits, and three with deferred weight gradients. All lengths are multiples of `unit`, as `tokens` is, and on the grid
// of the slices that will be chosen (slice_grid), where it divides the sequence. UserError for fewer than 8 units.
std::vector<ProfileSlicing> profile_slicings(std::int64_t tokens, int stages, std::int64_t unit = 1);

}  // namespace teratron

// Published speeds of TeraPipe's runs (arXiv 2102.07988): layers alone on p3.16xlarge, 2048 tokens a sequence.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace teratron::plan::terapipe {

inline constexpr std::int64_t kTokens = 2048;
inline constexpr std::int64_t kGranularity = 8;  // tokens between the boundaries that its slicer may cut at

// A row of Table 1 with its bars of Figure 5. The seconds and the slices are the supplement's; of some settings a
// second source has them.
struct Setting {
  int number;
  const char* preset;
  std::int64_t stages, tensor, data, sequences;  // sequences: of a copy of the model
  double whole, sliced;                          // seconds of an iteration without and with slices
  bool is_second_hand;                           // these
  double speed_up;                               // section 4.1
  std::vector<std::int64_t> slices;              // of a sequence, found by the paper's program
  bool are_slices_second_hand;
  // Sequences of a micro-batch, cut together (section 3.4). The supplement's schemes that were at hand have 1; another
  // number was chosen by both times.
  std::int64_t together = 1;
};
const std::vector<Setting>& settings();  // ten, in order
const Setting& setting(int number);

// Section 4.2, Figure 6: how many times as long the best even slices take as the slicer's, of 1, 2, 4, .. `most` of
// them.
// `seconds`: of these numbers of even slices, by a second source of the supplement.
struct Ablation {
  int setting, most;
  double times;
  std::vector<std::pair<int, double>> seconds;
};
const std::vector<Ablation>& ablations();

// Section 4.3, Figure 7: setting 5 with longer sequences, and as many of them as fit.
struct LongSequences {
  std::int64_t tokens, sequences;
  double whole, sliced, speed_up;
};
inline constexpr LongSequences kLongSequences[] = {
    {4096, 8, 2.526, 0.913, 2.76}, {6144, 4, 3.754, 0.756, 4.97}, {8192, 2, 4.978, 0.636, 7.83}};

// Section 3.2, Figure 3: the forward of a layer of the 1B on one V100 takes the same time for any number of tokens up
// to this one.
inline constexpr std::int64_t kFlatTokens = 256;

}  // namespace teratron::plan::terapipe

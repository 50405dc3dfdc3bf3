// Published speeds of Megatron-LM's runs (arXiv 1909.08053). Models are presets (model/config.h): those of the
// scaling study are Table 1's, those that were trained to the end Table 2's.
#pragma once

#include <cstdint>
#include <string_view>

namespace teratron::plan::megatron {

inline constexpr std::int64_t kVocabulary = 51200, kSequence = 1024, kMicroBatch = 8;  // section 5.1
inline constexpr std::int64_t kUpdates = 300'000, kUpdatesAnEpoch = 68'507;            // of 512 sequences

inline constexpr double kTeraflops = 39, kShareOfPeak = 30;  // section 1: the 1.2B on one V100
inline constexpr double kPetaflops = 15.1;                   // section 1: the 8.3B on 512

struct WeakScaling {
  std::string_view preset;
  std::int64_t tensor;
  double alone, copies;  // per cent: of 1 copy (batch 8), of 64 (batch 512)
};
inline constexpr WeakScaling kWeakScaling[] = {
    {"1.2B", 1, 100, 96}, {"2.5B", 2, 95, 83}, {"4.2B", 4, 82, 79}, {"8.3B", 8, 77, 74}};  // Figure 5

struct Heads {
  std::int64_t heads;
  double share;  // per cent
};
inline constexpr Heads kHeads[] = {{16, 82}, {24, 80}, {32, 77}};  // Table 7: the 8.3B, 8-way

struct StrongScaling {
  std::int64_t tensor;
  double speed_up;
};
inline constexpr StrongScaling kStrongScaling[] = {{1, 1.0}, {2, 1.64}, {4, 2.34}, {8, 2.98}};  // Table 8: the 1.2B

struct TrainedModel {
  std::string_view preset;
  std::int64_t tensor, data;
  double days_an_epoch;
};
// Table 2, on 64, 128 and 512 GPUs. How many ways each was split, it does not say: as in Figure 5, by the batch of 512.
inline constexpr TrainedModel kTrained[] = {
    {"355M", 1, 64, 0.86}, {"2.5B", 2, 64, 2.27}, {"8.3B-24-heads", 8, 64, 2.10}};

inline constexpr double kDaysOfFirstVersion = 9.2, kZettaflopOfFirstVersion = 12;  // the 8.3B's 300k updates

}  // namespace teratron::plan::megatron

// Published speeds of zero-bubble pipelines (arXiv 2401.10241), whose backward is in two parts: Tables 3 and 4.
#pragma once

#include <cstdint>
#include <string_view>

namespace teratron::plan::zero_bubble {

// A stage has as many layers as any other, with the embedding and the head counted as one each. A stage a GPU.
struct Model {
  std::string_view name;
  std::int64_t layers, heads, hidden, stages, micro_batch;
};
inline constexpr Model kModels[] = {{"1.5B", 22, 24, 2304, 8, 6},
                                    {"6.2B", 30, 32, 4096, 8, 3},
                                    {"14.6B", 46, 40, 5120, 16, 1},
                                    {"28.3B", 62, 48, 6144, 32, 1}};
inline constexpr std::int64_t kTokens = 1024;

// Sequences a second and GPU. ZB-1p may hold as many activations as 1F1B; 1F1B-I has a layer a cell.
struct Run {
  Model model;
  std::int64_t micro_batches;
  double whole, interleaved, one_p;  // 1F1B, 1F1B-I, ZB-1p
};
inline constexpr Run kRuns[] = {
    {kModels[0], 24, 11.8, 13.1, 12.9}, {kModels[0], 32, 12.5, 13.4, 13.4},  {kModels[0], 64, 13.6, 13.9, 14.2},
    {kModels[1], 24, 3.50, 4.01, 3.88}, {kModels[1], 32, 3.70, 4.08, 4.00},  {kModels[1], 64, 4.03, 4.19, 4.20},
    {kModels[2], 48, 1.40, 1.54, 1.61}, {kModels[2], 64, 1.49, 1.59, 1.67},  {kModels[2], 128, 1.64, 1.66, 1.76},
    {kModels[3], 96, 0.76, 0.82, 0.87}, {kModels[3], 128, 0.80, 0.85, 0.90}, {kModels[3], 256, 0.88, 0.90, 0.96}};

}  // namespace teratron::plan::zero_bubble

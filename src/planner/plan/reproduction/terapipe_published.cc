#include "plan/reproduction/terapipe_published.h"

namespace teratron::plan::terapipe {
namespace {

std::vector<std::int64_t> repeated(std::vector<std::pair<int, std::int64_t>> runs) {
  std::vector<std::int64_t> lengths;
  for (const auto& [count, length] : runs) lengths.insert(lengths.end(), static_cast<std::size_t>(count), length);
  return lengths;
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {1, "gpt3-1B", 24, 1, 8, 16, 1.517, 1.254, false, 1.21, {776, 640, 632}, true},
      {2, "gpt3-1B", 12, 8, 2, 36, 1.018, 1.018, true, 1.00, {2048}, false},
      {3, "gpt3-1B", 24, 8, 1, 72, 0.913, 0.913, false, 1.00, {2048}, false},
      {4, "gpt3-13B", 20, 8, 2, 16, 2.637, 1.891, true, 1.40, {1024, 1024}, true, 2},
      {5, "gpt3-13B", 40, 8, 1, 32, 1.863, 1.328, false, 1.40, {704, 688, 656}, false},
      {6, "gpt3-44B", 96, 1, 4, 2, 13.319, 7.103, false, 1.88, repeated({{26, 64}, {6, 56}, {1, 48}}), true},
      {7, "gpt3-44B", 24, 8, 2, 4, 4.311, 2.771, true, 1.56, {368, 384, 384, 368, 256, 288}, true},
      {8, "gpt3-44B", 48, 8, 1, 8, 2.662, 1.111, false, 2.40, {384, 384, 368, 320, 296, 296}, false},
      {9, "gpt3-175B", 96, 4, 1, 2, 9.990, 1.481, false, 6.75, repeated({{4, 120}, {6, 112}, {8, 104}, {1, 64}}),
       false},
      {10, "gpt3-175B", 48, 8, 1, 2, 5.822, 1.160, false, 5.02, repeated({{16, 128}}), true},
  };
  return all;
}

const std::vector<Ablation>& ablations() {
  static const std::vector<Ablation> both = {
      {8, 16, 1.12, {{4, 1.241}, {8, 1.255}, {16, 1.241}}},
      {9, 128, 1.04, {{4, 2.902}, {8, 1.892}, {16, 1.547}, {32, 1.593}, {64, 2.227}, {128, 3.252}}},
  };
  return both;
}

const Setting& setting(int number) { return settings().at(static_cast<std::size_t>(number - 1)); }

}  // namespace teratron::plan::terapipe

// Published runs of Seq1F1B (arXiv 2406.03488). Its tables were not at hand; these are what its authors keep beside
// their program (github.com/thunlp/Seq1F1B, commit ef3cbe4): a table of the 7B's throughput and the bars of the figure
// of memory, whose heights were read from the drawing's own numbers. Cut in four, slices of equal operations, two
// virtual stages where stages are interleaved (exp2.sh); flash attention, rotary positions, an output projection of its
// own, sequence parallelism, no dropout, no recompute, sequences one at a time (run.sh).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "pipeline/generators.h"

namespace teratron::plan::seq1f1b {

struct Method {
  std::string_view name;
  pipeline::ScheduleKind schedule;
  bool is_sliced, is_interleaved;
};
enum Place { k1F1B, k1F1BI, kSeq1F1B, kSeq1F1BI };
inline constexpr std::array kMethods = {
    Method{"1F1B", pipeline::ScheduleKind::k1F1B, false, false},
    Method{"1F1B-I", pipeline::ScheduleKind::kInterleaved, false, true},
    Method{"Seq1F1B", pipeline::ScheduleKind::kSeq1F1B, true, false},
    Method{"Seq1F1B-I", pipeline::ScheduleKind::kSeq1F1BInterleaved, true, true},
};
inline constexpr int kSlices = 4, kVirtualStages = 2;

// exp.sh has the sizes, and of the 30B the ranks. The others' ranks follow from the figures: the 2.7B's memory grows by
// 22.9 GiB in 8192 tokens, as it does without tensor parallelism; the 7B's rate by 1F1B is 1.15 times as high with 16
// micro-batches as with 8, which four stages explain.
struct Model {
  std::string_view name;
  std::int64_t layers, hidden, heads, tensor, stages;

  std::int64_t devices() const { return tensor * stages; }
};
inline constexpr Model kModels[] = {
    {"2.7B", 32, 2560, 32, 1, 8}, {"7B", 32, 4096, 32, 8, 4}, {"13B", 40, 5120, 40, 8, 4}, {"30B", 64, 6144, 64, 8, 8}};
inline constexpr Model kOfThroughput = kModels[1];

using PerMethod = std::array<double, kMethods.size()>;  // in the order of kMethods; 0: out of memory

struct Throughput {
  std::int64_t tokens, micro_batches;
  PerMethod tokens_a_second;  // of all GPUs
};
// "32x7b zhihu_throughput.tex".
inline constexpr Throughput kThroughput[] = {
    {32768, 8, {48189, 52964, 53485, 47232}}, {32768, 16, {55333, 56304, 55765, 46195}},
    {65536, 8, {37343, 41677, 43297, 40908}}, {65536, 16, {43063, 44712, 33367, 40990}},
    {131072, 8, {0, 0, 30392, 30023}},        {131072, 16, {0, 0, 31584, 30362}}};
// Whether the table has two rates that exclude each other: for Seq1F1B with 65536 tokens and 16 micro-batches it also
// has 123.05 TFLOP/s, which are 42.7 thousand tokens a second by the operations of all its other rows.
constexpr bool contradicts_itself(const Throughput& row, std::size_t method) {
  return row.tokens == 65536 && row.micro_batches == 16 && method == kSeq1F1B;
}

struct Memory {
  Model model;
  std::int64_t tokens;
  PerMethod gib;  // that PyTorch reserved
};
// "seq1f1b_memory.svg".
inline constexpr Memory kMemory[] = {
    {kModels[0], 16384, {51.4, 70.95, 29.85, 29.7}}, {kModels[0], 24576, {74.3, 0, 41.45, 41.9}},
    {kModels[0], 32768, {0, 0, 53.1, 54.45}},        {kModels[1], 32768, {28.0, 34.2, 18.9, 16.35}},
    {kModels[1], 65536, {51.4, 62.9, 34.3, 28.45}},  {kModels[1], 131072, {0, 0, 69.8, 57.55}},
    {kModels[2], 32768, {44.2, 53.25, 29.7, 25.8}},  {kModels[2], 49152, {64.3, 76.45, 42.35, 35.9}},
    {kModels[2], 65536, {66.85, 0, 51.6, 42.95}},    {kModels[3], 32768, {71.4, 0, 37.6, 38.65}},
    {kModels[3], 49152, {0, 0, 54.7, 55.55}},        {kModels[3], 65536, {0, 0, 67.5, 66.9}}};

}  // namespace teratron::plan::seq1f1b

// The scaling studies of the Megatron-LM paper (section 5.1 and Appendix D; Tables 1, 7 and 8) at another size: the
// same models with every dimension divided, on ranks that are threads. Efficiency is speed per core against one rank on
// one core.
#pragma once

#include <string>
#include <vector>

#include "comm/mesh.h"
#include "model/config.h"

namespace teratron {

struct ScalingSizes {
  // The paper's sizes divided by these: head size 96, layers 40 to 72, vocabulary 51200, sequences of 1024.
  std::int64_t head_size_divisor = 4, layers_divisor = 20, vocab_divisor = 10, sequence_divisor = 4;
  std::int64_t batch = 4;   // sequences an update of each copy of the model
  std::int64_t copies = 2;  // data-parallel ranks in the second half of Table 1; the paper has 64
  std::int64_t most_tensor_ranks = 8;
  bool sequence_parallel = false;
  Recompute recompute = Recompute::kNone;
};

struct ScalingRow {
  std::string study;      // "weak", "weak with data parallelism", "heads", "strong"
  std::string paper_row;  // what the paper ran: "8.3B on 8 GPUs"
  double paper = 0;       // its figure: an efficiency, or for "strong" a speed-up
  ModelConfig model;
  MeshShape mesh;
  std::int64_t batch = 0, sequence = 0;
};

// The rows in the paper's order; those that need more tensor-parallel ranks than asked for are left out. The first is
// the one rank that all are compared with.
std::vector<ScalingRow> scaling_rows(const ScalingSizes& sizes);

struct ScalingResult {
  std::vector<double> seconds;                         // of each update
  double flops = 0;                                    // of one update: those of the model, nothing recomputed
  std::int64_t planned_bytes = 0, measured_bytes = 0;  // a rank; measured: the process's peak over its ranks
};

// Trains the row's model on random tokens for some updates, after one that is not counted, in a process of its own.
ScalingResult measure(const ScalingRow& row, const ScalingSizes& sizes, int updates, int cores);

}  // namespace teratron

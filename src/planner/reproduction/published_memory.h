// Bytes of a GPU in a published run, counted in closed form: nothing is fitted to memory.
#pragma once

#include "reproduction/published_runs.h"
#include "train/config/config.h"

namespace teratron::plan {

// Weights, gradients, the optimizer's state; by FSDP also gathered weights. Of several stages: one without the ends.
double state_bytes_of(const PublishedRun& run);
// Activations of the first stage; of runs by FSDP also the loss's memory. Those runs report the bytes that PyTorch's
// allocator reserved: blocks of one stream serve no other, and a hole serves only what fits into it.
double activation_bytes_of(const PublishedRun& run);

// All bytes of the fullest rank of Megatron-LM's program, which keeps activations: 18 a parameter; 34 a token and
// column of a layer's activations (arXiv 2205.05198, section 4), and 8 for each of a head's, of which every rank keeps
// sines and cosines for queries and keys; of slices, keys and values of whole sequences and, once, their gradients;
// logits in 16 bits, in fp32 and their gradient.
double bytes_by_megatron(const TrainConfig& config);

}  // namespace teratron::plan

// Transfers between the parts of a parameter, on the tensor-parallel ranks of one stage, and the whole tensor of a
// file, in pieces of a few MB.
#pragma once

#include "checkpoint/safetensors/tensor_stream.h"
#include "comm/communicator.h"
#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

// Whether one rank has all of a parameter: it is not split, or over a group of one.
inline bool lies_whole(const Parameter& parameter) { return !parameter.is_split() || parameter.group.size == 1; }

// Every rank calls it with its part of one of the parameter's tensors (value or slot); `sink` receives the whole, in
// order, on rank 0 alone. Rank 0 takes device memory of one piece to receive into.
void gather_tensor(const Parameter& parameter, TensorRef part, Backend& backend, Communicator& tensor_group,
                   const ByteSink& sink);
// Rank 0 may call this one, with memory for the whole; the others call the function above.
void gather_tensor(const Parameter& parameter, TensorRef part, Backend& backend, Communicator& tensor_group,
                   std::span<std::byte> whole);

// Sends from the first rank of another stage's tensor-parallel group to stage 0's, over `pipeline`: the stage gathers
// into what sending_pieces returns, stage 0 receives the same bytes in `sink`. Each takes device memory of one piece.
ByteSink sending_pieces(const Parameter& parameter, DType dtype, Backend& backend, Communicator& pipeline);
void receive_pieces(const Parameter& parameter, DType dtype, Backend& backend, Communicator& pipeline,
                    const ByteSink& sink);

// Fills this rank's part from the bytes of the whole, converted from `dtype`; padding rows become zero. Every rank
// reads for itself.
void load_tensor_part(const Parameter& parameter, TensorRef part, Backend& backend, std::span<const std::byte> whole,
                      DType dtype);

}  // namespace teratron

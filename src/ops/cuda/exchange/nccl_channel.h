// Channels between GPUs by NCCL, which is loaded when it is first asked for, so that programs built with it start on
// machines that have none. nccl_absent.cc stands in where its header was not found at build time.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "tensor/communication_stream.h"

namespace teratron::cuda {

// Whether NCCL can be used; where it was built in but is not installed, says so once on standard error.
bool nccl_is_available();

std::string make_nccl_id();
// Everyone of the group calls it, with the stream's device current. EnvironmentError with NCCL's own words.
std::unique_ptr<CommunicationStream::Channel> open_nccl_channel(cudaStream_t stream, const std::string& id, int rank,
                                                                int size);

}  // namespace teratron::cuda

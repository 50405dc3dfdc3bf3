// Channels between GPUs by NCCL. The library is loaded when it is first needed, so programs start on machines without
// it. A build without NCCL's header compiles nccl_absent.cc instead.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "tensor/communication_stream.h"

namespace teratron::cuda {

// Whether NCCL can be used. If it was compiled in but cannot be loaded, one warning goes to standard error.
bool nccl_is_available();

std::string make_nccl_id();
// Every rank of the group calls it, with the stream's device current. EnvironmentError with NCCL's message.
std::unique_ptr<CommunicationStream::Channel> open_nccl_channel(cudaStream_t stream, const std::string& id, int rank,
                                                                int size);

}  // namespace teratron::cuda

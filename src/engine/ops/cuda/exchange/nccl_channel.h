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

// All channels of a back end: groups of GPUs, as NCCL has them. They are never destroyed, since that waits for members
// that may be gone, and a run makes three to five.
class NcclChannels : public OpenChannels {
 public:
  // Every rank of the group calls it, with the stream's device current. EnvironmentError with NCCL's message.
  virtual std::unique_ptr<CommunicationStream::Channel> open(cudaStream_t stream, const std::string& id, int rank,
                                                             int size) = 0;
};
std::shared_ptr<NcclChannels> make_nccl_channels();

}  // namespace teratron::cuda

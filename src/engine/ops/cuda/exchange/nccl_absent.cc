// Replaces nccl_channel.cc in a build without NCCL: no device has channels.
#include "base/error.h"
#include "ops/cuda/exchange/nccl_channel.h"

namespace teratron::cuda {

bool nccl_is_available() { return false; }

std::string make_nccl_id() { throw InternalError("this program was built without NCCL"); }

std::shared_ptr<NcclChannels> make_nccl_channels() { return nullptr; }

}  // namespace teratron::cuda

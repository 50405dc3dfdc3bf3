// Stands in for NVIDIA's header of this name, as cuda_runtime.h beside it does: as much of NCCL as the CUDA back end
// uses. nccl/fake_nccl.cc has the functions.
#pragma once

#include <cstddef>

#include "cuda_runtime.h"

using ncclComm_t = struct ncclComm*;
constexpr std::size_t kNcclUniqueIdBytes = 128;
struct ncclUniqueId {
  char internal[kNcclUniqueIdBytes];
};
enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6
};
enum ncclDataType_t { ncclInt8 = 0 };

extern "C" {
#pragma GCC visibility push(default)
ncclResult_t ncclGetVersion(int* version);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRank(ncclComm_t* group, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommAbort(ncclComm_t group);
ncclResult_t ncclCommGetAsyncError(ncclComm_t group, ncclResult_t* error);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* values, std::size_t count, ncclDataType_t type, int to, ncclComm_t group,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void* values, std::size_t count, ncclDataType_t type, int from, ncclComm_t group,
                      cudaStream_t stream);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t group);
#pragma GCC visibility pop
}

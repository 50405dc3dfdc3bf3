#include "ops/cuda/exchange/nccl_channel.h"

#include <nccl.h>

#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/host/shared_library.h"
#include "base/host/standard_streams.h"

namespace teratron::cuda {
namespace {

// The entry points that are used, by their names in NCCL's documentation without the prefix.
struct Nccl {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) init_rank;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclCommGetAsyncError) get_async_error;

  void require(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    throw_environment_error("NCCL failed: {}: {} ({}); NCCL_DEBUG=INFO in the environment makes it say more", what,
                            get_error_string(result), get_last_error(nullptr));
  }
};

Nccl load_nccl() {
  const SharedLibrary library("NCCL", {"libnccl.so.2", TERATRON_NCCL_LIBRARY},
                              "GPUs of different processes will exchange through the hosts' memory, which is slow; "
                              "install it, or name its folder in LD_LIBRARY_PATH");
  Nccl nccl = {};
  library.find("ncclGetUniqueId", nccl.get_unique_id);
  library.find("ncclCommInitRank", nccl.init_rank);
  library.find("ncclGroupStart", nccl.group_start);
  library.find("ncclGroupEnd", nccl.group_end);
  library.find("ncclSend", nccl.send);
  library.find("ncclRecv", nccl.receive);
  library.find("ncclGetErrorString", nccl.get_error_string);
  library.find("ncclGetLastError", nccl.get_last_error);
  library.find("ncclCommGetAsyncError", nccl.get_async_error);
  return nccl;
}

// Null where it cannot be used.
const Nccl* nccl() {
  static const std::optional<Nccl> loaded = []() -> std::optional<Nccl> {
    try {
      return load_nccl();
    } catch (const EnvironmentError& error) {
      report_to_user(fmt::format("warning: {}", error.what()));
      return std::nullopt;
    }
  }();
  return loaded ? &*loaded : nullptr;
}

class NcclChannel final : public CommunicationStream::Channel {
 public:
  NcclChannel(cudaStream_t stream, const ncclUniqueId& id, int rank, int size) : stream_(stream) {
    nccl()->require(nccl()->init_rank(&group_, size, id, rank), "making a group of GPUs");
  }

  void exchange(std::span<const Piece> sends, std::span<const Piece> receives) override {
    ncclResult_t result = ncclSuccess;  // of what was queued earlier: a link that broke
    nccl()->require(nccl()->get_async_error(group_, &result), "its state");
    nccl()->require(result, "an earlier exchange");
    nccl()->require(nccl()->group_start(), "an exchange");
    for (const Piece& piece : sends) {
      if (result != ncclSuccess) break;
      result = nccl()->send(piece.memory, static_cast<std::size_t>(piece.bytes), ncclInt8, piece.rank, group_, stream_);
    }
    for (const Piece& piece : receives) {
      if (result != ncclSuccess) break;
      result =
          nccl()->receive(piece.memory, static_cast<std::size_t>(piece.bytes), ncclInt8, piece.rank, group_, stream_);
    }
    const ncclResult_t end = nccl()->group_end();
    nccl()->require(result, "an exchange");
    nccl()->require(end, "an exchange");
  }

 private:
  const cudaStream_t stream_;
  ncclComm_t group_ = nullptr;  // never destroyed: that waits for all members, who may be gone, and a run makes three
};

}  // namespace

bool nccl_is_available() { return nccl() != nullptr; }

std::string make_nccl_id() {
  ncclUniqueId id;
  nccl()->require(nccl()->get_unique_id(&id), "naming a group of GPUs");
  return {id.internal, sizeof(id.internal)};
}

std::unique_ptr<CommunicationStream::Channel> open_nccl_channel(cudaStream_t stream, const std::string& id, int rank,
                                                                int size) {
  ncclUniqueId unique;
  check_equal(id.size(), sizeof(unique.internal), "bytes of a group's id");
  std::memcpy(unique.internal, id.data(), id.size());
  return std::make_unique<NcclChannel>(stream, unique, rank, size);
}

}  // namespace teratron::cuda

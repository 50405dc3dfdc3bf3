#include "ops/cuda/exchange/nccl_channel.h"

#include <nccl.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/host/shared_library.h"
#include "base/host/standard_streams.h"

namespace teratron::cuda {
namespace {

// The entry points that are used, by their names in NCCL's documentation without the prefix.
struct Nccl {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) init_rank;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclCommGetAsyncError) get_async_error;
  int version;

  std::string text_of(ncclResult_t result, std::string_view what) const {
    return fmt::format("NCCL {}.{}.{} failed: {}: {} ({}); NCCL_DEBUG=INFO in the environment makes it say more",
                       version / 10000, version / 100 % 100, version % 100, what, get_error_string(result),
                       get_last_error(nullptr));
  }
  void require(ncclResult_t result, std::string_view what) const {
    if (result != ncclSuccess) throw EnvironmentError(text_of(result, what));
  }
};

Nccl load_nccl() {
  const SharedLibrary library("NCCL", {"libnccl.so.2", TERATRON_NCCL_LIBRARY},
                              "GPUs of different processes will exchange through the hosts' memory, which is slow; "
                              "install it, or name its folder in LD_LIBRARY_PATH");
  Nccl nccl = {};
  library.find("ncclGetUniqueId", nccl.get_unique_id);
  library.find("ncclCommInitRank", nccl.init_rank);
  library.find("ncclCommAbort", nccl.abort);
  library.find("ncclGroupStart", nccl.group_start);
  library.find("ncclGroupEnd", nccl.group_end);
  library.find("ncclSend", nccl.send);
  library.find("ncclRecv", nccl.receive);
  library.find("ncclGetErrorString", nccl.get_error_string);
  library.find("ncclGetLastError", nccl.get_last_error);
  library.find("ncclCommGetAsyncError", nccl.get_async_error);
  decltype(&ncclGetVersion) get_version = nullptr;
  library.find("ncclGetVersion", get_version);
  nccl.require(get_version(&nccl.version), "its version");
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

class NcclGroups final : public NcclChannels, public std::enable_shared_from_this<NcclGroups> {
 public:
  std::unique_ptr<CommunicationStream::Channel> open(cudaStream_t stream, const std::string& id, int rank,
                                                     int size) override;
  std::string fault() override;
  void abort() noexcept override;

  void check_not_aborted() const {
    if (aborted_) throw EnvironmentError("the channels between GPUs were closed, since a rank failed");
  }

 private:
  std::mutex mutex_;
  std::vector<ncclComm_t> groups_;
  std::atomic<bool> aborted_ = false;
};

std::string NcclGroups::fault() {
  const std::lock_guard lock(mutex_);
  for (const ncclComm_t group : groups_) {
    ncclResult_t result = ncclSuccess;
    const ncclResult_t asked = nccl()->get_async_error(group, &result);
    if (asked != ncclSuccess) result = asked;
    if (result != ncclSuccess) return nccl()->text_of(result, "an exchange that was under way");
  }
  return "";
}

// Aborting a group frees memory of the device, which may wait for other groups' messages. All of them are therefore
// aborted as one group of calls: NCCL 2.22 and later end the messages of all first.
void NcclGroups::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (aborted_.exchange(true) || groups_.empty()) return;
  nccl()->group_start();
  for (const ncclComm_t group : groups_) nccl()->abort(group);
  nccl()->group_end();
  groups_.clear();
}

class NcclChannel final : public CommunicationStream::Channel {
 public:
  NcclChannel(std::shared_ptr<const NcclGroups> all, cudaStream_t stream, ncclComm_t group)
      : all_(std::move(all)), stream_(stream), group_(group) {}

  void exchange(std::span<const Piece> sends, std::span<const Piece> receives) override {
    all_->check_not_aborted();
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
  const std::shared_ptr<const NcclGroups> all_;
  const cudaStream_t stream_;
  const ncclComm_t group_;
};

std::unique_ptr<CommunicationStream::Channel> NcclGroups::open(cudaStream_t stream, const std::string& id, int rank,
                                                               int size) {
  check_not_aborted();
  ncclUniqueId unique;
  check_equal(id.size(), sizeof(unique.internal), "bytes of a group's id");
  std::memcpy(unique.internal, id.data(), id.size());
  ncclComm_t group = nullptr;
  nccl()->require(nccl()->init_rank(&group, size, unique, rank), "making a group of GPUs");
  const std::lock_guard lock(mutex_);
  groups_.push_back(group);
  return std::make_unique<NcclChannel>(shared_from_this(), stream, group);
}

}  // namespace

bool nccl_is_available() { return nccl() != nullptr; }

std::string make_nccl_id() {
  ncclUniqueId id;
  nccl()->require(nccl()->get_unique_id(&id), "naming a group of GPUs");
  return {id.internal, sizeof(id.internal)};
}

std::shared_ptr<NcclChannels> make_nccl_channels() { return std::make_shared<NcclGroups>(); }

}  // namespace teratron::cuda

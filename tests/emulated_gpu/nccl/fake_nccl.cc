// NCCL for ranks that are processes, each with an emulated GPU whose streams are late: a library of the name
// libnccl.so.2 that moves bytes through local sockets. It behaves as the real one where that can stop a program:
//   - a group of ranks is made when all have come, and the first message of a pair holds up the HOST at the end of its
//     group of calls until both ranks have made theirs (transport.cc of NCCL connects there);
//   - later messages are work of a stream. They move all at the same time within a group of calls, and spin until they
//     are done or their group is aborted: a peer that is gone is not noticed, as through NVLink;
//   - aborting frees memory, which waits for all streams. Groups that are aborted within ncclGroupStart() and
//     ncclGroupEnd() are all told first, as since NCCL 2.22; one after the other, they may wait for each other for
//     ever.
// Variables of the environment ask for faults:
//   FAKE_NCCL_FAIL_CALL=N     ncclSend(), ncclRecv() number N of this process fails
//   FAKE_NCCL_BREAK_AFTER=N   when N bytes have moved here, messages spin and the group has an asynchronous error
//   FAKE_NCCL_SEES_THE_GONE=1 a peer that is gone is an asynchronous error, as through a network
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulated_gpu/nccl/link.h"

namespace teratron::fake_nccl {
namespace {

constexpr std::size_t kGroupBytes = std::size_t{2} << 20, kLinkBytes = std::size_t{1} << 20;  // of the device
constexpr int kVersion = 22809;

long number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

struct Message {
  ncclComm_t group;
  bool sends;
  int peer;
  std::byte* memory;
  std::size_t bytes;
  cudaStream_t stream;
};

thread_local int depth = 0;  // of ncclGroupStart()
thread_local std::vector<Message> messages;
thread_local std::vector<ncclComm_t> dying;

}  // namespace
}  // namespace teratron::fake_nccl

using namespace teratron::fake_nccl;  // NOLINT: the rest of it

struct ncclComm {
  std::string name;
  int rank = 0, size = 0, listener = -1;
  std::atomic<bool> aborted = false;
  std::atomic<ncclResult_t> error = ncclSuccess;
  std::atomic<std::uint64_t> moved = 0;
  std::map<int, int> to, from, arrived;  // sockets by the other end's rank; arrived: of no receive yet
  std::vector<void*> memory;

  std::string address_of(int member) const { return name + "-" + std::to_string(member); }
  bool take(std::size_t bytes) {
    void* taken = nullptr;
    if (cudaMalloc(&taken, bytes) != cudaSuccess) return false;
    memory.push_back(taken);
    return true;
  }
  void free_memory() {
    for (void* const taken : memory) cudaFree(taken);
  }
};

namespace {

// Returns when all members have come.
bool meet(ncclComm& group) {
  char word = 'h';
  if (group.rank == 0) {
    std::vector<int> members;
    while (static_cast<int>(members.size()) + 1 < group.size) {
      members.push_back(accept_from(group.listener, group.aborted));
      if (read_all(members.back(), &word, 1, group.aborted) != End::kDone) return false;
    }
    for (const int member : members) {
      if (write_all(member, &word, 1, group.aborted) != End::kDone) return false;
      ::close(member);
    }
    return true;
  }
  const int first = connect_to(group.address_of(0), group.aborted);
  const bool met =
      write_all(first, &word, 1, group.aborted) == End::kDone && read_all(first, &word, 1, group.aborted) == End::kDone;
  ::close(first);
  return met;
}

// The socket of a pair whose sender has come; the host waits for it.
int await_sender(ncclComm& group, int sender) {
  while (!group.arrived.contains(sender)) {
    const int socket = accept_from(group.listener, group.aborted);
    int rank = 0;
    if (socket < 0 || read_all(socket, &rank, sizeof(rank), group.aborted) != End::kDone) return -1;
    group.arrived[rank] = socket;
  }
  return group.arrived.extract(sender).mapped();
}

// Connects the pairs of these messages that have none before: every end makes its call, or the host waits.
ncclResult_t connect(const std::vector<Message>& all) {
  std::vector<std::pair<ncclComm*, int>> called;
  for (const Message& message : all) {
    ncclComm& group = *message.group;
    if (!message.sends || group.to.contains(message.peer)) continue;
    const int socket = group.to[message.peer] = connect_to(group.address_of(message.peer), group.aborted);
    if (!group.take(kLinkBytes)) return ncclUnhandledCudaError;
    if (write_all(socket, &group.rank, sizeof(group.rank), group.aborted) != End::kDone) return ncclSystemError;
    called.emplace_back(&group, socket);
  }
  char word = 'k';
  for (const Message& message : all) {
    ncclComm& group = *message.group;
    if (message.sends || group.from.contains(message.peer)) continue;
    const int socket = group.from[message.peer] = await_sender(group, message.peer);
    if (!group.take(kLinkBytes)) return ncclUnhandledCudaError;
    if (write_all(socket, &word, 1, group.aborted) != End::kDone) return ncclSystemError;
  }
  for (const auto& [group, socket] : called) {
    if (read_all(socket, &word, 1, group->aborted) != End::kDone) return ncclSystemError;
  }
  return ncclSuccess;
}

// Messages of one group and stream, which its thread moves.
struct Work {
  ncclComm* group;
  std::vector<Transfer> transfers;
};

void spin(const ncclComm& group) {
  while (!group.aborted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void run_work(void* argument) {
  const std::unique_ptr<Work> work(static_cast<Work*>(argument));
  ncclComm& group = *work->group;
  const long most = number_in("FAKE_NCCL_BREAK_AFTER");
  if (most > 0 && group.moved >= static_cast<std::uint64_t>(most)) {
    group.error = ncclSystemError;
    return spin(group);
  }
  const End end = run(work->transfers, group.aborted, group.moved);
  if (end == End::kOtherSize) {
    std::fprintf(stderr, "fake NCCL: a message has another size at its other end\n");
    group.error = ncclInvalidUsage;
  }
  if (end == End::kGone && number_in("FAKE_NCCL_SEES_THE_GONE") == 1) group.error = ncclRemoteError;
  if (end != End::kDone) spin(group);
}

ncclResult_t start(const std::vector<Message>& all) {
  if (const ncclResult_t result = connect(all); result != ncclSuccess) return result;
  std::vector<std::pair<cudaStream_t, std::unique_ptr<Work>>> works;
  for (const Message& message : all) {
    auto found = std::ranges::find_if(
        works, [&](const auto& work) { return work.first == message.stream && work.second->group == message.group; });
    if (found == works.end()) {
      works.emplace_back(message.stream, std::make_unique<Work>(Work{message.group, {}}));
      found = std::prev(works.end());
    }
    const auto& sockets = message.sends ? message.group->to : message.group->from;
    found->second->transfers.push_back(
        {.socket = sockets.at(message.peer), .sends = message.sends, .memory = message.memory, .bytes = message.bytes});
  }
  for (auto& [stream, work] : works) {
    if (cudaLaunchHostFunc(stream, run_work, work.release()) != cudaSuccess) return ncclUnhandledCudaError;
  }
  return ncclSuccess;
}

// A group by itself is one of calls, too.
ncclResult_t add(const Message& message) {
  static std::atomic<long> calls = 0;
  if (++calls == number_in("FAKE_NCCL_FAIL_CALL")) return ncclSystemError;
  if (message.peer < 0 || message.peer >= message.group->size) return ncclInvalidArgument;
  ncclGroupStart();
  messages.push_back(message);
  return ncclGroupEnd();
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = kVersion;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device random;
  std::snprintf(id->internal, sizeof(id->internal), "fake-nccl-%d-%08x%08x", ::getpid(), random(), random());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* group, int ranks, ncclUniqueId id, int rank) {
  auto made = std::make_unique<ncclComm>();
  made->name = id.internal;
  made->rank = rank;
  made->size = ranks;
  made->listener = listen_at(made->address_of(rank));
  if (made->listener < 0 || !meet(*made)) return ncclSystemError;
  if (!made->take(kGroupBytes)) return ncclUnhandledCudaError;
  *group = made.release();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t group) {
  ncclGroupStart();
  group->aborted = true;
  dying.push_back(group);
  return ncclGroupEnd();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t group, ncclResult_t* error) {
  *error = group->error;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

// The groups themselves stay: streams may still come to their messages, which end at once.
ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  for (const ncclComm_t group : std::exchange(dying, {})) group->free_memory();
  return start(std::exchange(messages, {}));
}

ncclResult_t ncclSend(const void* values, std::size_t count, ncclDataType_t, int to, ncclComm_t group,
                      cudaStream_t stream) {
  return add({group, true, to, static_cast<std::byte*>(const_cast<void*>(values)), count, stream});
}

ncclResult_t ncclRecv(void* values, std::size_t count, ncclDataType_t, int from, ncclComm_t group,
                      cudaStream_t stream) {
  return add({group, false, from, static_cast<std::byte*>(values), count, stream});
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "unhandled system error of the fake NCCL";
}

const char* ncclGetLastError(ncclComm_t) { return "no more is known"; }

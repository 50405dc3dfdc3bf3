#include "comm/mpi/mpi_requests.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace teratron {
namespace {

// Longer messages are cut into pieces: MPI counts bytes in an int.
constexpr std::int64_t kLongestMessage = std::int64_t{1} << 30;

// Calls piece(first byte, bytes) for each piece of a message.
template <class Piece>
void in_pieces(std::int64_t bytes, const Piece& piece) {
  for (std::int64_t begin = 0; begin < bytes; begin += kLongestMessage) {
    piece(begin, static_cast<int>(std::min(kLongestMessage, bytes - begin)));
  }
}

constexpr int kLooksBeforeSleep = 200000, kLooksBeforeLongSleep = 210000;  // the latter: a second and more

// Yields the core after a while, and sooner if this host has more ranks than cores. Ranks of a server wait for hours.
void pause_after(int looks, bool crowded) {
  if (looks >= kLooksBeforeLongSleep) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } else if (looks > kLooksBeforeSleep) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  } else if (looks > (crowded ? 20 : 20000)) {
    ::sched_yield();
  }
}

}  // namespace

void check_mpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw_environment_error("MPI cannot {}: {}", what, text.data());
}

void MpiRequests::send(const void* from, std::int64_t bytes, int to, int tag) {
  in_pieces(bytes, [&](std::int64_t begin, int count) {
    check_mpi(MPI_Isend(static_cast<const std::byte*>(from) + begin, count, MPI_BYTE, to, tag, communicator_, next()),
              "send");
  });
}

void MpiRequests::receive(void* to, std::int64_t bytes, int from, int tag) {
  in_pieces(bytes, [&](std::int64_t begin, int count) {
    check_mpi(MPI_Irecv(static_cast<std::byte*>(to) + begin, count, MPI_BYTE, from, tag, communicator_, next()),
              "receive");
  });
}

void MpiRequests::broadcast(void* data, std::int64_t bytes, int root) {
  in_pieces(bytes, [&](std::int64_t begin, int count) {
    check_mpi(MPI_Ibcast(static_cast<std::byte*>(data) + begin, count, MPI_BYTE, root, communicator_, next()),
              "broadcast");
  });
}

MPI_Request* MpiRequests::next() {
  requests_.push_back(MPI_REQUEST_NULL);
  return &requests_.back();
}

void MpiRequests::wait() {
  for (int looks = 0;; looks = std::min(looks + 1, kLooksBeforeLongSleep)) {
    control_.throw_if_failed();
    int done = 0;
    const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) {
      control_.await_verdict();
      check_mpi(code, "complete its messages");
    }
    if (done != 0) return requests_.clear();
    pause_after(looks, control_.crowded());
  }
}

}  // namespace teratron

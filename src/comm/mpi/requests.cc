#include "comm/mpi/requests.h"

#include <sched.h>

#include <array>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace teratron {
namespace {

constexpr auto kVerdict = std::chrono::seconds(8);  // a silent rank is known by then (liveness.h)

// Calls piece(first byte, bytes) for pieces that MPI can count.
template <class Piece>
void in_pieces(std::int64_t bytes, const Piece& piece) {
  for (std::int64_t begin = 0; begin < bytes; begin += kLongestMessage) {
    piece(begin, static_cast<int>(std::min(kLongestMessage, bytes - begin)));
  }
}

// Leaves the core to others the longer nothing comes, and soon where there are more ranks than cores.
void pause_after(int looks, bool crowded) {
  if (looks > 200000) {
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

void Requests::send(const void* from, std::int64_t bytes, int to, int tag) {
  in_pieces(bytes, [&](std::int64_t begin, int count) {
    requests_.push_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Isend(static_cast<const std::byte*>(from) + begin, count, MPI_BYTE, to, tag, communicator_,
                        &requests_.back()),
              "send");
  });
}

void Requests::receive(void* to, std::int64_t bytes, int from, int tag) {
  in_pieces(bytes, [&](std::int64_t begin, int count) {
    requests_.push_back(MPI_REQUEST_NULL);
    check_mpi(
        MPI_Irecv(static_cast<std::byte*>(to) + begin, count, MPI_BYTE, from, tag, communicator_, &requests_.back()),
        "receive");
  });
}

void Requests::broadcast(void* data, std::int64_t bytes, int root) {
  in_pieces(bytes, [&](std::int64_t begin, int count) {
    requests_.push_back(MPI_REQUEST_NULL);
    check_mpi(
        MPI_Ibcast(static_cast<std::byte*>(data) + begin, count, MPI_BYTE, root, communicator_, &requests_.back()),
        "broadcast");
  });
}

// MPI may notice that a connection broke before it is known which rank is gone; that news is the better one.
void Requests::blame(int code) const {
  const auto end = std::chrono::steady_clock::now() + kVerdict;
  while (std::chrono::steady_clock::now() < end) {
    liveness_->throw_if_lost();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  check_mpi(code, "complete its messages");
}

void Requests::wait() {
  for (int looks = 0;; ++looks) {
    liveness_->throw_if_lost();
    int done = 0;
    const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) blame(code);
    if (done != 0) return requests_.clear();
    pause_after(looks, liveness_->crowded());
  }
}

}  // namespace teratron

// Connections of the fake NCCL: local sockets without files, between processes of this machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace teratron::fake_nccl {

// A transfer that is over because its group was aborted, and one that can never end because its other end is gone.
enum class End { kDone, kAborted, kGone, kOtherSize };

// Socket with a name in the system's abstract namespace, which goes with the process.
int listen_at(const std::string& name);
// Waits until somebody listens; -1: the group was aborted first.
int connect_to(const std::string& name, const std::atomic<bool>& aborted);
int accept_from(int listener, const std::atomic<bool>& aborted);  // -1: likewise

// Whole values, of any number of bytes. The calling thread waits.
End write_all(int socket, const void* from, std::size_t bytes, const std::atomic<bool>& aborted);
End read_all(int socket, void* to, std::size_t bytes, const std::atomic<bool>& aborted);

// A message on its way. A sender is done when the receiver has all of it, which a real one need not wait for and may.
struct Transfer {
  int socket;
  bool sends;
  std::byte* memory;
  std::uint64_t bytes;

  // How far it is: the size comes first, and the receiver's answer last.
  std::uint64_t moved = 0, size = 0;
  bool is_done = false;
  End move();  // as much as goes at once; kDone: nothing went wrong
  short awaited_events() const;

 private:
  End move_values(std::byte* values, std::uint64_t begin, std::uint64_t end, bool writes);
};

// Moves all of them at the same time, those of one socket in their order. `moved` counts bytes.
End run(std::span<Transfer> transfers, const std::atomic<bool>& aborted, std::atomic<std::uint64_t>& moved);

}  // namespace teratron::fake_nccl

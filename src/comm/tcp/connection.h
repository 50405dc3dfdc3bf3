// A stream of messages between two processes. Each is an envelope and its payload, which goes straight to its place
// where its receive has been posted, and is kept until then where not. Nothing here waits: bytes move as far as they
// can whenever the rank asks, in both directions, so that what cannot be sent never holds up what can be received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>

#include "comm/process/transport.h"
#include "comm/tcp/socket.h"

namespace teratron {

// What a message is matched by, but for its sender, and its length. Travels as it lies in memory.
struct Envelope {
  std::uint32_t group = 0;
  std::uint16_t kind = 0, tag = 0;
  std::int64_t bytes = 0;  // of the payload, at least 1

  bool matches(const Envelope& other) const { return group == other.group && kind == other.kind && tag == other.tag; }
};
static_assert(sizeof(Envelope) == 16);

// A send or a receive under way. It stays where it is until it is done.
struct Transfer {
  Envelope envelope;
  std::byte* data = nullptr;
  std::int64_t moved = 0;  // bytes; of a send with its envelope
  bool is_done = false;
};

class Connection {
 public:
  explicit Connection(Socket socket) : socket_(std::move(socket)) {}

  void send(Transfer& message);
  void receive(Transfer& message);  // InternalError: the message that comes has another length
  // Both return whether anything moved.
  bool write_some();
  bool read_some();

  bool has_to_write() const { return !outgoing_.empty() && !is_broken(); }
  // Nothing moves any more: the other side has closed it, or the network failed.
  bool is_broken() const { return broken_; }
  // What is under way is forgotten, and its memory is never touched again.
  void give_up();
  int descriptor() const { return broken_ ? -1 : socket_.get(); }

 private:
  struct Early {  // a message that came, or comes, before its receive
    Transfer message;
    std::unique_ptr<std::byte[]> bytes;
  };
  bool begin_payload(bool may_keep);  // false: nobody has asked for it
  void take_written(std::size_t count);

  Socket socket_;
  bool broken_ = false;
  std::deque<Transfer*> outgoing_;
  std::list<Transfer*> expected_;
  std::list<Early> early_;
  Envelope envelope_;  // being read, or of the payload that is
  std::size_t envelope_read_ = 0;
  Transfer* incoming_ = nullptr;  // whose payload is being read
};

}  // namespace teratron

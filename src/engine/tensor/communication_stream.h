// CommunicationStream: a stream of a device beside its compute stream, on which collectives copy and add up the memory
// of several ranks without the host. Calls return when their work is queued. Events order the streams of this device
// and those of other ranks of the process. Channels move memory between devices that cannot read each other's, above
// all those of other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/dtype.h"

namespace teratron {

enum class ReduceOp { kSum, kMax };

// All channels of a device, for any thread.
class OpenChannels {
 public:
  virtual ~OpenChannels() = default;
  // Why an exchange broke after it had been queued; empty: none did.
  virtual std::string fault() = 0;
  // Ends exchanges that wait for other ranks, which may be lost; the device goes on, with values that mean nothing.
  // Later exchanges throw EnvironmentError.
  virtual void abort() noexcept = 0;
};

class CommunicationStream {
 public:
  // A point in a stream that any stream of the process can wait for; null: already reached.
  class Event {
   public:
    virtual ~Event() = default;
  };
  using EventPtr = std::shared_ptr<const Event>;

  virtual ~CommunicationStream() = default;
  virtual EventPtr record_compute() = 0;  // reached when every earlier call of the back end is done
  virtual EventPtr record() = 0;          // reached when every earlier call of this stream is done
  // Later calls of this stream (wait_for) or of the back end (compute_waits_for) begin after the event. A stream must
  // wait for an event of a rank before it accesses that rank's memory. EnvironmentError if the rank's device cannot be
  // reached.
  virtual void wait_for(const EventPtr& event) = 0;
  virtual void compute_waits_for(const EventPtr& event) = 0;

  virtual void copy(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;  // does nothing if to == from
  // outputs[o][i] = ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) .. for every o and i < count, at most kMostRanks
  // of either on a device; an output may be one of the inputs. Values of 16 bits are combined in fp32 and rounded once;
  // the maximum of anything and NaN is NaN. InternalError: a dtype without arithmetic (u16, u8).
  virtual void reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs,
                      std::span<const std::byte* const> inputs, std::int64_t count) = 0;
  static constexpr int kMostRanks = 64;

  // A connection of a group of ranks, each with a device of its own. All ranks make their calls in the same order.
  class Channel {
   public:
    struct Piece {
      int rank;  // the receiver or the sender, in the group
      std::byte* memory;
      std::int64_t bytes;  // more than 0
    };
    virtual ~Channel() = default;
    // Queues all transfers on the stream as one operation. Sends and receives match by rank and order. The host may
    // have to wait where a pair of ranks exchanges for the first time, until both do.
    virtual void exchange(std::span<const Piece> sends, std::span<const Piece> receives) = 0;
  };
  virtual std::string make_channel_id() { return {}; }  // one rank calls it and shares the id
  // Every rank of the group calls it; it returns when all have. EnvironmentError.
  virtual std::unique_ptr<Channel> open_channel(const std::string& /*id*/, int /*rank*/, int /*size*/) {
    return nullptr;
  }
  // Memory for the stream's own use, the same block each time: the work queued between two calls may use it.
  virtual std::span<std::byte> scratch() { return {}; }
};

}  // namespace teratron

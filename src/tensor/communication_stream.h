// CommunicationStream: an order of a device's work beside the one that computes, in which collectives copy and add up
// memory of several ranks without the host touching it. Calls return once the work is queued; events put orders of this
// device, and of other ranks of the process, one after another; channels move memory between devices that do not reach
// each other's, those of other processes first of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/dtype.h"

namespace teratron {

enum class ReduceOp { kSum, kMax };

class CommunicationStream {
 public:
  // A point in a device's work that any stream of the process can wait for; null: one that is reached already.
  class Event {
   public:
    virtual ~Event() = default;
  };
  using EventPtr = std::shared_ptr<const Event>;

  virtual ~CommunicationStream() = default;
  virtual EventPtr record_compute() = 0;  // reached when all is done that its back end was asked for so far
  virtual EventPtr record() = 0;          // reached when all is done that this stream was asked for so far
  // What this stream, or its back end, is asked for from now on begins after the event. Whoever reaches into another
  // rank's memory has waited here for an event of that rank first. EnvironmentError if its device cannot be reached.
  virtual void wait_for(const EventPtr& event) = 0;
  virtual void compute_waits_for(const EventPtr& event) = 0;

  virtual void copy(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;  // nothing where they are the same
  // outputs[o][i] = ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) .. for every o and i < count, at most kMostRanks
  // of either on a device; an output may be one of the inputs. Values of 16 bits are combined in fp32 and rounded once;
  // the maximum of anything and NaN is NaN. InternalError: a dtype without arithmetic (u16, u8).
  virtual void reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs,
                      std::span<const std::byte* const> inputs, std::int64_t count) = 0;
  static constexpr int kMostRanks = 64;

  // A group of ranks, each with a device of its own, that exchange memory in the order in which all of them call.
  class Channel {
   public:
    struct Piece {
      int rank;  // of the group, where it goes to or comes from
      std::byte* memory;
      std::int64_t bytes;  // more than 0
    };
    virtual ~Channel() = default;
    // Queued on the stream: all of them at once, matched by rank and order.
    virtual void exchange(std::span<const Piece> sends, std::span<const Piece> receives) = 0;
  };
  virtual std::string make_channel_id() { return {}; }  // by one rank, for all of a new group
  // Every rank of the group calls it, and it returns when all have. EnvironmentError.
  virtual std::unique_ptr<Channel> open_channel(const std::string& /*id*/, int /*rank*/, int /*size*/) {
    return nullptr;
  }
  // Memory of this stream's own, always the same: for what is queued on it between two calls of this.
  virtual std::span<std::byte> scratch() { return {}; }
};

}  // namespace teratron

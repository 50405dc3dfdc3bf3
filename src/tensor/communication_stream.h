// CommunicationStream: a device's order of work beside the one that computes, in which collectives copy and add up
// memory of several ranks of one process without the host touching it. Calls return once the work is queued; events
// put the two orders, and those of other ranks, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

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
  // of either; an output may be one of the inputs. Values of 16 bits are combined in fp32 and rounded once; the maximum
  // of anything and NaN is NaN. InternalError: a dtype without arithmetic (u16, u8).
  virtual void reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs,
                      std::span<const std::byte* const> inputs, std::int64_t count) = 0;
  static constexpr int kMostRanks = 64;
};

}  // namespace teratron

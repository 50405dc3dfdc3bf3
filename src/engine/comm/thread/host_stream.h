// The communication stream of memory that hosts can read: its work is done where it is called, by the caller's threads.
#pragma once

#include "tensor/communication_stream.h"

namespace teratron {

class HostStream final : public CommunicationStream {
 public:
  EventPtr record_compute() override { return nullptr; }
  EventPtr record() override { return nullptr; }
  void wait_for(const EventPtr&) override {}
  void compute_waits_for(const EventPtr&) override {}
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void reduce(DType dtype, ReduceOp op, std::span<std::byte* const> outputs, std::span<const std::byte* const> inputs,
              std::int64_t count) override;
};

}  // namespace teratron

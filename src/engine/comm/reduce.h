// Sums and maxima of several ranks' values, element by element and in the ranks' order. Every communicator reduces with
// this one function, so the bits do not depend on whether ranks are threads or processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "tensor/communication_stream.h"

namespace teratron {

// outputs[o][i] = ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) .. for every o and i < count; an output may be one
// of the inputs. Values of 16 bits are combined in fp32 and rounded once; the maximum of anything and NaN is NaN.
// InternalError: a dtype without arithmetic (u16, u8).
void reduce_elements(DType dtype, ReduceOp op, std::span<std::byte* const> outputs,
                     std::span<const std::byte* const> inputs, std::int64_t count);

// The communication stream of memory that hosts can read: calls do their work at once, in the caller's threads.
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

// Communicator: a group of ranks that reduce and exchange views. A group of one makes every collective a no-op, so
// layers call them without asking how many ranks there are.
#pragma once

#include <cstdint>
#include <memory>

#include "tensor/tensor.h"

namespace teratron {

enum class ReduceOp { kSum, kMax };

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // of the caller within the group
  virtual int size() const = 0;
  virtual void all_reduce(TensorRef view, ReduceOp op = ReduceOp::kSum) = 0;  // in place, the same bits on every rank
};

// The group that holds the caller alone.
class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(TensorRef, ReduceOp) override {}
};

// The groups one rank belongs to, TP innermost, DP outermost (Megatron-LM section 3). Passed down, never global.
struct Mesh {
  std::shared_ptr<Communicator> tensor = std::make_shared<SelfCommunicator>();
  std::shared_ptr<Communicator> data = std::make_shared<SelfCommunicator>();
};

}  // namespace teratron

// The examples of a task as training samples.
#pragma once

#include "data/samples.h"
#include "data/samples/item_order.h"
#include "tasks/examples.h"

namespace teratron {

// A sample is a sequence. Those of an example are adjacent. An epoch has every example once, in an order that is a pure
// function of (number of examples, seed, epoch), or in file order. Positions continue through the epochs without end; a
// batch holds whole examples. Safe to use from many threads.
//
// lengths() gives all sequences of an example the length of its longest, so that a stable sort by length keeps them
// adjacent. It is empty for examples that are one another's negatives, so that nothing is sorted.
class TaskSamples : public Samples {
 public:
  // Refers to `examples`, which must outlive it. InternalError: none of them, or a sequence longer than seq_length.
  TaskSamples(const TaskExamples& examples, std::int64_t seq_length, SampleOrder order, std::uint64_t seed);

  std::int64_t seq_length() const override { return seq_length_; }
  std::int64_t samples_per_epoch() const override { return examples_.sequences(); }
  std::string source(std::int64_t position) const override;
  std::vector<std::int32_t> lengths(SampleRange positions) const override;
  SampleBatch make_batch(std::int64_t samples) const override;
  void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const override;
  TotalWeights total_weights(SampleRange positions) const override;

 private:
  // The sequence at a position of the run.
  std::int64_t sequence_at(std::int64_t position) const;

  const TaskExamples& examples_;
  std::int64_t seq_length_;
  ItemOrder order_;
};

}  // namespace teratron

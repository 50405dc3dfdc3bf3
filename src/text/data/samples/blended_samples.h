// Samples of several corpora, by weights.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "data/samples.h"
#include "data/samples/blend_order.h"

namespace teratron {

// Sample number `position` of the run is the next one of the corpus that BlendOrder names. Each corpus continues
// through its own epochs in its own order. So samples are a pure function of the weights, the corpora and the position.
class BlendedSamples : public Samples {
 public:
  // Weights as BlendOrder's, one for each corpus; the corpora's samples have one kind and length.
  BlendedSamples(std::vector<std::unique_ptr<const Samples>> corpora, std::span<const double> weights);

  const BlendOrder& order() const { return order_; }
  const Samples& corpus(std::size_t i) const { return *corpora_[i]; }

  std::int64_t seq_length() const override { return corpora_.front()->seq_length(); }
  // Samples until a corpus repeats: none is read twice before.
  std::int64_t samples_per_epoch() const override;

  std::string left_out() const override;
  std::string source(std::int64_t position) const override;
  std::vector<std::int32_t> lengths(SampleRange positions) const override;
  std::vector<std::int32_t> first_keys(SampleRange positions) const override;
  SampleBatch make_batch(std::int64_t samples) const override { return corpora_.front()->make_batch(samples); }
  void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const override;
  TotalWeights total_weights(SampleRange positions) const override;

 private:
  std::vector<std::int32_t> of_each(SampleRange positions,
                                    std::vector<std::int32_t> (Samples::*values)(SampleRange) const) const;

  std::vector<std::unique_ptr<const Samples>> corpora_;
  BlendOrder order_;
};

}  // namespace teratron

#include "data/samples/blended_samples.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace teratron {

BlendedSamples::BlendedSamples(std::vector<std::unique_ptr<const Samples>> corpora, std::span<const double> weights)
    : corpora_(std::move(corpora)), order_(weights) {
  check_equal(corpora_.size(), weights.size(), "corpora of a blend");
  for (const auto& corpus : corpora_) check_equal(corpus->seq_length(), seq_length(), "tokens of a blend's samples");
}

std::int64_t BlendedSamples::samples_per_epoch() const {
  std::int64_t samples = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < corpora_.size(); ++i) {
    samples = std::min(samples, order_.position({.corpus = i, .sample = corpora_[i]->samples_per_epoch()}));
  }
  return samples;
}

std::string BlendedSamples::left_out() const {
  std::string text;
  for (const auto& corpus : corpora_) {
    const std::string of_corpus = corpus->left_out();
    if (!of_corpus.empty()) text += (text.empty() ? "" : "; ") + of_corpus;
  }
  return text;
}

std::string BlendedSamples::source(std::int64_t position) const {
  const BlendOrder::Entry entry = order_.entry(position);
  return corpora_[entry.corpus]->source(entry.sample);
}

std::vector<std::int32_t> BlendedSamples::of_each(SampleRange positions,
                                                  std::vector<std::int32_t> (Samples::*values)(SampleRange)
                                                      const) const {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < positions.count; ++i) {
    const BlendOrder::Entry entry = order_.entry(positions.first + i);
    const std::vector<std::int32_t> one = (*corpora_[entry.corpus].*values)({entry.sample, 1});
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::vector<std::int32_t> BlendedSamples::lengths(SampleRange positions) const {
  return of_each(positions, &Samples::lengths);
}

std::vector<std::int32_t> BlendedSamples::first_keys(SampleRange positions) const {
  return of_each(positions, &Samples::first_keys);
}

void BlendedSamples::read(SampleRange positions, SampleBatch& batch, std::int64_t at) const {
  for (std::int64_t i = 0; i < positions.count; ++i) {
    const BlendOrder::Entry entry = order_.entry(positions.first + i);
    corpora_[entry.corpus]->read({entry.sample, 1}, batch, at + i);
  }
}

Samples::TotalWeights BlendedSamples::total_weights(SampleRange positions) const {
  TotalWeights total;
  for (std::size_t i = 0; i < corpora_.size(); ++i) {
    const std::int64_t first = order_.count(i, positions.first);
    const std::int64_t end = order_.count(i, positions.first + positions.count);
    const TotalWeights own = corpora_[i]->total_weights({first, end - first});
    total.targets += own.targets;
    total.labels += own.labels;
  }
  return total;
}

}  // namespace teratron

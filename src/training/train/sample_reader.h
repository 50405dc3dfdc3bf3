// Reads samples for a Trainer, whose ranks have to go through an update together even where one of them cannot read its
// samples any more: the corpus was cut short or overwritten under the run, or its disk fails.
#pragma once

#include <string>

#include "base/error.h"
#include "comm/mesh.h"
#include "data/samples.h"

namespace teratron {

// The corpus cannot be read any more. All ranks throw it at the same place, with the same words.
class CorpusFailure : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

// Reads samples. Unreadable ones are replaced by token 0, and fault() is the reason from then on. That update is
// finished, so that no rank waits for another, but not applied, and all ranks end after it. The fault is this rank's
// own.
class SampleReader {
 public:
  // As Samples::read.
  void read(const Samples& samples, SampleRange positions, SampleBatch& batch, std::int64_t at);
  // As Samples::total_weights, some of which read the samples.
  Samples::TotalWeights total_weights(const Samples& samples, SampleRange positions);

  const std::string& fault() const { return fault_; }  // the first; empty: none
  // CorpusFailure where one of the ranks could not read its samples. All ranks call it.
  void require_readable(const Mesh& mesh) const;

 private:
  template <class Read>
  bool succeeds(const Read& read);

  std::string fault_;
};

}  // namespace teratron

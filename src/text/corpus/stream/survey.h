// The survey of a stage that sees all documents before it decides about the first (Stage::needs_survey).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corpus/stream/stage.h"

namespace teratron {

class Survey {
 public:
  // `spool` may hold documents of an earlier run; restore_state() then restores their measures.
  Survey(Stage& stage, std::unique_ptr<Spool> spool) : stage_(stage), spool_(std::move(spool)) {}

  // Measures documents with all threads, notes the measures, and writes the documents to the spool.
  void add(const std::vector<Document>& documents);
  // Called after the last document: the stage decides, and the spool can be read.
  const Spool& settle();

  // As the members of Stage: their state is the measures that were noted.
  std::string take_state_delta() { return std::exchange(state_delta_, {}); }
  void restore_state(std::string_view delta);
  // Syncs the spool to the disk, where it outlives the process.
  SpoolPoint keep() { return spool_->keep(); }

 private:
  Stage& stage_;
  std::unique_ptr<Spool> spool_;
  std::int64_t remembered_ = 0;  // documents whose measures came from an earlier run
  std::string state_delta_;      // for each document: the number of its measures, then the measures
};

}  // namespace teratron

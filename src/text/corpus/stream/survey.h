// The survey of a stage that has to see all documents before it decides about the first (Stage::needs_survey).
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
  // `spool` may hold documents of an earlier run; then remember() says what was noted of them.
  Survey(Stage& stage, std::unique_ptr<Spool> spool) : stage_(stage), spool_(std::move(spool)) {}

  // Measures documents, with all threads, notes their measures, and writes them to the spool.
  void add(const std::vector<Document>& documents);
  // After the last document: the stage decides, and the spool is read from now on.
  const Spool& settle();

  // As Stage's: the measures that were noted since the last call; and all of them again, in their order.
  std::string take_news() { return std::exchange(news_, {}); }
  void remember(std::string_view news);
  // All documents so far are on the disk and stay there without this process: so many bytes.
  std::uint64_t keep();

 private:
  Stage& stage_;
  std::unique_ptr<Spool> spool_;
  std::int64_t remembered_ = 0;  // documents whose measures came from an earlier run
  std::string news_;             // of each document the number of its measures, and they
};

}  // namespace teratron

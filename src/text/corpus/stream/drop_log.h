// The dropped documents of a stream, a line of JSON each: stage, reason, detail, file, line, and the document.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "corpus/stream/line_writer.h"
#include "corpus/stream/stage.h"

namespace teratron {

// Writes lines in the order of the input, wherever batches end.
class DropLog {
 public:
  // Writes nothing if `path` is empty. `from`: as LineWriter's.
  DropLog(const std::filesystem::path& path, LinePoint from);

  bool is_written() const { return writer_ != nullptr; }
  // `document`: its line of JSON, or empty.
  void add(std::string_view stage, const Drop& drop, const std::filesystem::path& file, std::int64_t line,
           std::string_view document);
  // Writes what was added since the last call; the stages of one document stay in their order.
  void end_batch();

  // As LineWriter's.
  LinePoint point() { return writer_ ? writer_->point() : LinePoint{}; }
  void keep_partial(bool keeps) {
    if (writer_) writer_->keep_partial(keeps);
  }
  void finish() {
    if (writer_) writer_->finish();
  }
  void commit() {
    if (writer_) writer_->commit();
  }

 private:
  struct Line {
    const std::filesystem::path* file;
    std::int64_t line;
    std::string text;
  };
  std::unique_ptr<LineWriter> writer_;
  std::vector<Line> lines_;
};

}  // namespace teratron

// Lines of JSON to a file that appears whole or not at all, compressed where its name says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/files/file.h"

namespace teratron {

// How far a file is written, for a writer that appends to it.
struct LinePoint {
  std::uint64_t bytes = 0;  // in the file; whole frames if it is compressed
  std::string tail;         // lines written and not compressed yet
};

// Why lines cannot be written to a file of this name; empty: they can.
std::string fault_of_line_file(const std::filesystem::path& path);

// A compressed file has a frame for each 4 MiB of lines, or for a longer line, so its bytes are a function of the lines
// alone, however many runs wrote them. Memory: the lines of a frame.
class LineWriter {
 public:
  // `path`: ends in .zst, in any case, for zstd; "-" is standard output, never compressed. `from`: a point of an
  // earlier writer that kept its partial file. UserError: fault_of_line_file(). EnvironmentError, here and below: as
  // AtomicFile.
  explicit LineWriter(const std::filesystem::path& path, LinePoint from = {});
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  ~LineWriter();

  void write(std::string_view line);  // and a line end
  LinePoint point();                  // syncs all but the tail to the disk
  void keep_partial(bool keeps) { file_.keep_partial(keeps); }
  void finish();  // syncs all to the disk
  void commit();  // names the file; without it nothing stays, unless keep_partial(true)

 private:
  class Compressor;
  void end_frame();

  AtomicFile file_;
  std::unique_ptr<Compressor> compressor_;  // null: not compressed
  std::string frame_;                       // lines that are not compressed yet
};

}  // namespace teratron

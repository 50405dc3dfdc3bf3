// Lines of JSON to a file that appears whole or not at all, compressed where its name says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/files/file.h"

namespace teratron {

// How far a file is written, for a writer that goes on behind it.
struct LinePoint {
  std::uint64_t bytes = 0;  // of the file, which are whole frames where it is compressed
  std::string tail;         // what is written and not compressed yet
};

// A compressed file has a frame for each 4 MiB of lines, or for a longer line. So its bytes are a function of the
// lines, whether they were written in one run or in several. Memory: the lines of a frame.
class LineWriter {
 public:
  // `path`: ends in .zst for zstd; "-" is standard output, never compressed. `from`: goes on at a point of an earlier
  // writer that left its file behind. UserError: a name in .gz. EnvironmentError, here and below: as AtomicFile.
  explicit LineWriter(const std::filesystem::path& path, LinePoint from = {});
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  ~LineWriter();

  void write(std::string_view line);  // and a line end
  LinePoint point();                  // what is written is on the disk, but for the tail
  void keep_partial(bool keeps) { file_.keep_partial(keeps); }
  void finish();  // all is on the disk
  void commit();  // without it, nothing is left behind, unless that is wanted

 private:
  class Compressor;
  void end_frame();

  AtomicFile file_;
  std::unique_ptr<Compressor> compressor_;  // null: not compressed
  std::string frame_;                       // lines that are not compressed yet
};

}  // namespace teratron

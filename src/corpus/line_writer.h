// Lines of JSON to a file that appears whole or not at all, compressed where its name says so.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/file.h"

namespace teratron {

class LineWriter {
 public:
  // `path`: ends in .zst for zstd; "-" is standard output, never compressed. UserError: a name in .gz.
  // EnvironmentError, here and below: as AtomicFile.
  explicit LineWriter(const std::filesystem::path& path);
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  ~LineWriter();

  void write(std::string_view line);  // and a line end
  void commit();                      // without it, nothing is left behind

 private:
  struct Compressor;
  void put(std::string_view bytes);

  AtomicFile file_;
  std::unique_ptr<Compressor> compressor_;  // null: not compressed
};

}  // namespace teratron

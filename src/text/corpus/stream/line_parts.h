// Copies lines of JSON to the files they are chosen for: `data split` and `data sample` of texts that are not
// tokenised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace teratron {

// Counts the lines of `files` that are not blank; copy_lines() reads them again, so none is a pipe. UserError: as
// DocumentReader; a file that does not hold lines; standard input.
std::int64_t count_lines(std::span<const std::filesystem::path> files);

struct CopiedLines {
  std::vector<std::int64_t> lines;  // of each out
  std::int64_t faulty = 0;          // of those, lines that are not JSON objects in UTF-8
  std::string first_fault;          // with its file and line; empty: none
};

// Copies line i of `files` to outs[parts[i]] (line_writer.h), or nowhere if there is no such out, byte for byte and in
// order. `parts` takes a byte a line. Lines that are no JSON objects are copied, too, and counted. All outs are whole
// on the disk before the first gets its name. `progress` is called with the share that is done. UserError: as
// count_lines; files that changed since; an out that is also read, is named twice, or that another process writes.
// EnvironmentError: as LineWriter.
CopiedLines copy_lines(std::span<const std::filesystem::path> files, std::span<const std::filesystem::path> outs,
                       std::span<const std::uint8_t> parts, const std::function<void(double share)>& progress = {});

}  // namespace teratron

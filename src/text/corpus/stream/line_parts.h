// Lines of JSON to other files as they are, each to the one it is chosen for: the way of `data split` and `data sample`
// where a corpus is not tokenised yet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace teratron {

// The lines of `files` that are not blank. All of them have JSON lines, and are read twice, so none is a pipe.
// UserError: as DocumentReader; a file that is not one of lines; standard input.
std::int64_t count_lines(std::span<const std::filesystem::path> files);

struct CopiedLines {
  std::vector<std::int64_t> lines;  // of each out
  std::int64_t faulty = 0;          // of those, lines that are not JSON objects in UTF-8
  std::string first_fault;          // with its file and line; empty: none
};

// Line i of `files` goes to outs[parts[i]] (line_writer.h), or nowhere where there is no such out, byte for byte and in
// its order; lines that are no JSON objects are copied, too, and counted. All are whole on the disk before the first
// has its name. `progress`, where given, is told the share that is done. UserError: as count_lines; files that have
// changed since; an out that is a file to read, is named twice, or that another process writes. EnvironmentError: as
// LineWriter.
CopiedLines copy_lines(std::span<const std::filesystem::path> files, std::span<const std::filesystem::path> outs,
                       std::span<const std::uint8_t> parts, const std::function<void(double share)>& progress = {});

}  // namespace teratron

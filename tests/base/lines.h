// Lines of texts, and of files of JSON lines.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/files/file.h"

namespace teratron::testing {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::vector<nlohmann::json> json_lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (const std::string& line : lines_of(text)) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline std::vector<nlohmann::json> json_lines(const std::filesystem::path& file) {
  return json_lines_of(read_file(file));
}

}  // namespace teratron::testing

// Files of documents for tests of stages, and what a run of stages makes of them.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "base/lines.h"
#include "base/temporary_folder.h"
#include "corpus/stream/stream_json.h"

namespace teratron::testing {

inline std::string as_json_lines(const std::vector<std::string>& texts) {
  std::string lines;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    lines += nlohmann::json{{"id", i}, {"text", texts[i]}}.dump() + "\n";
  }
  return lines;
}

inline std::vector<std::string> texts_in(const std::filesystem::path& file) {
  std::vector<std::string> texts;
  for (const auto& line : json_lines(file)) texts.push_back(line.at("text"));
  return texts;
}

template <class... Made>
std::vector<std::unique_ptr<Stage>> stages_of(Made... made) {
  std::vector<std::unique_ptr<Stage>> stages;
  (stages.push_back(std::move(made)), ...);
  return stages;
}

class StageTest : public ::testing::Test {
 protected:
  // Documents 0, 1, 2 ... through one stage: what is left of them.
  std::vector<std::string> through(std::vector<std::unique_ptr<Stage>> stages, const std::vector<std::string>& texts) {
    write_file_atomically(folder_ / "in.jsonl", as_json_lines(texts));
    counts_ = run_stages(stages, options());
    statistics_ = json_of(counts_, stages);
    return texts_in(folder_ / "out.jsonl");
  }
  StreamOptions options() const {
    return {.files = {folder_ / "in.jsonl"}, .out = folder_ / "out.jsonl", .dropped = folder_ / "dropped.jsonl"};
  }
  TemporaryFolder folder_;
  StreamCounts counts_;
  nlohmann::ordered_json statistics_;
};

}  // namespace teratron::testing

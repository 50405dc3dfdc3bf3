// RACE's files (Lai et al., arXiv 1704.04683): questions of four options each on articles, and predicted answers.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace teratron::race {

inline constexpr std::size_t kOptions = 4;  // of a question, called A to D

enum class Level { kMiddle, kHigh };  // the school whose examinations an article is from

struct Question {
  std::string text;
  std::array<std::string, kOptions> options;
  int answer = 0;  // 0 to 3
};

struct Article {
  std::string id, text;
  std::optional<Level> level;  // by the beginning of the id, else by a folder or dot-separated part of the file's path
  std::vector<Question> questions;
};

using Dataset = std::vector<Article>;

// Reads files, folders and patterns as find_input_files takes them: RACE's own folders of .txt files, each a JSON
// object, or .jsonl files with an object a line, plain or compressed. UserError, with file, line and article: no JSON
// object, a missing field; an id that occurs twice; a blank article, question or option; different numbers of
// questions, options and answers; not four options; an answer that is not A to D. UserError too: no question at all.
Dataset read_dataset(std::span<const std::filesystem::path> paths);

// The text of a question with one of its options, as in Megatron-LM: the option replaces each `_` of the question, or
// follows it after a space.
std::string question_with_option(std::string_view question, std::string_view option);

// The answers to an article's questions, 0 to 3, by its id.
using Predictions = std::map<std::string, std::vector<int>>;

// Reads JSON: {article id: ["A", "C", ...]}. UserError: no such object.
Predictions read_predictions(const std::filesystem::path& path);

// Writes that format, whole or not at all. EnvironmentError: it cannot be written.
void write_predictions(const std::filesystem::path& path, const Predictions& predictions);

}  // namespace teratron::race

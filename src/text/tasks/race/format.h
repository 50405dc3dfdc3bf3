// RACE's files (Lai et al., arXiv 1704.04683): questions of four options each on articles, and predicted answers.
#pragma once

#include <array>
#include <cstdint>
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
  std::optional<Level> level;  // by the beginning of the id, else by a folder or a part between dots of the file's path
  std::vector<Question> questions;
};

using Dataset = std::vector<Article>;

// Files, folders and patterns as find_input_files takes them: RACE's own folders of .txt files, each a JSON object, or
// .jsonl files with an object a line, plain or compressed. UserError, with file, line and article: no JSON object, a
// field that is missing; an id that occurs twice; an article, question or option that is blank; as many questions as
// neither options nor answers; not four options; an answer that is not A to D. UserError too: no question at all.
Dataset read_dataset(std::span<const std::filesystem::path> paths);

// What a model reads of a question and one of its options, as Megatron-LM has it: the option in place of each `_` of
// the question, or behind it and a space where it has none.
std::string question_with_option(std::string_view question, std::string_view option);

// The answers to an article's questions, 0 to 3, by its id.
using Predictions = std::map<std::string, std::vector<int>>;

// JSON: {article id: ["A", "C", ...]}. UserError: no such object.
Predictions read_predictions(const std::filesystem::path& path);

// The same format, whole or not at all. EnvironmentError where it cannot be written.
void write_predictions(const std::filesystem::path& path, const Predictions& predictions);

}  // namespace teratron::race

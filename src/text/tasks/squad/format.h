// SQuAD's files (Rajpurkar et al., arXiv 1606.05250 and 1806.03822): questions on paragraphs, and predicted answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace teratron::squad {

struct Answer {
  std::string text;
  std::optional<std::int64_t> start;  // the character (code point) of the context it begins with
};

struct Question {
  std::string id, text;
  std::vector<Answer> answers;  // by several people; empty: there is none (2.0), whatever is_impossible says
  std::size_t paragraph = 0;
  bool is_labelled = true;  // false in a test set
};

struct Dataset {
  std::vector<std::string> paragraphs;
  std::vector<Question> questions;
};

enum class Version { kSquad1, kSquad2 };

// A question that lacks "answers" has no label. UserError: no JSON, a missing field, an id that occurs twice, an answer
// that is not in its paragraph, an empty list of answers in version 1.1.
Dataset read_dataset(const std::filesystem::path& path, Version version);

// Reads {question id: answer}; "" means no answer. UserError: no JSON object of texts.
std::map<std::string, std::string> read_predictions(const std::filesystem::path& path);

// Writes that format, whole or not at all. EnvironmentError: it cannot be written.
void write_predictions(const std::filesystem::path& path, const std::map<std::string, std::string>& predictions);

}  // namespace teratron::squad

#include "eval/choice_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>

#include "base/counted.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/replace_all.h"
#include "data/text/document_reader.h"
#include "jinja/values/python_text.h"

namespace teratron {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLetters = 26;

// Python's capitalize(), of ASCII letters.
std::string capitalized(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    char& each = text[i];
    if (i == 0 && each >= 'a' && each <= 'z') each = static_cast<char>(each - 'a' + 'A');
    if (i > 0 && each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  }
  return text;
}

// WikiHow's headings and notes in brackets, which HellaSwag's texts carry, are taken out.
std::string without_notes(std::string_view stored) {
  std::string text(jinja::stripped(stored));
  replace_all(text, " [title]", ". ");
  for (std::size_t open = 0; (open = text.find('[', open)) != std::string::npos;) {
    const std::size_t close = text.find(']', open), line_end = text.find('\n', open);
    if (close == std::string::npos) break;
    if (line_end < close) {
      open = line_end;
    } else {
      text.erase(open, close + 1 - open);
    }
  }
  replace_all(text, "  ", " ");
  return text;
}

class QuestionReader {
 public:
  QuestionReader(const Json& json, const std::filesystem::path& place) : fields_(json, place), place_(place) {}

  ChoiceQuestion read() {
    if (fields_.contains("endings")) {
      read_hellaswag();
    } else if (fields_.contains("goal")) {
      read_piqa();
    } else if (fields_.has("context") && fields_.has("question")) {
      throw_here(
          "\"context\" and \"question\" together are no known form; write both into \"context\", "
          "and leave \"question\" out");
    } else if (fields_.has("context")) {
      question_.context = fields_.string("context");
      question_.choices = texts_of(fields_, "choices");
      question_.answer = number_of_answer("answer");
    } else if (fields_.contains("choices") && fields_["choices"].is_object()) {
      read_arc();
    } else if (fields_.contains("question")) {
      read_mmlu();
    } else {
      throw_here(
          "its members are those of no known form: context, choices, answer; or HellaSwag's, PIQA's, ARC's, "
          "OpenBookQA's, MMLU's");
    }
    return std::move(question_);
  }

 private:
  [[noreturn]] void throw_here(std::string_view message) const {
    throw_user_error("'{}': {}", place_.string(), message);
  }

  std::vector<std::string> texts_of(const JsonFields& fields, std::string_view key) const {
    const Json& list = fields[key];
    if (!list.is_array()) fields.throw_not(key, "a list of texts");
    std::vector<std::string> texts;
    for (const Json& each : list) {
      if (!each.is_string() || jinja::stripped(each.get<std::string>()).empty()) {
        throw_here(fmt::format("\"{}\" has an element that is blank or no text", key));
      }
      texts.push_back(each.get<std::string>());
    }
    return texts;
  }

  // A number from 0, also as text, or a letter from A.
  std::int64_t number_of_answer(std::string_view key) const {
    const Json& value = fields_[key];
    const auto count = std::ssize(question_.choices);
    std::int64_t number = -1;
    if (value.is_number_integer()) number = value.get<std::int64_t>();
    if (value.is_string()) {
      const std::string text(jinja::stripped(value.get_ref<const std::string&>()));
      if (!text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
        std::from_chars(text.data(), text.data() + text.size(), number);
      }
      if (text.size() == 1 && text[0] >= 'A' && text[0] <= 'Z') number = text[0] - 'A';
    }
    if (number < 0 || number >= count) {
      throw_here(fmt::format("\"{}\" is {}, which is none of its {}, numbered from 0", key, value.dump(),
                             counted(count, "choice")));
    }
    return number;
  }

  void read_hellaswag() {
    const bool is_whole = fields_.has("activity_label") && fields_.has("ctx_a") && fields_.has("ctx_b");
    question_.context = without_notes(is_whole ? fields_.string("activity_label") + ": " + fields_.string("ctx_a") +
                                                     " " + capitalized(fields_.string("ctx_b"))
                                               : fields_.string("ctx"));
    for (const std::string& ending : texts_of(fields_, "endings")) {
      question_.choices.push_back(without_notes(ending));
      if (question_.choices.back().empty()) throw_here("\"endings\" has an element that is blank or no text");
    }
    question_.answer = number_of_answer("label");
  }

  void read_piqa() {
    question_.context = "Question: " + fields_.string("goal") + "\nAnswer:";
    for (const std::string_view key : {"sol1", "sol2"}) {
      question_.choices.push_back(fields_.string(key));
      if (jinja::stripped(question_.choices.back()).empty()) throw_here(fmt::format("\"{}\" is blank", key));
    }
    question_.answer = number_of_answer("label");
  }

  void read_arc() {
    question_.context = fields_.contains("question_stem") ? fields_.string("question_stem")
                                                          : "Question: " + fields_.string("question") + "\nAnswer:";
    const JsonFields choices = fields_.fields_of("choices");
    question_.choices = texts_of(choices, "text");
    const std::vector<std::string> labels = texts_of(choices, "label");
    if (labels.size() != question_.choices.size()) {
      throw_here(fmt::format("\"choices\" has {} and {}", counted(std::ssize(question_.choices), "text"),
                             counted(std::ssize(labels), "label")));
    }
    const std::string answer = fields_.string("answerKey");
    const std::string_view key = jinja::stripped(answer);
    const auto found = std::ranges::find(labels, key);
    if (found == labels.end()) throw_here(fmt::format("\"answerKey\" is '{}', which labels none of its choices", key));
    if (std::ranges::count(labels, key) > 1) {
      throw_here(fmt::format("\"answerKey\" is '{}', which labels two of its choices; give each its own label", key));
    }
    question_.answer = found - labels.begin();
  }

  void read_mmlu() {
    const std::vector<std::string> choices = texts_of(fields_, "choices");
    if (choices.size() > kLetters)
      throw_here(fmt::format("{} choices are more than the letters A to Z", choices.size()));
    if (fields_.has("subject")) {
      std::string subject = fields_.string("subject");
      std::ranges::replace(subject, '_', ' ');
      question_.context =
          fmt::format("The following are multiple choice questions (with answers) about {}.\n\n", subject);
    }
    question_.context += jinja::stripped(fields_.string("question"));
    for (const std::string& choice : choices) {
      question_.choices.emplace_back(1, static_cast<char>('A' + question_.choices.size()));
      question_.context += fmt::format("\n{}. {}", question_.choices.back(), choice);
    }
    question_.context += "\nAnswer:";
    question_.answer = number_of_answer("answer");
  }

  JsonFields fields_;
  const std::filesystem::path& place_;
  ChoiceQuestion question_;
};

}  // namespace

std::vector<ChoiceQuestion> read_choice_questions(const std::filesystem::path& file) {
  constexpr std::int64_t kBatchBytes = std::int64_t{4} << 20;
  std::vector<ChoiceQuestion> questions;
  DocumentReader reader(std::span(&file, 1), kBatchBytes, TextFormat::kAuto);
  reader.advise_flag("");
  for (DocumentBatch batch; reader.next(batch);) {
    for (const RawDocument& document : batch.documents) {
      if (document.line == 0) {
        throw_user_error("{} holds plain text; give questions as JSON lines", name_of_input(*document.file));
      }
      const std::filesystem::path place = place_of(*document.file, document.line, document.unit);
      questions.push_back(QuestionReader(parse_json_object(document.bytes, place), place).read());
      questions.back().line = document.line;
      if (questions.back().choices.size() < 2) throw_user_error("'{}': it has fewer than two choices", place.string());
    }
  }
  if (questions.empty()) throw_user_error("{} holds no questions", name_of_input(file));
  return questions;
}

}  // namespace teratron

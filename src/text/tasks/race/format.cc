#include "tasks/race/format.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/decompression.h"
#include "base/files/file.h"
#include "base/json_fields.h"
#include "data/text/document_reader.h"
#include "data/text/input_files.h"

namespace teratron::race {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kLetters = "ABCD";

std::optional<int> number_of(const Json& letter) {
  const auto* text = letter.get_ptr<const std::string*>();
  if (text == nullptr || text->size() != 1) return {};
  const std::size_t number = kLetters.find(text->front());
  if (number == std::string_view::npos) return {};
  return static_cast<int>(number);
}

std::optional<Level> level_named(std::string_view name) {
  if (name == "middle") return Level::kMiddle;
  if (name == "high") return Level::kHigh;
  return {};
}

std::optional<Level> level_of(std::string_view id, const fs::path& file) {
  if (id.starts_with("middle")) return Level::kMiddle;
  if (id.starts_with("high")) return Level::kHigh;
  std::optional<Level> level;
  for (const fs::path& component : file) {  // the last one that names a level counts
    std::string_view rest = component.native();
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('.'), rest.size());
      if (const auto found = level_named(rest.substr(0, end))) level = found;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return level;
}

class ArticleReader {
 public:
  // `place` is the file, with the line after a colon if it has several objects.
  ArticleReader(const Json& json, const fs::path& place) : fields_(json, place), place_(place) {}

  Article read(const fs::path& file) {
    article_.id = fields_.string("id");
    article_.text = fields_.string("article");
    article_.level = level_of(article_.id, file);
    if (is_blank(article_.text)) throw_here("its text is empty");
    const Json &questions = list("questions"), &options = list("options"), &answers = list("answers");
    if (questions.size() != options.size() || questions.size() != answers.size()) {
      throw_here("{}, {} and {}, which should be as many", counted(std::ssize(questions), "question"),
                 counted(std::ssize(options), "list of options", "lists of options"),
                 counted(std::ssize(answers), "answer"));
    }
    for (std::size_t i = 0; i < questions.size(); ++i) add_question(questions[i], options[i], answers[i]);
    return std::move(article_);
  }

 private:
  template <class... Args>
  [[noreturn]] void throw_here(fmt::format_string<Args...> format, Args&&... args) const {
    throw_user_error("'{}', article '{}': {}", place_.string(), article_.id,
                     fmt::format(format, std::forward<Args>(args)...));
  }

  const Json& list(std::string_view key) const {
    const Json& value = fields_[key];
    if (!value.is_array()) fields_.throw_not(key, "a list");
    return value;
  }

  std::string text_of(const Json& json, std::string_view what) const {
    const auto* text = json.get_ptr<const std::string*>();
    if (text == nullptr || is_blank(*text)) {
      throw_here("{} of question {} is empty or no text", what, article_.questions.size() + 1);
    }
    return *text;
  }

  void add_question(const Json& text, const Json& options, const Json& answer) {
    const std::size_t number = article_.questions.size() + 1;
    Question question{.text = text_of(text, "the text"), .options = {}};
    if (!options.is_array() || options.size() != kOptions) throw_here("question {} has not four options", number);
    for (std::size_t i = 0; i < kOptions; ++i) question.options[i] = text_of(options[i], "an option");
    const std::optional<int> right = number_of(answer);
    if (!right) throw_here("the answer to question {} is none of A, B, C, D", number);
    question.answer = *right;
    article_.questions.push_back(std::move(question));
  }

  JsonFields fields_;
  const fs::path& place_;
  Article article_;
};

Article read_article(const RawDocument& document) {
  const fs::path place = place_of(*document.file, document.line, document.unit);
  return ArticleReader(parse_json_object(document.bytes, place), place).read(*document.file);
}

}  // namespace

Dataset read_dataset(std::span<const fs::path> paths) {
  constexpr std::int64_t kBatchBytes = std::int64_t{4} << 20;
  Dataset articles;
  std::unordered_set<std::string> ids;
  bool has_questions = false;
  for (const fs::path& file : find_input_files(paths)) {
    // RACE's own files are one object each, on any number of lines.
    const TextFormat format = content_ending(file) == ".txt" ? TextFormat::kText : TextFormat::kAuto;
    DocumentReader reader(std::span(&file, 1), kBatchBytes, format);
    reader.advise_flag("");
    for (DocumentBatch batch; reader.next(batch);) {
      for (const RawDocument& document : batch.documents) {
        Article article = read_article(document);
        if (!ids.insert(article.id).second) {
          throw_user_error("'{}' has the article '{}', which was read before", document.file->string(), article.id);
        }
        has_questions = has_questions || !article.questions.empty();
        articles.push_back(std::move(article));
      }
    }
  }
  if (!has_questions) throw_user_error("'{}' and what else was named hold no questions", paths.front().string());
  return articles;
}

std::string question_with_option(std::string_view question, std::string_view option) {
  std::string text;
  for (const char each : question) {
    if (each == '_') {
      text += option;
    } else {
      text += each;
    }
  }
  if (question.find('_') == std::string_view::npos) text.append(" ").append(option);
  return text;
}

Predictions read_predictions(const fs::path& path) {
  const Json json = parse_json_object(read_decompressed(path), path);
  Predictions predictions;
  for (const auto& item : json.items()) {
    const auto refuse = [&] {
      throw_user_error("'{}', article '{}': the answers must be a list of A, B, C, D", path.string(), item.key());
    };
    if (!item.value().is_array()) refuse();
    std::vector<int>& answers = predictions[item.key()];
    for (const Json& letter : item.value()) {
      const std::optional<int> number = number_of(letter);
      if (!number) refuse();
      answers.push_back(*number);
    }
  }
  return predictions;
}

void write_predictions(const fs::path& path, const Predictions& predictions) {
  Json json = Json::object();
  for (const auto& [id, answers] : predictions) {
    Json& letters = json[id] = Json::array();
    for (const int answer : answers) letters.push_back(std::string(1, kLetters.at(static_cast<std::size_t>(answer))));
  }
  write_file_atomically(path, json.dump() + "\n");
}

}  // namespace teratron::race

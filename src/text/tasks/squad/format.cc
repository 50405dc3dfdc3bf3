#include "tasks/squad/format.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/files/decompression.h"
#include "base/files/file.h"
#include "base/json_fields.h"
#include "data/text/input_files.h"

namespace teratron::squad {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const Json& list(const JsonFields& fields, std::string_view key) {
  const Json& value = fields[key];
  if (!value.is_array()) fields.throw_not(key, "a list");
  return value;
}

class Reader {
 public:
  Reader(const fs::path& path, Version version) : path_(path), version_(version) {}

  Dataset read() {
    const Json json = parse_json_object(read_decompressed(path_), path_);
    for (const Json& article : list(JsonFields(json, path_), "data")) {
      for (const Json& paragraph : list(JsonFields(article, path_), "paragraphs")) read_paragraph(paragraph);
    }
    if (data_.questions.empty()) throw_user_error("'{}' holds no questions", path_.string());
    return std::move(data_);
  }

 private:
  void read_paragraph(const Json& paragraph) {
    const JsonFields fields(paragraph, path_);
    data_.paragraphs.push_back(fields.string("context"));
    if (is_blank(data_.paragraphs.back())) {
      throw_user_error("'{}': paragraph {} has an empty context", path_.string(), data_.paragraphs.size());
    }
    for (const Json& question : list(fields, "qas")) read_question(question);
  }

  void read_question(const Json& json) {
    const JsonFields fields(json, path_);
    Question question{.id = fields.string("id"),
                      .text = fields.string("question"),
                      .answers = {},
                      .paragraph = data_.paragraphs.size() - 1};
    if (!ids_.insert(question.id).second) {
      throw_user_error("'{}' has the question '{}' twice", path_.string(), question.id);
    }
    question.is_labelled = fields.has("answers");
    if (question.is_labelled) read_answers(fields, question);
    data_.questions.push_back(std::move(question));
  }

  void read_answers(const JsonFields& fields, Question& question) const {
    const bool is_impossible = fields.has("is_impossible") && fields["is_impossible"] == true;
    for (const Json& one : list(fields, "answers")) {
      const JsonFields answer(one, path_);
      question.answers.push_back({.text = answer.string("text"), .start = {}});
      if (answer.has("answer_start")) {
        question.answers.back().start = answer.integer("answer_start", 0, std::int64_t{1} << 40);
      }
      const bool is_blank_answer = is_blank(question.answers.back().text);
      if (is_blank_answer && is_impossible) {  // as good as none
        question.answers.pop_back();
        continue;
      }
      if (is_blank_answer) {
        throw_user_error("'{}': the question '{}' has an answer without text; remove the answer", path_.string(),
                         question.id);
      }
      if (data_.paragraphs.back().find(question.answers.back().text) == std::string::npos) {
        throw_user_error("'{}': the answer '{}' of the question '{}' does not occur in its paragraph", path_.string(),
                         question.answers.back().text, question.id);
      }
    }
    if (question.answers.empty() && version_ == Version::kSquad1) {
      throw_user_error("'{}': the question '{}' has no answer, as only SQuAD 2.0 has such: score it as squad2",
                       path_.string(), question.id);
    }
  }

  const fs::path& path_;
  Version version_;
  Dataset data_;
  std::unordered_set<std::string> ids_;
};

}  // namespace

Dataset read_dataset(const fs::path& path, Version version) { return Reader(path, version).read(); }

std::map<std::string, std::string> read_predictions(const fs::path& path) {
  const Json json = parse_json_object(read_decompressed(path), path);
  const JsonFields fields(json, path);
  std::map<std::string, std::string> predictions;
  for (const auto& item : json.items()) predictions.emplace(item.key(), fields.string(item.key()));
  return predictions;
}

void write_predictions(const fs::path& path, const std::map<std::string, std::string>& predictions) {
  write_file_atomically(path, Json(predictions).dump() + "\n");
}

}  // namespace teratron::squad

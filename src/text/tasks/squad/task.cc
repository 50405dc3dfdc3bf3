// SQuAD 1.1 and 2.0: a sequence for each window of a paragraph, the answers in a model's outputs, and the entries of
// both.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/host/threads.h"
#include "base/utf8.h"
#include "tasks/pair_encoding.h"
#include "tasks/squad/answers.h"
#include "tasks/squad/format.h"
#include "tasks/squad/score.h"
#include "tasks/task.h"
#include "tasks/task_entry.h"

namespace teratron::squad {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kParagraphsAtATime = 16;
constexpr std::int64_t kQuestionsAtATime = 64;

Dataset read_files(std::span<const fs::path> files, Version version) {
  Dataset all;
  std::unordered_set<std::string> ids;
  for (const fs::path& file : files) {
    Dataset one = read_dataset(file, version);
    for (Question& question : one.questions) {
      if (!ids.insert(question.id).second) {
        throw_user_error("'{}' has the question '{}', which was read before", file.string(), question.id);
      }
      question.paragraph += all.paragraphs.size();
      all.questions.push_back(std::move(question));
    }
    std::ranges::move(one.paragraphs, std::back_inserter(all.paragraphs));
  }
  return all;
}

void check_reading(const TaskReading& reading, const TextFrame& frame) {
  if (reading.max_query_length < 1 || reading.max_answer_length < 1 || reading.n_best < 1 || reading.doc_stride < 0) {
    throw_user_error(
        "--max-query-length, --max-answer-length and --n-best must be 1 at least, and --doc-stride 0 at least");
  }
  const std::int64_t room = reading.seq_length - frame.tokens_of_two() - reading.max_query_length;
  if (room > reading.doc_stride) return;
  throw_user_error(
      "--seq-length {} leaves {} tokens for the paragraph beside a question of --max-query-length {}, and a window "
      "shares --doc-stride {} with the next; lower one of the latter two, or raise --seq-length by {} at least",
      reading.seq_length, std::max<std::int64_t>(room, 0), reading.max_query_length, reading.doc_stride,
      reading.doc_stride + 1 - room);
}

// A is the question, cut to max_query_length; B is a window of the paragraph (answers.h). Each of a question's windows
// is an example. Labels are the indices of the first answer's first and last token, both 0 if the window does not hold
// the whole answer, or there is none. An answer without answer_start is the first occurrence in the paragraph.
class QuestionSet : public TaskSet {
 public:
  QuestionSet(Dataset data, Version version, const Tokenizer& tokenizer, const TaskReading& reading, bool training)
      : data_(std::move(data)),
        version_(version),
        rules_{.max_answer_length = reading.max_answer_length,
               .n_best = reading.n_best,
               .may_be_none = version == Version::kSquad2,
               .null_score_diff_threshold = reading.null_score_diff_threshold} {
    const TextFrame frame = frame_of_pairs(tokenizer, reading.seq_length);
    check_reading(reading, frame);
    if (training) leave_out_unlabelled();
    encode_paragraphs(tokenizer);
    TokenLists questions = encode_texts(
        tokenizer, std::ssize(data_.questions), [&](std::size_t i) -> auto& { return data_.questions[i].text; });
    for (std::vector<std::int32_t>& question : questions) {
      if (std::ssize(question) <= reading.max_query_length) continue;
      question.resize(static_cast<std::size_t>(reading.max_query_length));
      ++cut_questions_;
    }
    cut_windows(questions, frame, reading);
    find_labels();
    for (Question& question : data_.questions) question.text = {};  // only answers and ids are needed later
    add_notes(reading);
  }

  bool has_labels() const override {
    return std::ranges::all_of(data_.questions, [](const Question& each) { return each.is_labelled; });
  }

  std::vector<TaskScore> scores(const TaskOutputValues& outputs) const override {
    check(has_labels(), "scores of questions without labels");
    const Scores all = score(data_, predictions(outputs), version_).all;
    return {{"f1", all.f1}, {"exact_match", all.exact_match}};
  }

  void write_predictions(const fs::path& path, const TaskOutputValues& outputs) const override {
    squad::write_predictions(path, predictions(outputs));
  }

 private:
  void leave_out_unlabelled() {
    unlabelled_ = static_cast<std::int64_t>(
        std::erase_if(data_.questions, [](const Question& each) { return !each.is_labelled; }));
    if (data_.questions.empty()) throw_unlabelled(unlabelled_, "question");
  }

  void encode_paragraphs(const Tokenizer& tokenizer) {
    tokens_.resize(data_.paragraphs.size());
    parallel_for(std::ssize(tokens_), kParagraphsAtATime, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        tokens_[i] = tokenizer.encode_with_offsets(data_.paragraphs[i]);
      }
    });
  }

  void cut_windows(const TokenLists& questions, const TextFrame& frame, const TaskReading& reading) {
    TokenLists contexts(tokens_.size());
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      for (const TokenSpan& token : tokens_[i]) contexts[i].push_back(token.id);
    }
    std::vector<TokenPair> pairs;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      first_windows_.push_back(windows_.size());
      const std::vector<std::int32_t>& context = contexts[data_.questions[i].paragraph];
      const std::int64_t room = reading.seq_length - frame.tokens_of_two() - std::ssize(questions[i]);
      for (const Window& window : windows_of(std::ssize(context), room, reading.doc_stride)) {
        windows_.push_back(window);
        pairs.push_back({.a = questions[i],
                         .b = std::span(context).subspan(static_cast<std::size_t>(window.first),
                                                         static_cast<std::size_t>(window.count))});
      }
    }
    first_windows_.push_back(windows_.size());
    examples_.labels_each = 2;
    write_sequences(pairs, frame, examples_);
  }

  // Labels for the first answer, as BERT learns it.
  std::optional<AnswerTokens> tokens_of_answer(const Question& question) {
    const std::string& context = data_.paragraphs[question.paragraph];
    const Answer& answer = question.answers.front();
    const std::size_t begin = begin_of_answer(context, answer);
    if (answer.start &&
        count_characters(std::string_view(context).substr(0, begin)) != static_cast<std::size_t>(*answer.start)) {
      ++moved_;
    }
    return tokens_of_bytes(tokens_[question.paragraph], begin, begin + answer.text.size());
  }

  void find_labels() {
    for (std::size_t i = 0; i < data_.questions.size(); ++i) {
      const Question& question = data_.questions[i];
      const bool has_answer = !question.answers.empty();
      std::optional<AnswerTokens> tokens;
      if (has_answer) tokens = tokens_of_answer(question);
      if (question.is_labelled && !has_answer) ++without_answer_;
      bool is_in_one = false;
      for (std::size_t at = first_windows_[i]; at < first_windows_[i + 1]; ++at) {
        const Window& window = windows_[at];
        std::array<std::int32_t, 2> labels = {0, 0};
        if (!question.is_labelled) {
          labels = {-1, -1};
        } else if (tokens && tokens->first >= window.first && tokens->last < window.first + window.count) {
          const std::int64_t offset = examples_.second(static_cast<std::int64_t>(at)) - window.first;
          labels = {static_cast<std::int32_t>(tokens->first + offset),
                    static_cast<std::int32_t>(tokens->last + offset)};
          is_in_one = true;
        }
        examples_.labels.insert(examples_.labels.end(), labels.begin(), labels.end());
      }
      if (has_answer && !is_in_one) ++in_no_window_;
    }
  }

  void add_notes(const TaskReading& reading) {
    notes_ = fmt::format("{} on {}, {} of up to {} tokens", counted(std::ssize(data_.questions), "question"),
                         counted(std::ssize(data_.paragraphs), "paragraph"), counted(std::ssize(windows_), "window"),
                         reading.seq_length) +
             note_of(unlabelled_, "question", "without labels left out") +
             note_of(cut_questions_, "question", fmt::format("cut to {} tokens", reading.max_query_length)) +
             note_of(without_answer_, "question", "without an answer") +
             note_of(moved_, "answer", "not where answer_start says, and taken where the paragraph has it first") +
             note_of(in_no_window_, "answer", "whole in no window, and taken for none") +
             (has_labels() ? "" : "; no labels");
  }

  std::string_view answer_of(std::size_t question, const TaskOutputValues& outputs) const {
    const std::size_t paragraph = data_.questions[question].paragraph;
    std::vector<WindowLogits> logits;
    for (std::size_t at = first_windows_[question]; at < first_windows_[question + 1]; ++at) {
      const std::span<const float> both = outputs[at];
      logits.push_back({.window = windows_[at],
                        .begin_index = examples_.second(static_cast<std::int64_t>(at)),
                        .begins = both.first(both.size() / 2),
                        .ends = both.last(both.size() / 2)});
    }
    return best_answer(data_.paragraphs[paragraph], tokens_[paragraph], logits, rules_);
  }

  std::map<std::string, std::string> predictions(const TaskOutputValues& outputs) const {
    check_outputs(outputs, examples_.count(), [&](std::int64_t i) { return 2 * examples_.length(i); });
    std::vector<std::string_view> answers(data_.questions.size());
    parallel_for(std::ssize(answers), kQuestionsAtATime, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        answers[i] = answer_of(i, outputs);
      }
    });
    std::map<std::string, std::string> by_id;
    for (std::size_t i = 0; i < answers.size(); ++i) by_id.emplace(data_.questions[i].id, answers[i]);
    return by_id;
  }

  Dataset data_;  // without the questions' texts
  Version version_;
  AnswerRules rules_;
  std::vector<std::vector<TokenSpan>> tokens_;  // by paragraph
  std::vector<Window> windows_;                 // one per example
  std::vector<std::size_t> first_windows_;      // [questions + 1]: offset of each question's windows, and the end
  std::int64_t unlabelled_ = 0, cut_questions_ = 0, without_answer_ = 0, moved_ = 0, in_no_window_ = 0;
};

template <Version version>
std::unique_ptr<TaskSet> open_questions(std::span<const fs::path> files, const Tokenizer& tokenizer,
                                        const TaskReading& reading, bool training) {
  return std::make_unique<QuestionSet>(read_files(files, version), version, tokenizer, reading, training);
}

std::string line_of(const char* what, const Scores& scores) {
  return fmt::format("{:<22}{:>7} {:<9}   exact match {:8.4f}   F1 {:8.4f}\n", what, scores.questions,
                     scores.questions == 1 ? "question" : "questions", scores.exact_match, scores.f1);
}

nlohmann::ordered_json json_of(const Scores& scores) {
  return {{"questions", scores.questions}, {"exact_match", scores.exact_match}, {"f1", scores.f1}};
}

template <Version version>
ScoreReport score_answers(std::span<const fs::path> data, const fs::path& predictions, const TaskReading& /*reading*/) {
  const Dataset dataset = read_files(data, version);
  const auto scores = score(dataset, read_predictions(predictions), version);
  std::string text = line_of("all", scores.all);
  nlohmann::ordered_json json = json_of(scores.all);
  json["without_prediction"] = scores.all.without_prediction;
  if (version == Version::kSquad2) {
    text += line_of("with an answer", scores.with_answer) + line_of("without an answer", scores.without_answer);
    json["with_answer"] = json_of(scores.with_answer);
    json["without_answer"] = json_of(scores.without_answer);
  }
  if (scores.all.without_prediction > 0) {
    text += fmt::format("{} without a prediction, which counts as wrong\n",
                        counted(scores.all.without_prediction, "question"));
  }
  return {.text = text, .json = json.dump()};
}

constexpr TaskScoring answer_scoring(Version version) {
  const bool is_first = version == Version::kSquad1;
  return {.summary = is_first ? "scores answers to SQuAD 1.1 by exact match and F1"
                              : "scores answers to SQuAD 2.0, some of which are none",
          .data = "SQuAD's questions and answers (JSON, plain or compressed)",
          .predictions = "JSON: {question id: answer}; \"\" where there is none",
          .score = is_first ? score_answers<Version::kSquad1> : score_answers<Version::kSquad2>};
}

// The entry of a version; `batch` is Table 6's.
template <Version kVersion>
consteval TaskEntry entry(std::string_view name, std::string_view ability, std::array<std::int64_t, 3> batch) {
  return complete({
      .name = name,
      .ability = ability,
      .shape = {TaskOutputs::kSpans, 2},
      .seq_length = 384,
      .max_query_length = 64,
      .predictions_extension = ".json",
      .paper =
          {
              .batch = batch,
              .learning_rate = {3e-5, 3e-5, 1e-5},
              .epochs = 2,
              .weight_decay = 0.01,
              .search_rates = kBertSearchRates,
          },
      .open = open_questions<kVersion>,
      .scoring = answer_scoring(kVersion),
  });
}

}  // namespace
}  // namespace teratron::squad

namespace teratron {

constinit const TaskEntry kSquad1Task =
    squad::entry<squad::Version::kSquad1>("squad1", "finds answers in paragraphs (SQuAD 1.1)", {64, 48, 48});
constinit const TaskEntry kSquad2Task =
    squad::entry<squad::Version::kSquad2>("squad2", "finds answers that may not be there (SQuAD 2.0)", {48, 64, 48});

}  // namespace teratron

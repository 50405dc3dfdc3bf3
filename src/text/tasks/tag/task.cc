// The task tag: labels of words, such as names of people and places. As in transformers' run_ner.py, a word's label is
// that of its first token, and its other tokens have none.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/json_string.h"
#include "tasks/custom/labels.h"
#include "tasks/custom/metrics.h"
#include "tasks/custom/predictions.h"
#include "tasks/pair_encoding.h"
#include "tasks/squad/answers.h"
#include "tasks/tag/predictions.h"
#include "tasks/tag/sentences.h"
#include "tasks/tag/spans.h"
#include "tasks/task.h"
#include "tasks/task_entry.h"

namespace teratron::tag {
namespace {

namespace fs = std::filesystem;

LabelSet labels_in(const Sentences& sentences, const TaskReading& reading) {
  if (reading.label_names.empty()) return custom::labels_in(sentences.words, LabelKind::kNames);
  LabelSet given{.names = reading.label_names};
  const custom::LabelWords known(given);
  for (const custom::Row& word : sentences.words.rows) known.of(word, sentences.words);
  return given;
}

// True and predicted labels of words, as numbers.
struct LabelledWords {
  std::span<const std::size_t> begins;  // of their sentences
  std::span<const std::int32_t> labels, said;
};

// Calls visit(labels, said) with the words of each sentence that have a label.
template <class Visit>
void visit_sentences(const LabelledWords& words, const Visit& visit) {
  for (std::size_t i = 0; i + 1 < words.begins.size(); ++i) {
    std::vector<std::int32_t> labels, said;
    for (std::size_t word = words.begins[i]; word < words.begins[i + 1]; ++word) {
      if (words.labels[word] == kUnknownLabel) continue;
      labels.push_back(words.labels[word]);
      said.push_back(words.said[word]);
    }
    visit(labels, said);
  }
}

SpanScores span_scores(const LabelledWords& words, const SpanLabels& spans) {
  SpanScores scores(spans);
  visit_sentences(
      words, [&](const auto& labels, const auto& said) { scores.add(spans.spans_in(labels), spans.spans_in(said)); });
  return scores;
}

// F1 of spans first, or without spans the accuracy.
std::vector<TaskScore> scores_of(const LabelledWords& words, const SpanLabels& spans, std::int64_t labels) {
  std::vector<std::int32_t> known, said;
  visit_sentences(words, [&](const auto& labels_here, const auto& said_here) {
    known.insert(known.end(), labels_here.begin(), labels_here.end());
    said.insert(said.end(), said_here.begin(), said_here.end());
  });
  const custom::LabelMetrics metrics = custom::label_metrics(known, said, labels);
  if (!spans.are_spans()) return {{"accuracy", 100 * metrics.accuracy}, {"f1_macro", 100 * metrics.f1_macro}};
  const SpanScores found = span_scores(words, spans);
  std::vector<TaskScore> scores = {{"f1", 100 * found.all.f1()},
                                   {"precision", 100 * found.all.precision()},
                                   {"recall", 100 * found.all.recall()},
                                   {"accuracy", 100 * metrics.accuracy}};
  for (std::size_t type = 0; type < spans.types().size(); ++type) {
    scores.push_back({"f1_" + spans.types()[type], 100 * found.by_type[type].f1()});
  }
  return scores;
}

// Position of a word's first token: the sequence, and the index in it. -1: the word has none in any sequence.
struct WordPlace {
  std::int64_t sequence = -1, token = 0;
};

class TaggedSentences : public TaskSet {
 public:
  TaggedSentences(Sentences sentences, const Tokenizer& tokenizer, const TaskReading& reading, bool training)
      : sentences_(std::move(sentences)),
        labels_(reading.labels.empty() ? labels_in(sentences_, reading) : reading.labels),
        spans_(labels_.names) {
    const custom::LabelWords known(labels_);
    for (const custom::Row& word : sentences_.words.rows) words_.push_back(known.of(word, sentences_.words));
    const auto outside = std::ranges::find(labels_.names, "O");
    without_token_ = static_cast<std::int32_t>(outside == labels_.names.end() ? 0 : outside - labels_.names.begin());
    encode(tokenizer, reading, training);
    place_labels();
    add_label_notes();
  }

  bool has_labels() const override {
    return std::ranges::any_of(words_, [](std::int32_t label) { return label != kUnknownLabel; });
  }

  std::vector<TaskScore> scores(const TaskOutputValues& outputs) const override {
    check(has_labels(), "scores of words without labels");
    const std::vector<std::int32_t> said = predicted(outputs);
    return scores_of({.begins = sentences_.begins, .labels = words_, .said = said}, spans_, std::ssize(labels_.names));
  }

  void write_predictions(const fs::path& path, const TaskOutputValues& outputs) const override {
    tag::write_predictions(path, sentences_, predicted(outputs), labels_.names);
  }

 private:
  // Tokens of each word alone. Byte-level BPE has one with a space before it, as in the middle of a text.
  TokenLists tokens_of_words(const Tokenizer& tokenizer) const {
    const bool has_spaces = tokenizer.kind() == TokenizerKind::kBytePair;
    return encode_texts(tokenizer, std::ssize(words_), [&](std::size_t i) {
      const std::string& word = sentences_.words.rows[i].text;
      return has_spaces && !word.starts_with(' ') ? " " + word : word;
    });
  }

  bool has_label(std::size_t sentence) const {
    return std::any_of(words_.begin() + static_cast<std::ptrdiff_t>(sentences_.begins[sentence]),
                       words_.begin() + static_cast<std::ptrdiff_t>(sentences_.begins[sentence + 1]),
                       [](std::int32_t label) { return label != kUnknownLabel; });
  }

  // Sentences to train on lose their ends, as in run_ner.py. Others are read in windows, so that every word is scored.
  void encode(const Tokenizer& tokenizer, const TaskReading& reading, bool training) {
    const TextFrame frame = frame_of_pairs(tokenizer, reading.seq_length, /*has_second=*/false);
    const std::int64_t room = reading.seq_length - TextFrame::kTokensOfOne;
    if (reading.doc_stride < 0 || reading.doc_stride >= room) {
      throw_user_error(
          "a window of {} tokens has room for {} of a sentence, and shares --doc-stride {} with the next; lower that "
          "or raise --seq-length",
          reading.seq_length, room, reading.doc_stride);
    }
    const TokenLists tokens = tokens_of_words(tokenizer);
    places_.resize(words_.size());
    TokenLists texts(static_cast<std::size_t>(sentences_.count()));
    std::vector<TokenPair> sequences;
    std::int64_t words = 0, left_out = 0, long_ones = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (training && !has_label(i)) {
        ++left_out;
        continue;
      }
      const std::vector<std::int64_t> firsts = join_words(i, tokens, texts[i]);
      words += std::ssize(firsts);
      const std::int64_t all = std::ssize(texts[i]);
      if (all > room) ++long_ones;
      const auto windows = squad::windows_of(training ? std::min(all, room) : all, room, reading.doc_stride);
      for (std::size_t word = 0; word < firsts.size(); ++word) {
        const std::size_t number = sentences_.begins[i] + word;
        if (!tokens[number].empty()) places_[number] = best_place(firsts[word], windows, std::ssize(sequences));
        if (!tokens[number].empty() && places_[number].sequence < 0) ++lost_words_;
      }
      for (const squad::Window& window : windows) {
        const auto first = static_cast<std::size_t>(window.first), count = static_cast<std::size_t>(window.count);
        sequences.push_back({.a = std::span(texts[i]).subspan(first, count), .b = {}});
      }
    }
    if (sequences.empty()) throw_unlabelled(left_out, "sentence");
    write_sequences(sequences, frame, examples_, /*has_second=*/false);
    notes_ = fmt::format("{} of {}", counted(sentences_.count() - left_out, "sentence"), counted(words, "word"));
    if (long_ones > 0) {
      notes_ += training ? fmt::format("; {} cut to {} tokens, without {}", long_ones, reading.seq_length,
                                       counted(lost_words_, "word"))
                         : fmt::format("; {} read in windows of {} tokens", long_ones, reading.seq_length);
    }
    notes_ += note_of(left_out, "sentence", "without a label left out");
  }

  // Makes the text of a sentence of its words' tokens. Returns the index of each word's first token.
  std::vector<std::int64_t> join_words(std::size_t sentence, const TokenLists& tokens,
                                       std::vector<std::int32_t>& text) {
    std::vector<std::int64_t> firsts;
    for (std::size_t word = sentences_.begins[sentence]; word < sentences_.begins[sentence + 1]; ++word) {
      firsts.push_back(std::ssize(text));
      text.insert(text.end(), tokens[word].begin(), tokens[word].end());
      if (tokens[word].empty()) ++empty_words_;
    }
    return firsts;
  }

  // The window with the most context on a token's poorer side, of those that hold the token (Devlin et al.'s rule for
  // SQuAD). `first` is the number of the first window's sequence.
  static WordPlace best_place(std::int64_t token, std::span<const squad::Window> windows, std::int64_t first) {
    WordPlace best;
    std::int64_t most = -1;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const std::int64_t before = token - windows[i].first, after = windows[i].count - 1 - before;
      if (std::min(before, after) <= most) continue;
      most = std::min(before, after);
      best = {.sequence = first + static_cast<std::int64_t>(i), .token = 1 + before};  // after [CLS]
    }
    return best;
  }

  void place_labels() {
    examples_.labels_each = TaskExamples::kEachToken;
    examples_.labels.assign(examples_.ids.size(), kUnknownLabel);
    for (std::size_t word = 0; word < words_.size(); ++word) {
      const auto [sequence, token] = places_[word];
      if (sequence < 0) continue;
      examples_.labels[static_cast<std::size_t>(examples_.begins[static_cast<std::size_t>(sequence)] + token)] =
          words_[word];
    }
  }

  void add_label_notes() {
    notes_ +=
        note_of(empty_words_, "word",
                fmt::format("without a token, taken for {}", labels_.names[static_cast<std::size_t>(without_token_)]));
    if (!has_labels()) {
      notes_ += "; no labels";
      return;
    }
    notes_ += note_of(std::ranges::count(words_, kUnknownLabel), "word", "without a label");
    if (!spans_.are_spans()) return;
    const SpanScores found = span_scores({.begins = sentences_.begins, .labels = words_, .said = words_}, spans_);
    for (std::size_t type = 0; type < spans_.types().size(); ++type) {
      notes_ += fmt::format("; {} {}", found.by_type[type].labelled, spans_.types()[type]);
    }
  }

  std::vector<std::int32_t> predicted(const TaskOutputValues& outputs) const {
    const std::int64_t each = std::ssize(labels_.names);
    check_outputs(outputs, examples_.count(), [&](std::int64_t i) { return each * examples_.length(i); });
    std::vector<std::int32_t> labels;
    for (const auto& [sequence, token] : places_) {
      if (sequence < 0) {
        labels.push_back(without_token_);
        continue;
      }
      const std::span<const float> all = outputs[static_cast<std::size_t>(sequence)];
      labels.push_back(
          index_of_largest(all.subspan(static_cast<std::size_t>(token * each), static_cast<std::size_t>(each))));
    }
    return labels;
  }

  const Sentences sentences_;
  const LabelSet labels_;
  const SpanLabels spans_;
  std::vector<std::int32_t> words_;                // the label of each
  std::vector<WordPlace> places_;                  // of each word
  std::int32_t without_token_ = 0;                 // the label of words without a token
  std::int64_t empty_words_ = 0, lost_words_ = 0;  // without a token; beyond the end of a text to train on
};

std::unique_ptr<TaskSet> open_sentences(std::span<const fs::path> files, const Tokenizer& tokenizer,
                                        const TaskReading& reading, bool training) {
  return std::make_unique<TaggedSentences>(read_sentences(files, reading), tokenizer, reading, training);
}

LabelSet labels_of_files(std::span<const fs::path> files, const TaskReading& reading) {
  return labels_in(read_sentences(files, reading), reading);
}

// Precision, recall and F1 of each type, as lines and as an object.
void add_types(const SpanScores& found, const SpanLabels& spans, ScoreReport& report) {
  auto json = nlohmann::ordered_json::parse(report.json);
  json["by_type"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < spans.types().size(); ++i) {
    const SpanCounts& one = found.by_type[i];
    report.text +=
        fmt::format("{:<12}{:>7} spans   precision {:8.4f}   recall {:8.4f}   F1 {:8.4f}\n", spans.types()[i],
                    one.labelled, 100 * one.precision(), 100 * one.recall(), 100 * one.f1());
    json["by_type"][spans.types()[i]] = {{"spans", one.labelled},
                                         {"precision", 100 * one.precision()},
                                         {"recall", 100 * one.recall()},
                                         {"f1", 100 * one.f1()}};
  }
  report.json = json_text(json);
}

ScoreReport score_sentences(std::span<const fs::path> data, const fs::path& predictions, const TaskReading& reading) {
  const Sentences sentences = read_sentences(data, reading, /*need_words=*/false);
  const custom::Table said = read_predictions(predictions, sentences, reading.label_names);
  const custom::LabelPairs pairs = custom::label_pairs(sentences.words, said, LabelKind::kNames);
  const LabelledWords words{.begins = sentences.begins, .labels = pairs.labels, .said = pairs.said};
  const SpanLabels spans(pairs.set.names);
  ScoreReport report = custom::report_of(scores_of(words, spans, std::ssize(pairs.set.names)), pairs.labelled(),
                                         pairs.unlabelled, "label", "word");
  if (spans.are_spans()) add_types(span_scores(words, spans), spans, report);
  return report;
}

}  // namespace
}  // namespace teratron::tag

namespace teratron {

constinit const TaskEntry kTagTask = complete({
    .name = "tag",
    .ability = "tells labels of words, such as names of people and places, from files of your own",
    .shape = {TaskOutputs::kTokenLabels, 0},
    .seq_length = 128,
    .predictions_extension = ".jsonl",
    .paper = bert_fine_tuning(5e-5),
    .open = tag::open_sentences,
    .scoring =
        {
            .summary = "scores labels of words that `eval tag` has predicted",
            .data = "your CoNLL files, .jsonl or .parquet with labels",
            .predictions =
                "JSON lines: {\"tokens\": [word, ..], \"ner_tags\": [label, ..]}, or CoNLL: word, tab, label",
            .score = tag::score_sentences,
        },
    .has_labels_of_files = true,
    .labels_in_files = tag::labels_of_files,
    .text_column = tag::kWordsKey,
    .label_column = tag::kLabelsKey,
});

}  // namespace teratron

// Small task files in the official formats, by rules that a tiny BERT can learn, with a vocabulary of their words; and
// outputs that are right.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/philox.h"
#include "checkpoint/damage.h"
#include "tasks/task.h"
#include "tokenizer/word_piece/word_piece_model.h"

namespace teratron::testing {

inline constexpr std::array kTaskWords = {"rain", "snow", "wind", "sun",  "fog",  "hail",  "tree", "bird",
                                          "fish", "road", "hill", "lake", "sand", "stone", "moss", "leaf"};

// The tokens of vocab.txt that the files below are made of.
inline std::string task_vocabulary() {
  std::string tokens = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (const char* mark : {"yes", "no", "maybe", "same", "other", "key", "what", "is", ".", "?", "_"})
    tokens += fmt::format("{}\n", mark);
  for (const char* word : kTaskWords) tokens += fmt::format("{}\n", word);
  return tokens;
}

inline Tokenizer task_tokenizer(const TemporaryFolder& folder) {
  put_file(folder / "vocab.txt", task_vocabulary());
  return Tokenizer::load(folder / "vocab.txt");
}

inline std::string task_word(RandomSequence& random) { return kTaskWords[random.below(kTaskWords.size())]; }

inline std::string task_words(RandomSequence& random, std::uint64_t least, std::uint64_t most) {
  std::string text = task_word(random);
  for (std::uint64_t more = least - 1 + random.below(most - least + 1); more > 0; --more)
    text += " " + task_word(random);
  return text;
}

// The hypothesis begins with a word for the label: no (contradiction), yes (entailment), maybe (neutral).
inline std::string mnli_file(std::int64_t examples, RandomSequence& random) {
  std::string text = "index\tsentence1\tsentence2\tgold_label\n";
  for (std::int64_t i = 0; i < examples; ++i) {
    const std::uint64_t label = random.below(3);
    text += fmt::format("{}\t{}\t{} {}\t{}\n", i, task_words(random, 2, 9), std::array{"no", "yes", "maybe"}[label],
                        task_words(random, 1, 6), std::array{"contradiction", "entailment", "neutral"}[label]);
  }
  return text;
}

// The second question ends with "same" where it is a duplicate, and with "other" where not.
inline std::string qqp_file(std::int64_t examples, RandomSequence& random) {
  std::string text = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n";
  for (std::int64_t i = 0; i < examples; ++i) {
    const std::uint64_t label = random.below(2);
    text += fmt::format("{}\t{}\t{}\t{} ?\t{} {} ?\t{}\n", i, 2 * i, 2 * i + 1, task_words(random, 2, 6),
                        task_words(random, 2, 6), label == 1 ? "same" : "other", label);
  }
  return text;
}

// The answer is the one to three words between "key" and the next dot. In version 2.0, one paragraph in three has no
// "key", and its question no answer. Paragraphs have up to `most_words` words before it and behind it each.
inline std::string squad_file(std::int64_t examples, bool has_impossible, RandomSequence& random,
                              std::uint64_t most_words = 12) {
  nlohmann::json paragraphs = nlohmann::json::array();
  for (std::int64_t i = 0; i < examples; ++i) {
    const bool is_impossible = has_impossible && random.below(3) == 0;
    std::string context = task_words(random, 1, most_words);
    nlohmann::json answers = nlohmann::json::array();
    if (!is_impossible) {
      const std::string answer = task_words(random, 1, 3);
      context += " key ";
      answers.push_back({{"text", answer}, {"answer_start", context.size()}});
      context += answer;
    }
    context += " . " + task_words(random, 1, most_words);
    nlohmann::json question = {{"id", fmt::format("q{}", i)}, {"question", "what is key ?"}, {"answers", answers}};
    if (has_impossible) question["is_impossible"] = is_impossible;
    paragraphs.push_back({{"context", context}, {"qas", {question}}});
  }
  return nlohmann::json{{"data", {{{"title", "t"}, {"paragraphs", paragraphs}}}}}.dump();
}

// One question an article, JSON lines: the right option is the word after "key".
inline std::string race_file(std::int64_t examples, RandomSequence& random) {
  std::string text;
  for (std::int64_t i = 0; i < examples; ++i) {
    std::vector<std::string> options;
    while (options.size() < 4) {
      std::string option = task_word(random);
      if (std::ranges::find(options, option) == options.end()) options.push_back(std::move(option));
    }
    const std::uint64_t answer = random.below(4);
    const std::string article = task_words(random, 1, 8) + " key " + options[answer] + " . " + task_words(random, 1, 8);
    text += nlohmann::json{{"id", fmt::format("{}{}.txt", random.below(2) == 0 ? "middle" : "high", i)},
                           {"article", article},
                           {"questions", {random.below(2) == 0 ? "key is _ ." : "what is key ?"}},
                           {"options", {options}},
                           {"answers", {std::string(1, "ABCD"[answer])}}}
                .dump() +
            "\n";
  }
  return text;
}

// A text that begins with "yes" is positive, with "no" negative. JSON lines.
inline std::string classify_file(std::int64_t examples, RandomSequence& random) {
  std::string text;
  for (std::int64_t i = 0; i < examples; ++i) {
    const bool is_positive = random.below(2) == 0;
    text += nlohmann::json{{"text", (is_positive ? "yes " : "no ") + task_words(random, 2, 9)},
                           {"label", is_positive ? "positive" : "negative"}}
                .dump() +
            "\n";
  }
  return text;
}

// The second text has the first k of the eight words of the first one, and "key" in the place of the others; their
// similarity is k / 8. JSON lines.
inline std::string embed_file(std::int64_t examples, RandomSequence& random) {
  std::string text;
  for (std::int64_t i = 0; i < examples; ++i) {
    const auto same = static_cast<std::int64_t>(random.below(9));
    std::string first, second;
    for (std::int64_t word = 0; word < 8; ++word) {
      const std::string drawn = task_word(random);
      first += drawn + " ";
      second += (word < same ? drawn : "key") + " ";
    }
    text += nlohmann::json{{"text", first}, {"pair", second}, {"label", static_cast<double>(same) / 8}}.dump() + "\n";
  }
  return text;
}

// A "key" and the word after it are a thing, and so is a "what" with both; a tree, a bird and a fish live. JSON lines.
inline std::string tag_file(std::int64_t examples, RandomSequence& random) {
  std::string text;
  for (std::int64_t i = 0; i < examples; ++i) {
    nlohmann::json words = nlohmann::json::array(), labels = nlohmann::json::array();
    const auto add = [&](const std::string& word, const char* label) {
      words.push_back(word);
      labels.push_back(label);
    };
    for (std::uint64_t more = 2 + random.below(5); more > 0; --more) {
      const std::uint64_t form = random.below(3);
      if (form == 2) add("what", "B-thing");
      if (form > 0) add("key", form == 2 ? "I-thing" : "B-thing");
      const std::string word = task_word(random);
      const bool lives = word == "tree" || word == "bird" || word == "fish";
      add(word, form > 0 ? "I-thing" : lives ? "B-life" : "O");
    }
    text += nlohmann::json{{"tokens", words}, {"ner_tags", labels}}.dump() + "\n";
  }
  return text;
}

// Labels of the task's file, where the files decide them.
inline std::vector<std::string> synthetic_labels(TaskKind kind) {
  if (kind == TaskKind::kTag) return {"B-life", "B-thing", "I-thing", "O"};
  return kind == TaskKind::kClassify ? std::vector<std::string>{"negative", "positive"} : std::vector<std::string>();
}

// The reading with the columns of the task's file, unless it names others.
inline TaskReading with_columns_of(TaskKind kind, TaskReading reading) {
  const TaskReading plain, usual = default_reading(kind);
  for (std::string TaskReading::*column : {&TaskReading::text_column, &TaskReading::label_column}) {
    if (reading.*column == plain.*column) reading.*column = usual.*column;
  }
  return reading;
}

// Outputs of a model for an example of the task's file.
inline TaskShape synthetic_shape(TaskKind kind) {
  TaskReading reading;
  reading.labels.names = synthetic_labels(kind);
  return shape_of(kind, reading);
}

// The name of a file that the task's reader takes for its format.
inline std::string task_file_name(TaskKind kind) {
  switch (kind) {
    case TaskKind::kMnli:
    case TaskKind::kQqp: return std::string(name_of(kind)) + ".tsv";
    case TaskKind::kRace:
    case TaskKind::kEmbed:
    case TaskKind::kTag:
    case TaskKind::kClassify: return std::string(name_of(kind)) + ".jsonl";
    default: return std::string(name_of(kind)) + ".json";
  }
}

inline std::string task_file(TaskKind kind, std::int64_t examples, std::uint64_t seed) {
  RandomSequence random({.seed = seed});
  switch (kind) {
    case TaskKind::kMnli: return mnli_file(examples, random);
    case TaskKind::kQqp: return qqp_file(examples, random);
    case TaskKind::kSquad1: return squad_file(examples, false, random);
    case TaskKind::kSquad2: return squad_file(examples, true, random);
    case TaskKind::kRace: return race_file(examples, random);
    case TaskKind::kClassify: return classify_file(examples, random);
    case TaskKind::kEmbed: return embed_file(examples, random);
    case TaskKind::kTag: return tag_file(examples, random);
  }
  throw std::logic_error("no such task");
}

// Outputs of a model that knows the labels: 10 for what is right and 0 for the rest; vectors with the cosine that is
// the label.
inline TaskOutputValues right_outputs(const TaskExamples& examples, const TaskShape& shape) {
  TaskOutputValues outputs;
  for (std::int64_t i = 0; i < examples.count(); ++i) {
    const auto labels = examples.labels_of(i);
    if (shape.outputs == TaskOutputs::kVectors) {
      const float cosine = number_of_label(labels[0]);
      outputs.push_back({1, 0, cosine, std::sqrt(1 - cosine * cosine)});
      continue;
    }
    if (shape.outputs == TaskOutputs::kTokenLabels) {
      std::vector<float>& logits = outputs.emplace_back(labels.size() * static_cast<std::size_t>(shape.count));
      for (std::size_t token = 0; token < labels.size(); ++token) {
        if (labels[token] == kUnknownLabel) continue;
        logits[token * static_cast<std::size_t>(shape.count) + static_cast<std::size_t>(labels[token])] = 10;
      }
      continue;
    }
    if (shape.outputs != TaskOutputs::kSpans) {
      outputs.emplace_back(static_cast<std::size_t>(shape.count))[static_cast<std::size_t>(labels[0])] = 10;
      continue;
    }
    const auto length = static_cast<std::size_t>(examples.length(i));
    std::vector<float>& logits = outputs.emplace_back(2 * length);
    logits[static_cast<std::size_t>(labels[0])] = 10;
    logits[length + static_cast<std::size_t>(labels[1])] = 10;
  }
  return outputs;
}

}  // namespace teratron::testing

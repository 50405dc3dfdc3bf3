// Small sets of each task, in the tasks' own formats, whose answers follow from the words: the third word of the first
// text decides a label, the word behind the question's is the answer, the right option is the one in the article.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "tasks/task.h"

namespace teratron::testing {

constexpr int kPlantedWords = 40;

// [PAD] to [MASK], then the words w0, w1, ...
inline void write_planted_vocabulary(const std::filesystem::path& folder) {
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int word = 0; word < kPlantedWords; ++word) vocabulary += fmt::format("w{}\n", word);
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "vocab.txt", vocabulary);
}

class PlantedTask {
 public:
  PlantedTask(TaskKind task, std::uint32_t seed) : task_(task), random_(seed) {}

  // A file of so many examples.
  void write(const std::filesystem::path& path, int examples) { write_file_atomically(path, text_of(examples)); }

 private:
  std::string text_of(int examples) {
    switch (task_) {
      case TaskKind::kMnli: return mnli(examples);
      case TaskKind::kQqp: return qqp(examples);
      case TaskKind::kRace: return race(examples);
      default: return squad(examples);
    }
  }

  int below(int bound) { return static_cast<int>(random_() % static_cast<std::uint32_t>(bound)); }

  // Different words.
  std::vector<int> draw(int count) {
    std::vector<int> words(kPlantedWords);
    for (int i = 0; i < kPlantedWords; ++i) words[static_cast<std::size_t>(i)] = i;
    std::shuffle(words.begin(), words.end(), random_);
    words.resize(static_cast<std::size_t>(count));
    return words;
  }
  static std::string joined(const std::vector<int>& words) {
    std::string text;
    for (const int word : words) text += fmt::format("{}w{}", text.empty() ? "" : " ", word);
    return text;
  }

  std::string mnli(int examples) {
    const char* labels[] = {"contradiction", "entailment", "neutral"};
    std::string text;
    for (int i = 0; i < examples; ++i) {
      const std::vector<int> premise = draw(3 + below(5));
      text += fmt::format("{}\t{}\t{}\n", labels[premise[2] % 3], joined(premise), joined(draw(1 + below(4))));
    }
    return text;
  }
  std::string qqp(int examples) {
    std::string text = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n";
    for (int i = 0; i < examples; ++i) {
      const std::vector<int> first = draw(3 + below(5));
      text += fmt::format("{0}\t{0}\t{0}\t{1}\t{2}\t{3}\n", i, joined(first), joined(draw(1 + below(4))), first[2] % 2);
    }
    return text;
  }
  std::string race(int examples) {
    std::string text;
    for (int i = 0; i < examples; ++i) {
      const std::vector<int> words = draw(4 + 4);
      const int answer = below(4);
      nlohmann::json options;
      for (int k = 0; k < 4; ++k)
        options.push_back(fmt::format("w{}", words[static_cast<std::size_t>(k == answer ? 7 : k)]));
      const nlohmann::json article = {{"id", fmt::format("{}{}.txt", i % 2 == 0 ? "high" : "middle", i)},
                                      {"article", joined({words[4], words[5], words[6], words[7]})},
                                      {"questions", {"w0 _"}},
                                      {"options", {options}},
                                      {"answers", {std::string(1, static_cast<char>('A' + answer))}}};
      text += article.dump() + "\n";
    }
    return text;
  }
  std::string squad(int examples) {
    nlohmann::json paragraphs = nlohmann::json::array();
    for (int i = 0; i < examples; ++i) {
      const std::vector<int> words = draw(6 + below(8));
      const auto at = static_cast<std::size_t>(below(static_cast<int>(words.size()) - 1));
      const bool has_answer = task_ == TaskKind::kSquad1 || i % 3 != 0;
      nlohmann::json answers = nlohmann::json::array();
      const std::vector<int> before(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      if (has_answer) {
        answers.push_back({{"text", fmt::format("w{}", words[at + 1])}, {"answer_start", joined(before).size() + 1}});
      }
      std::vector<int> asked = {words[at]};
      if (!has_answer) asked = {words[at], words[at]};  // asked twice: there is no answer
      paragraphs.push_back({{"context", joined(words)},
                            {"qas",
                             {{{"id", fmt::format("q{}", i)},
                               {"question", joined(asked)},
                               {"is_impossible", !has_answer},
                               {"answers", answers}}}}});
    }
    return nlohmann::json({{"data", {{{"title", "t"}, {"paragraphs", paragraphs}}}}}).dump();
  }

  TaskKind task_;
  std::mt19937 random_;
};

}  // namespace teratron::testing

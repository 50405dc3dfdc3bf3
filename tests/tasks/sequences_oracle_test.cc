// Against Hugging Face, example by example, on all of the shared data: the sequences of its BertTokenizer, and the
// answers that transformers' run_qa makes of outputs (tests/oracle/task_sequences.py). Needs the environment of
// scripts/oracle-env; skips where it is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/philox.h"
#include "checkpoint/damage.h"
#include "oracle/python.h"
#include "tasks/squad/format.h"
#include "tasks/task.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

// Logits whose kind is `way`: 0, of any size; 1, of few values, so that many are equal. [CLS] has large ones, so that
// about half of the questions of SQuAD 2.0 seem to have no answer.
TaskOutputValues random_logits(const TaskExamples& examples, int way) {
  RandomSequence random({.seed = static_cast<std::uint64_t>(way)});
  TaskOutputValues outputs;
  for (std::int64_t i = 0; i < examples.count(); ++i) {
    std::vector<float>& logits = outputs.emplace_back(static_cast<std::size_t>(2 * examples.length(i)));
    for (float& logit : logits) {
      const double value = 6 * random.uniform() - 3;
      logit = static_cast<float>(way == 0 ? value : std::round(4 * value) / 4);
    }
    logits[0] = static_cast<float>(12 * random.uniform() - 3);
  }
  return outputs;
}

class SequencesOracle : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef TERATRON_SANITIZED
    GTEST_SKIP() << "with sanitizers, whole dev sets take minutes; the plain build has this test too";
#endif
    if (const std::string why = why_no_oracle(); !why.empty()) GTEST_SKIP() << why;
    if (!fs::exists(data() / "bert-vocab")) GTEST_SKIP() << "no data at " << data();
  }

  static fs::path data() { return fs::path(TERATRON_SOURCE_DIR) / "../shared/data"; }
  static std::vector<fs::path> files(const std::vector<std::string>& names) {
    std::vector<fs::path> paths;
    for (const std::string& name : names) paths.push_back(data() / name);
    return paths;
  }

  std::unique_ptr<TaskSet> open(TaskKind kind, const std::vector<fs::path>& paths, const TaskReading& reading) {
    return open_task(kind, paths, Tokenizer::load(data() / "bert-vocab"), reading, false);
  }

  void ask(nlohmann::json request, const std::vector<fs::path>& paths, const TaskReading& reading) {
    for (const fs::path& path : paths) request["files"].push_back(path.string());
    request["vocabulary"] = (data() / "bert-vocab/vocab.txt").string();
    request["seq_length"] = reading.seq_length;
    request["out"] = folder_.path().string();
    put_file(folder_ / "request.json", request.dump());
    ASSERT_EQ(run_oracle("task_sequences.py", {(folder_ / "request.json").string()}, folder_ / "log"), 0)
        << bytes_of_file(folder_ / "log");
  }

  // All sequences, and with `labels` those too.
  void compare(const TaskExamples& ours, bool labels) {
    const std::string bytes = bytes_of_file(folder_ / "sequences");
    std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    std::span<const std::int32_t> rest = values;
    std::int64_t number = 0;
    for (; !rest.empty(); ++number) {
      constexpr std::size_t kHead = 5;
      const auto length = static_cast<std::size_t>(rest[1]);
      ASSERT_LT(number, ours.sequences());
      ASSERT_EQ(ours.second(number), rest[2]) << "sequence " << number;
      const auto ids = ours.sequence(number), theirs = rest.subspan(kHead, length);
      ASSERT_TRUE(std::ranges::equal(ids, theirs)) << "sequence " << number << " of example " << rest[0];
      if (labels) {
        ASSERT_TRUE(std::ranges::equal(ours.labels_of(number), rest.subspan(3, 2)))
            << "window " << number << " of question " << rest[0] << ": " << rest[3] << " to " << rest[4];
      }
      rest = rest.subspan(kHead + length);
    }
    ASSERT_EQ(number, ours.sequences());
    fmt::print("identical: {} sequences, {} tokens\n", number, ours.ids.size());
  }

  void compare_pairs(TaskKind kind, const std::vector<std::string>& names, const TaskReading& reading) {
    const auto paths = files(names);
    const auto set = open(kind, paths, reading);
    fmt::print("{}: {}\n", name_of(kind), set->notes());
    nlohmann::json request = {{"task", name_of(kind)}};
    if (kind == TaskKind::kRace) request["max_query_length"] = reading.max_query_length;
    ASSERT_NO_FATAL_FAILURE(ask(request, paths, reading));
    ASSERT_NO_FATAL_FAILURE(compare(set->examples(), false));
  }

  TemporaryFolder folder_;
};

struct SquadTrial {
  TaskKind kind;
  std::string file;
  TaskReading reading;
};

class SquadOracle : public SequencesOracle, public ::testing::WithParamInterface<SquadTrial> {};

TEST_P(SquadOracle, WindowsLabelsAndAnswersOfTheDevSetAreHuggingFaces) {
  const auto& [kind, name, reading] = GetParam();
  const auto paths = files({name});
  const auto set = open(kind, paths, reading);
  fmt::print("{}: {}\n", name_of(kind), set->notes());
  nlohmann::json request = {
      {"task", "squad"}, {"max_query_length", reading.max_query_length}, {"doc_stride", reading.doc_stride}};
  for (int way = 0; way < 2; ++way) {
    const TaskOutputValues logits = random_logits(set->examples(), way);
    std::string bytes;
    for (const auto& each : logits) bytes.append(reinterpret_cast<const char*>(each.data()), 4 * each.size());
    put_file(folder_ / fmt::format("logits-{}", way), bytes);
    set->write_predictions(folder_ / fmt::format("ours-{}", way), logits);
    request["rules"].push_back({{"n_best", reading.n_best},
                                {"max_answer_length", reading.max_answer_length},
                                {"may_be_none", kind == TaskKind::kSquad2},
                                {"threshold", reading.null_score_diff_threshold}});
  }
  ASSERT_NO_FATAL_FAILURE(ask(request, paths, reading));
  ASSERT_NO_FATAL_FAILURE(compare(set->examples(), true));
  for (int way = 0; way < 2; ++way) {
    const auto ours = squad::read_predictions(folder_ / fmt::format("ours-{}", way));
    const auto theirs = squad::read_predictions(folder_ / fmt::format("answers-{}.json", way));
    ASSERT_EQ(ours.size(), theirs.size());
    std::size_t empty = 0;
    for (const auto& [id, answer] : theirs) {
      ASSERT_EQ(ours.at(id), answer) << "question " << id << ", way " << way;
      if (answer.empty()) ++empty;
    }
    fmt::print("identical: {} answers, {} of them empty\n", theirs.size(), empty);
  }
}

TaskReading reading_with(std::int64_t seq_length, std::int64_t max_query_length, std::int64_t doc_stride) {
  TaskReading reading = default_reading(TaskKind::kSquad1);
  reading.seq_length = seq_length;
  reading.max_query_length = max_query_length;
  reading.doc_stride = doc_stride;
  return reading;
}

// In short sequences all paragraphs have many windows, and many questions are cut.
TaskReading short_windows() {
  TaskReading reading = reading_with(96, 12, 40);
  reading.n_best = 7;
  reading.max_answer_length = 8;
  reading.null_score_diff_threshold = -1.75;
  return reading;
}

INSTANTIATE_TEST_SUITE_P(
    Each, SquadOracle,
    ::testing::Values(
        SquadTrial{TaskKind::kSquad1, "squad/dev-v1.1.from-html.json", default_reading(TaskKind::kSquad1)},
        SquadTrial{TaskKind::kSquad2, "squad/dev-v2.0.from-html.json", default_reading(TaskKind::kSquad2)},
        SquadTrial{TaskKind::kSquad1, "squad/dev-v1.1.from-html.json", reading_with(70, 20, 0)},
        SquadTrial{TaskKind::kSquad2, "squad/dev-v2.0.from-html.json", short_windows()}),
    [](const auto& trial) {
      return fmt::format("{}Of{}Tokens", name_of(trial.param.kind), trial.param.reading.seq_length);
    });

TEST_F(SequencesOracle, PairsOfMnliAreHuggingFaces) {
  for (const std::int64_t seq_length : {128, 33, 12}) {
    compare_pairs(TaskKind::kMnli, {"mnli-subset/mnli_matched.tsv", "mnli-subset/mnli_mismatched.tsv"},
                  {.seq_length = seq_length});
  }
}

TEST_F(SequencesOracle, ArticlesWithQuestionsAndOptionsAreHuggingFaces) {
  compare_pairs(TaskKind::kRace, {"race/dev.high.jsonl", "race/dev.middle.jsonl"}, default_reading(TaskKind::kRace));
  compare_pairs(TaskKind::kRace, {"race/dev.middle.jsonl"}, {.seq_length = 41, .max_query_length = 22});
}

}  // namespace
}  // namespace teratron::testing

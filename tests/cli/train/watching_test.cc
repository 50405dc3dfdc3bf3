// Logs of a run: metrics.jsonl and TensorBoard's records. (tests/oracle/tensorboard_reads_ours.py
// reads the latter by TensorBoard's own reader.)

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/tiny_training.h"
#include "telemetry/event_record.h"

namespace teratron::testing {
namespace {

class Watching : public TrainingCommands<> {
 protected:
  static std::vector<Json> metrics(const fs::path& run) { return json_lines(run / "metrics.jsonl"); }

  // The steps of each record's first tag, in the order of files.
  static std::map<std::string, std::vector<std::int64_t>> steps(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    std::ranges::sort(files);
    std::map<std::string, std::vector<std::int64_t>> steps;
    for (const fs::path& file : files) {
      const std::string content = read_file(file);
      std::string_view rest = content;
      while (const std::optional<EventRecord> record = first_record(rest)) {
        if (!record->tag.empty()) steps[std::string(record->tag)].push_back(record->step);
        rest.remove_prefix(record->bytes.size());
      }
      EXPECT_TRUE(rest.empty());
    }
    return steps;
  }

  Outcome train(const Words& more) const { return run_teratron(training_.command(more)); }
};

TEST_F(Watching, MetricsHaveRowsOfEachKindWhoseRatesFollowFromTheTimes) {
  ASSERT_EQ(
      train({"--train-iters", "4", "--eval-interval", "2", "--save", path("run"), "--tp", "2", "--peak-tflops", "0.5"})
          .exit_code,
      0);
  std::vector<std::string> kinds;
  for (const Json& row : metrics(path("run"))) {
    kinds.push_back(row.at("kind"));
    if (kinds.back() == "iteration") {
      const double tokens = 32.0 * row.at("global_batch_size").get<double>();
      EXPECT_DOUBLE_EQ(row.at("tokens_per_second"), tokens / row.at("seconds").get<double>());
      const double matrices = 12.0 * 2 * 64 * 64 + 280.0 * 64, attention = 2.0 * 64 * 32;  // layers, then logits
      const double per_token = 6 * (matrices + attention);
      EXPECT_NEAR(row.at("mfu"), per_token * row.at("tokens_per_second").get<double>() / (2 * 0.5e12), 1e-12);
      EXPECT_GT(row.at("memory_bytes"), row.at("planned_memory_bytes")) << "the program is beside the plan";
      EXPECT_GT(row.at("planned_memory_bytes"), 4 * 4 * matrices / 2) << "weights, gradients, two moments in fp32";
    } else {
      EXPECT_DOUBLE_EQ(row.at("validation_perplexity"), std::exp(row.at("validation_loss").get<double>()));
    }
  }
  EXPECT_EQ(kinds, (Words{"iteration", "iteration", "validation", "iteration", "iteration", "validation"}));
}

TEST_F(Watching, SamplesAtEachValidationChangeNothingElse) {
  const Words common = {"--train-iters", "4", "--eval-interval",     "2", "--tp", "2",
                        "--dp",          "2", "--global-batch-size", "4"};
  ASSERT_EQ(train(with(common, {"--save", path("without")})).exit_code, 0);
  const Outcome outcome =
      train(with(common, {"--save", path("with"), "--tensorboard-dir", path("curves"), "--sample-prompt", "the rank",
                          "--sample-prompt", "", "--sample-tokens", "5"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const auto weights = [&](const char* run) {
    return read_file(fs::path(path(run)) / "iter_0000004/model.safetensors");
  };
  EXPECT_EQ(weights("with"), weights("without"));
  EXPECT_EQ(TinyTraining::losses(path("with")), TinyTraining::losses(path("without")));
  std::vector<Json> samples;
  for (const Json& row : metrics(path("with"))) {
    if (row.at("kind") == "sample") samples.push_back(row);
  }
  ASSERT_EQ(samples.size(), 4U);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].at("iteration"), i < 2 ? 2 : 4);
    EXPECT_EQ(samples[i].at("prompt"), i % 2 == 0 ? "the rank" : "");
    const std::string text = samples[i].at("text");
    EXPECT_FALSE(text.empty());
    const std::string line =
        fmt::format("sample after iteration {}: {}{}", i < 2 ? 2 : 4, i % 2 == 0 ? "the rank" : "", text);
    EXPECT_THAT(outcome.errors, HasSubstr(line));
  }
  EXPECT_EQ(steps(path("curves")).at("sample the rank"), (std::vector<std::int64_t>{2, 4}));

  const Outcome report = must({"report", path("with"), path("without"), "--out", path("page.html")});
  const std::string page = read_file(path("page.html"));
  EXPECT_THAT(page, HasSubstr("Validation loss"));
  EXPECT_THAT(page, HasSubstr("after &quot;the rank&quot;"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">sample_tokens</th>"));
  refused({"report", path("none")});
  ASSERT_EQ(train({"--load", path("without"), "--train-iters", "5", "--save", path("later")}).exit_code, 0);
  must({"report", path("without"), path("later"), "--out", path("page.html")});
  const std::string text = read_file(path("page.html")), differing = text.substr(0, text.find("All settings"));
  EXPECT_THAT(differing, HasSubstr("<th scope=\"row\">train_iters</th><td>4</td><td>5</td>"));
  for (const char* following : {"vocab_size", "lr_decay_iters", "split_seed"}) {
    EXPECT_THAT(differing, Not(HasSubstr(following))) << "not given to the first run, recorded by its checkpoint";
  }

  write_file_atomically(path("score.json"), R"({"evaluation": "lambada", "accuracy": 0.25})");
  const Words evaluated = {"report",       path("with"),       "--output",     path("page.html"),
                           "--evaluation", path("score.json"), "--evaluation", path("score.json")};
  must(evaluated);
  EXPECT_THAT(read_file(path("page.html")), HasSubstr("<td>accuracy</td><td>0.25</td><td>45.18 % (355M)"));
  EXPECT_THAT(refused({"report", path("with"), "--evaluation", path("page.html")}),
              HasSubstr("is no result of an evaluation"));
}

// Padded rows of the vocabulary are drawn by an untrained model most of the time.
TEST_F(Watching, SamplesOfAVocabularyLargerThanTheTokenizersEndNoRun) {
  for (const char* tensor : {"1", "2"}) {
    const Outcome outcome = train({"--vocab-size", "5000", "--train-iters", "3", "--eval-interval", "1", "--tp", tensor,
                                   "--sample-prompt", "the", "--save", path(std::string("padded") + tensor)});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr("sample after iteration 3: the"));
    EXPECT_THAT(outcome.errors, Not(HasSubstr("failed")));
  }
}

TEST_F(Watching, SamplesEndWhereGenerateEnds) {
  const auto sample = [&](const char* run) {
    const Words watched = {"--train-iters", "1", "--eval-interval", "1", "--sample-prompt", "the"};
    EXPECT_EQ(train(with(watched, {"--save", path(run)})).exit_code, 0);
    return metrics(path(run)).back().at("text").get<std::string>();
  };
  EXPECT_NE(sample("goes-on"), "");
  Json ends = Json::array();
  for (int id = 0; id < 280; ++id) ends.push_back(id);
  write_file_atomically(path("tokenizer/generation_config.json"), Json{{"eos_token_id", ends}}.dump());
  EXPECT_EQ(sample("ends"), "");
}

TEST_F(Watching, SamplesNeedATokenizerAndAPromptWithRoom) {
  std::string words;
  for (int i = 0; i < 40; ++i) words += " gradient";
  EXPECT_THAT(refused(training_.command({"--train-iters", "1", "--sample-prompt", words})),
              HasSubstr("fewer than --seq-length 32"));
  EXPECT_THAT(refused({"train", "--data-path", path("data"), "--vocab-size", "280", "--model", "tiny", "--train-iters",
                       "1", "--sample-prompt", "the"}),
              HasSubstr("--sample-prompt needs a tokenizer: --tokenizer DIR"));
}

TEST_F(Watching, AResumedRunsRecordsAreThoseOfAnUninterruptedOne) {
  const Words common = {"--eval-interval",     "3", "--lr-decay-iters", "7", "--rampup-batch-size", "2", "2", "8",
                        "--global-batch-size", "4"};
  const auto run = [&](const char* iterations, const std::string& name, const Words& more) {
    const Outcome outcome =
        train(with(with(common, more), {"--train-iters", iterations, "--save", path(name), "--save-interval", "2",
                                        "--tensorboard-dir", path(name + "-tb")}));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  };
  run("7", "whole", {});
  const auto whole = steps(path("whole-tb"));
  EXPECT_EQ(whole.at("learning-rate"), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7}));
  for (const auto& file : fs::directory_iterator(path("whole-tb"))) {
    EXPECT_THAT(read_file(file.path()), AllOf(HasSubstr("mem-allocated-bytes"), HasSubstr("mem-planned-bytes")));
  }
  EXPECT_EQ(whole.at("learning-rate vs samples"), (std::vector<std::int64_t>{2, 4, 6, 8, 12, 16, 20}));
  EXPECT_EQ(whole.at("lm loss validation"), (std::vector<std::int64_t>{3, 6, 7}));
  EXPECT_EQ(whole.at("lm loss validation vs samples"), (std::vector<std::int64_t>{6, 16, 20}));
  run("2", "parts", {});  // which validates because it ends
  const fs::path pointer = path("parts/latest_checkpointed_iteration.txt");
  const std::string at_two = read_file(pointer);
  run("5", "parts", {"--load", path("parts")});
  run("7", "parts", {"--load", path("parts")});
  EXPECT_EQ(steps(path("parts-tb")), whole);
  write_file_atomically(pointer, at_two);  // as after a crash: what follows the checkpoint is written again
  run("7", "parts", {"--load", path("parts")});
  EXPECT_EQ(steps(path("parts-tb")), whole);
}

TEST_F(Watching, RecordsOfTwoRunsAreNotMixed) {
  ASSERT_EQ(train({"--train-iters", "1", "--tensorboard-dir", path("tb")}).exit_code, 0);
  const auto first = steps(path("tb"));
  EXPECT_THAT(refused(training_.command({"--train-iters", "1", "--tensorboard-dir", path("tb")})),
              HasSubstr("'" + path("tb") + "' already holds the records of a run"));
  EXPECT_EQ(steps(path("tb")), first);
}

}  // namespace
}  // namespace teratron::testing

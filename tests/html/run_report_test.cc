#include "html/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "data/indexed/indexed_dataset_writer.h"
#include "html/run_parts.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class RunReportTest : public ::testing::Test {
 protected:
  std::filesystem::path folder(const std::string& name) const { return folder_.path() / name; }

  // A folder of --save without a checkpoint.
  RunRecord run(const std::string& name, const std::string& settings, const std::string& more = "") const {
    std::filesystem::create_directories(folder(name));
    std::ofstream log(folder(name) / "metrics.jsonl");
    for (int i = 1; i <= 5; ++i) {
      log << R"({"iteration":)" << i << R"(,"kind":"iteration","loss":)" << 7.0 / i << R"(,"learning_rate":0.5,)"
          << R"("tokens_per_second":)" << 100 * i << R"(,"consumed_tokens":)" << 64 * i << "}\n";
    }
    log << more;
    log.close();
    std::ofstream(folder(name) / "config.toml") << settings;
    return read_run(folder(name));
  }

  const TemporaryFolder folder_;
};

TEST_F(RunReportTest, ReadsWhatARunLeft) {
  const RunRecord record = run("a", "lr = 0.5\nbf16 = false\ndata_path = ['/no/corpus']\ntokenizer = \"\"\n",
                               R"({"iteration":5,"kind":"validation","validation_loss":1.5,"lm_loss":1.25}
{"iteration":5,"kind":"sample","prompt":"the","text":" end"}
{"iteration":5,"kind":"score","score":0.75}
{"iteration":6,"los)");
  EXPECT_EQ(record.curve("loss")->size(), 5U);
  EXPECT_THAT(*record.curve("validation_loss"), ElementsAre(Pair(5, 1.5)));
  EXPECT_THAT(*record.curve("validation_lm_loss"), ElementsAre(Pair(5, 1.25)));
  EXPECT_THAT(*record.curve("score"), ElementsAre(Pair(5, 0.75)));
  EXPECT_EQ(record.samples.at(0).text, " end");
  EXPECT_THAT(record.settings, ElementsAre(Pair("lr", "0.5"), Pair("bf16", "false"),
                                           Pair("data_path", "[ '/no/corpus' ]"), Pair("tokenizer", "")));
  EXPECT_EQ(record.data.at(0), "/no/corpus");
  EXPECT_EQ(record.curve("mfu"), nullptr);
}

TEST_F(RunReportTest, ACorpusWhoseNameIsNotUtf8IsFound) {
  const std::string name = "caf\xE9";
  std::filesystem::create_directories(folder("data"));
  IndexedDatasetWriter writer(folder("data") / name, 100);
  writer.add_document(std::vector<std::int32_t>(60, 7));
  writer.commit();
  const RunRecord record = run("r", fmt::format("data_path = [\"bytes:{}/caf%E9\"]\n", folder("data").string()));
  EXPECT_THAT(record.data, ElementsAre((folder("data") / name).string()));
  EXPECT_THAT(run_report({record}, {}), Not(HasSubstr("not there now")));
}

TEST_F(RunReportTest, CorporaOfABlendAreCountedWithTheirShards) {
  std::filesystem::create_directories(folder("data"));
  const auto corpus = [&](const std::string& name, int tokens) {
    IndexedDatasetWriter writer(folder("data") / name, 100);
    writer.add_document(std::vector<std::int32_t>(static_cast<std::size_t>(tokens), 7));
    writer.commit();
    return (folder("data") / name).string();
  };
  const std::string a = corpus("a", 60), b = corpus("b", 30), c = corpus("c", 70);
  const auto page_of = [&](const std::string& words) {
    return run_report({run("r", fmt::format("data_path = [{}]\n", words))}, {});
  };
  const std::string all = page_of(fmt::format("'0.7', '{}', '0.3', '{},{}'", a, b, c));
  EXPECT_THAT(all, AllOf(HasSubstr(fmt::format("0.3 of {},{}", b, c)), HasSubstr("2 times all of it"),
                         Not(HasSubstr("not there now"))));
  const std::string without = page_of(fmt::format("'1', '{}', '0', '{}'", b, (folder("data") / "gone").string()));
  EXPECT_THAT(without, AllOf(HasSubstr("gone</td><td>not read</td>"), HasSubstr("10.7 times all of it")));
  const std::string some = page_of(fmt::format("'{}', '{}'", a, (folder("data") / "gone").string()));
  EXPECT_THAT(some, AllOf(HasSubstr("not there now"), Not(HasSubstr("times all of it"))));
}

TEST_F(RunReportTest, APageAsksNoNetworkAndShowsTextsAsTexts) {
  const RunRecord record =
      run("<b>", "tokenizer = \"<i>\"\n",
          R"x({"iteration":5,"kind":"sample","prompt":"</script><script>alert(1)","text":"<img src=x>"})x"
          "\n");
  const std::string page = run_report({record}, {});
  for (const char* no : {"<img", "<b>", "<i>\"", "alert(1)\"", "</script><script>alert", "src=\"", "http://",
                         "https://", "@import", "url("}) {
    std::string without = page;
    for (std::size_t at = 0; (at = without.find("http://www.w3.org/2000/svg")) != std::string::npos;)
      without.erase(at, 26);
    EXPECT_THAT(without, Not(HasSubstr(no)));
  }
  EXPECT_THAT(page, HasSubstr("&lt;img src=x&gt;"));
  EXPECT_THAT(page, HasSubstr("Training loss"));
  EXPECT_THAT(page, Not(HasSubstr("Learning rate"))) << "it never changes";
}

TEST_F(RunReportTest, MemoryStandsBesideItsPlanThoughBothStayFlat) {
  const char* const plan =
      R"({"iteration":6,"kind":"iteration","loss":1,"memory_bytes":6291456,"planned_memory_bytes":5242880}
{"iteration":7,"kind":"iteration","loss":1,"memory_bytes":6291456,"planned_memory_bytes":5242880}
)";
  const RunRecord one = run("one", "", plan);
  const std::string page = run_report({one}, {});
  EXPECT_THAT(page, HasSubstr("memory of the fullest rank</th><td>6.00 MiB, 5.00 MiB planned</td>"));
  EXPECT_THAT(page, HasSubstr("Memory of the fullest rank, MiB (dashed: planned)"));
  EXPECT_THAT(page, HasSubstr(R"({"name":"held","points":[[6,6],[7,6]]},{"name":"planned","points":[[6,5],[7,5]]})"));
  const std::string chart = page.substr(page.find("Memory of the fullest rank, MiB"));
  EXPECT_LT(chart.find("<polyline class=\"c0\""), chart.find("<polyline class=\"c0 dashed\"")) << "what is held first";
  EXPECT_THAT(run_report({run("none", "")}, {}), Not(HasSubstr("Memory of"))) << "runs of older versions";
  const std::string large = run_report({run("a", "",
                                            R"({"iteration":6,"loss":1,"memory_bytes":3221225472})"
                                            "\n"),
                                        one},
                                       {});
  EXPECT_THAT(large, HasSubstr("Memory of the fullest rank, GiB"));
  EXPECT_THAT(large, HasSubstr(R"({"name":"a","points":[[6,3]]},{"name":"one","points")"));
  EXPECT_THAT(large, HasSubstr(R"("name":"one, planned")"));
}

TEST_F(RunReportTest, OfSeveralRunsItTellsWhatDiffers) {
  std::vector<RunRecord> runs = {run("one/run", "lr = 0.5\nseed = 1\n"),
                                 run("two/run", "lr = 0.25\nseed = 1\nnew = 3\n")};
  name_apart(runs);
  EXPECT_EQ(runs[0].name, "one/run");
  EXPECT_EQ(runs[1].name, "two/run");
  const std::string page = run_report(runs, {});
  const std::string differing =
      page.substr(page.find("Settings that differ"), page.find("All settings") - page.find("Settings that differ"));
  EXPECT_THAT(differing, HasSubstr("<th scope=\"row\">lr</th><td>0.5</td><td>0.25</td>"));
  EXPECT_THAT(differing, HasSubstr("<th scope=\"row\">new</th><td>-</td><td>3</td>"));
  EXPECT_THAT(differing, Not(HasSubstr("seed")));
  EXPECT_THAT(run_report({runs[0], run("three", "lr = 0.5\nseed = 1\n")}, {}), HasSubstr("All settings are equal."));
}

TEST_F(RunReportTest, AFineTuningsHighestScoreIsSaidWithItsUpdate) {
  const std::string scores = R"({"iteration":2,"kind":"score","score":61.5,"f1":61.5}
{"iteration":4,"kind":"score","score":87.25,"f1":87.25}
{"iteration":5,"kind":"score","score":70,"f1":70}
)";
  const std::string page = run_report({run("tuned", "", scores), run("trained", "")}, {});
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">highest score</th><td>87.2500 after update 4</td><td></td>"));
  EXPECT_THAT(run_report({run("trained", "")}, {}), Not(HasSubstr("highest score")));
}

TEST_F(RunReportTest, UpdatesThatOverflowSkippedAreCounted) {
  const std::string skipped = R"({"iteration":6,"kind":"iteration","loss":1,"gradient_norm":null,"skipped":1}
{"iteration":7,"kind":"iteration","loss":1,"gradient_norm":null,"skipped":1}
)";
  EXPECT_THAT(run_report({run("fp16", "", skipped)}, {}), HasSubstr("updates skipped by overflow</th><td>2</td>"));
  EXPECT_THAT(run_report({run("fp32", "")}, {}), Not(HasSubstr("skipped by overflow")));
}

// A log may say anything.
TEST_F(RunReportTest, HugeNumbersAreShownAsTheMostThatThereIs) {
  const std::string huge =
      R"({"iteration":6,"kind":"iteration","loss":1,"skipped":1e300,"consumed_tokens":1e300,"memory_bytes":1e300}
)";
  const RunRecord record = run("huge", "", huge + huge);
  const std::string share = R"({"iteration":6,"kind":"iteration","mfu":1e307}
{"iteration":7,"kind":"iteration","mfu":0.5}
)";
  EXPECT_THAT(run_report({run("share", "", share)}, {}), HasSubstr(R"("points":[[7,50]])"));
  EXPECT_EQ(readable_whole(1e300), "1,000,000,000,000,000,000");
  EXPECT_EQ(readable_whole(-HUGE_VAL), "-1,000,000,000,000,000,000");
  EXPECT_EQ(readable_whole(NAN), "0");
  EXPECT_THAT(run_report({record}, {}), HasSubstr("tokens read</th><td>1,000,000,000,000,000,000</td>"));
}

TEST_F(RunReportTest, EmptySettingsAreRowsOfTheirOwn) {
  const std::string empty = "pipeline_layout = \"\"\n";
  EXPECT_THAT(run_report({run("a", empty)}, {}), HasSubstr("<th scope=\"row\">pipeline_layout</th><td></td>"));
  const std::string page = run_report({run("b", "lr = 0.5\n" + empty), run("c", "lr = 0.25\n" + empty)}, {});
  const std::string row = "<th scope=\"row\">lr</th>";
  EXPECT_EQ(page.rfind(row, page.rfind(row) - 1), page.find(row)) << "once among those that differ, once among all";
}

TEST_F(RunReportTest, LayersLieOnTheStagesThatTheSettingsSay) {
  const auto layout_of = [&](const std::string& settings) {
    const std::string page = run_report({run("layout", settings)}, {});
    return page.substr(page.find("id=\"s3\""), page.find("id=\"s4\"") - page.find("id=\"s3\""));
  };
  const std::string uneven = layout_of(
      "num_layers = 12\npipeline_model_parallel_size = 2\npipeline_layout = \"8,4\"\n"
      "tensor_model_parallel_size = 2\ndata_parallel_size = 3\nvirtual_stages = 1\n");
  EXPECT_THAT(uneven, HasSubstr("3 copies, 2 pipeline stages, 2 tensor ranks a stage"));
  EXPECT_THAT(uneven, HasSubstr("stage 0, tensor rank 0<br>layers 1 to 8<"));
  EXPECT_THAT(uneven, HasSubstr("stage 1, tensor rank 1<br>layers 9 to 12<"));
  const std::string turns =
      "num_layers = 8\npipeline_model_parallel_size = 2\nvirtual_stages = 2\npipeline_layout = \"\"\n";
  EXPECT_THAT(layout_of(turns + "schedule = \"interleaved\"\n"), HasSubstr("stage 0<br>layers 1 to 2, 5 to 6<"));
  EXPECT_THAT(layout_of(turns + "schedule = \"v-zb\"\n"), HasSubstr("stage 0<br>layers 1 to 2, 7 to 8<"));
  const std::string seven = layout_of("num_layers = 7\npipeline_model_parallel_size = 2\npipeline_layout = \"auto\"\n");
  EXPECT_THAT(seven, AllOf(HasSubstr("stage 0<br>layers 1 to 4<"), HasSubstr("stage 1<br>layers 5 to 7<")));
  EXPECT_THAT(layout_of("pipeline_model_parallel_size = -7\nnum_layers = 3\n"), HasSubstr("stage 0<br>layers 1 to 3<"));
}

TEST_F(RunReportTest, EvaluationsStandBesideThePapers) {
  const auto written = [&](const char* name, const char* text) {
    std::ofstream(folder(name)) << text;
    return folder(name);
  };
  const EvaluationResult wiki =
      read_evaluation(written("w.json", R"({"evaluation": "wikitext103", "perplexity": 20.5})"));
  const EvaluationResult other = read_evaluation(written("mine.json", R"({"accuracy": 0.5, "name": "x"})"));
  EXPECT_EQ(other.name, "mine");
  const EvaluationResult lambada = read_evaluation(written("l.json", R"({"evaluation": "lambada", "accuracy": 44.5})"));
  const std::string page = run_report({run("a", "")}, {wiki, other, lambada});
  EXPECT_THAT(page, HasSubstr("<td>accuracy</td><td>44.5</td><td>45.18 % (355M)")) << "both in per cent";
  EXPECT_THAT(page, HasSubstr("<td>perplexity</td><td>20.5</td><td>19.31 (355M)"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">mine</th><td>accuracy</td><td>0.5</td><td></td>"));
  const EvaluationResult again =
      read_evaluation(written("v.json", R"({"evaluation": "wikitext103", "perplexity": 9})"));
  EXPECT_THAT(run_report({run("a", "")}, {wiki, again}),
              AllOf(HasSubstr("wikitext103 (" + folder("w.json").string() + ")</th>"),
                    HasSubstr("wikitext103 (" + folder("v.json").string() + ")</th>")));
  for (const char* text : {"[1]", "{}", "no", "{\"a\": \"b\"}"}) {
    EXPECT_THROW(read_evaluation(written("bad.json", text)), UserError);
  }
}

TEST_F(RunReportTest, WhatIsNoRunIsAnError) {
  EXPECT_THROW(read_run(folder("none")), UserError);
  std::filesystem::create_directories(folder("empty"));
  EXPECT_THROW(read_run(folder("empty")), UserError);
  for (const char* name : {"searched/batch-8/seed-2", "searched/batch-8/seed-1"}) run(name, "");
  EXPECT_THAT(message_of<UserError>([&] { read_run(folder("searched")); }),
              HasSubstr("name those: " + folder("searched/batch-8/seed-1").string() + " " +
                        folder("searched/batch-8/seed-2").string()));
  EXPECT_THROW(run("bad", "= 1\n"), UserError);
  EXPECT_THROW(run("torn", "", "no json\n"), UserError);
  EXPECT_EQ(run("odd", "",
                R"({"iteration":6,"kind":"sample","text":7})"
                "\n")
                .samples.size(),
            1U);
}

}  // namespace
}  // namespace teratron::testing

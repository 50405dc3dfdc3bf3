// examples/zero-shot/run from end to end, on a text and test sets of a page or two.

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iterator>
#include <set>

#include "base/lines.h"
#include "base/philox.h"
#include "cli/binary.h"

namespace teratron::testing {
namespace {

constexpr int kDocuments = 70;

Json json_in(const fs::path& file) { return Json::parse(read_file(file)); }

class ZeroShotExample : public FolderTest {
 protected:
  void SetUp() override {
#ifdef TERATRON_SANITIZED
    GTEST_SKIP() << "with sanitizers, three models take minutes to train; the plain build has this test too";
#endif
    RandomSequence random(RandomStream{.seed = 11});
    const std::string passage = numbers(random, 4);
    std::string lines, cloze;
    for (int i = 0; i < kDocuments; ++i) {
      std::string text = sentences(random, 40);
      if (i == 40) text += passage + sentences(random, 40);  // of the test set
      lines += Json{{"text", text}, {"id", i}}.dump() + "\n";
      if (i == 20) lines += Json{{"text", text + "The end."}, {"id", kDocuments}}.dump() + "\n";
    }
    write_file_atomically(path("text.jsonl"), lines);
    write_file_atomically(path("wiki.tokens"), " = Title = \n \n " + passage + numbers(random, 4));
    for (int i = 0; i < 6; ++i) cloze += Json{{"text", numbers(random, 2) + "the river"}}.dump() + "\n";
    write_file_atomically(path("lambada.jsonl"), cloze);
  }

  Words command(const std::string& out, const Words& more = {}) const {
    return with({std::string(TERATRON_SOURCE_DIR) + "/examples/zero-shot/run", "--build",
                 fs::path(TERATRON_BINARY).parent_path(), "--text", path("text.jsonl"), "--wikitext",
                 path("wiki.tokens"), "--lambada", path("lambada.jsonl"), "--out", path(out), "--updates", "6"},
                more);
  }

  static std::string sentences(RandomSequence& random, int count) {
    static const Words kSubjects = {"The old man", "A young girl", "My brother",
                                    "The teacher", "Her mother",   "The dog"};
    static const Words kVerbs = {"walked to", "looked at", "talked about", "never found", "often saw", "remembered"};
    static const Words kObjects = {"the river", "the house", "a small town", "the school", "his friends", "the garden"};
    static const Words kTimes = {"in the morning", "before winter", "with a smile", "for many years", "without a word"};
    const auto one_of = [&](const Words& words) { return words[random.below(words.size())]; };
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += fmt::format("{} {} {} {} and {} {}. ", one_of(kSubjects), one_of(kVerbs), one_of(kObjects),
                          one_of(kTimes), one_of(kVerbs), one_of(kObjects));
    }
    return text;
  }
  // That no other text has.
  static std::string numbers(RandomSequence& random, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += fmt::format("The keeper of {} counted {} lamps, {} boats and {} birds on day {}. ", random.below(1000000),
                          random.below(1000000), random.below(1000000), random.below(1000000), random.below(1000000));
    }
    return text;
  }
};

TEST_F(ZeroShotExample, GoesFromRawTextToTableAndFigure) {
  const Outcome outcome = ChildProgram(command("out")).wait();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const std::string results = read_file(path("out/results.md"));
  EXPECT_THAT(outcome.output, HasSubstr(results));

  // The corpus: a near duplicate less, a document in two pieces, and of these each is in one part.
  EXPECT_EQ(lines_of(read_file(path("out/clean.jsonl"))).size(), kDocuments);
  const Words corpus = lines_of(read_file(path("out/corpus.jsonl"))),
              training = lines_of(read_file(path("out/training.jsonl"))),
              validation = lines_of(read_file(path("out/validation.jsonl")));
  EXPECT_EQ(corpus.size(), kDocuments + 1U);
  EXPECT_EQ(validation.size(), (corpus.size() + 29) / 30);
  EXPECT_EQ(training.size() + validation.size(), corpus.size());
  std::set<std::string> all(training.begin(), training.end());
  all.insert(validation.begin(), validation.end());
  EXPECT_EQ(all, std::set<std::string>(corpus.begin(), corpus.end()));
  EXPECT_EQ(json_in(path("out/overlap.wikitext.json"))["found"], 0);

  // Larger models see the same tokens, and the table has what the commands said.
  std::int64_t smaller = 0;
  for (const std::string name : {"small", "medium", "large"}) {
    const auto file = [&](const char* what) { return json_in(path(fmt::format("out/{}.{}.json", name, what))); };
    EXPECT_EQ(file("info")["consumed_tokens"], 6 * 1024);
    const std::int64_t parameters = file("info")["model"]["parameters"];
    EXPECT_GT(parameters, smaller);
    smaller = parameters;
    const double loss = file("loss")["loss"], last = file("train")["validation_loss"];
    EXPECT_NEAR(loss, last, 0.2);  // of overlapping windows, and of all targets
    EXPECT_THAT(results,
                HasSubstr(fmt::format(
                    "| {:.4f} | {:.2f} | {:.3f} | {:.2f} | {:.2f} % | {:.3f} |\n", loss, std::exp(loss),
                    file("loss")["bits_per_byte"].get<double>(), file("wikitext103")["perplexity"].get<double>(),
                    file("lambada")["accuracy"].get<double>(), file("lambada")["mean_log_probability"].get<double>())));
  }
  const std::string figure = read_file(path("out/figure6.svg"));
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = figure.find("<polyline", at)) != figure.npos; ++at) ++lines;
  EXPECT_EQ(lines, 3U);
}

// All but the minutes, which are last.
std::string findings(const fs::path& folder) {
  const std::string results = read_file(folder / "results.md");
  return results.substr(0, results.find("| step |"));
}

TEST_F(ZeroShotExample, StoppedAndBegunAgainGivesTheSame) {
  ASSERT_EQ(ChildProgram(command("whole")).wait().exit_code, 0);
  ChildProgram stopped(command("parts"));
  const fs::path metrics = path("parts/large/metrics.jsonl");
  wait_until(stopped, [&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; });
  ::kill(-stopped.pid(), SIGINT);  // Ctrl-C tells all of the terminal's processes
  EXPECT_NE(stopped.wait().exit_code, 0);
  EXPECT_FALSE(fs::exists(path("parts/results.md")));
  const Outcome gone_on = ChildProgram(command("parts")).wait();
  ASSERT_EQ(gone_on.exit_code, 0) << gone_on.errors;
  EXPECT_THAT(gone_on.output, Not(HasSubstr("== training, medium")));
  EXPECT_EQ(findings(path("parts")), findings(path("whole")));
  EXPECT_EQ(read_file(path("parts/figure6.svg")), read_file(path("whole/figure6.svg")));

  // Once more: there is nothing left to do but to show it.
  const std::string seconds = read_file(path("parts/seconds"));
  const Outcome again = ChildProgram(command("parts")).wait();
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(again.output, read_file(path("parts/results.md")));
  EXPECT_EQ(read_file(path("parts/seconds")), seconds);
}

TEST_F(ZeroShotExample, RefusesWhatItCannotDo) {
  const auto refused = [&](const Words& words) {
    const Outcome outcome = ChildProgram(words).wait();
    EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
    return outcome.errors;
  };
  EXPECT_THAT(refused(command("out", {"--updates", "none"})), HasSubstr("--updates 'none' is not a number"));
  EXPECT_THAT(refused(command("out", {"--text", path("absent")})), HasSubstr("cannot read '" + path("absent")));
  EXPECT_THAT(refused(command("out", {"--lambada", path("absent")})), HasSubstr("cannot read '" + path("absent")));
  fs::create_directories(path("out"));
  write_file_atomically(path("out/settings"), "of another run");
  EXPECT_THAT(refused(command("out")), HasSubstr("give another --out"));
  write_file_atomically(path("text.jsonl"), lines_of(read_file(path("text.jsonl"))).front() + "\n");
  EXPECT_THAT(refused(command("single")), HasSubstr("a single document is left"));
}

}  // namespace
}  // namespace teratron::testing

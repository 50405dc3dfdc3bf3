// Texts that roff and shells read as they were written, whatever is in them.
#include <gtest/gtest.h>

#include "base/child_program.h"
#include "base/philox.h"
#include "options/output.h"

namespace teratron::testing {
namespace {

class Texts : public ::testing::TestWithParam<int> {
 protected:
  // Up to ten words of these characters, one space apart.
  std::string random_text(std::string_view characters) {
    std::string text;
    for (std::size_t words = 1 + random_.below(10); words > 0; --words) {
      for (std::size_t size = 1 + random_.below(6); size > 0; --size) {
        text += characters[random_.below(characters.size())];
      }
      if (words > 1) text += ' ';
    }
    return text;
  }

  std::string run(const std::vector<std::string>& program, const std::string& input) {
    write_file_atomically(folder_.path() / "input", input);
    std::vector<std::string> words = program;
    words.push_back((folder_.path() / "input").string());
    const Outcome outcome = ChildProgram(words).wait();
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.errors, "");
    return outcome.output;
  }

 private:
  RandomSequence random_{RandomStream{.seed = static_cast<std::uint64_t>(GetParam())}};
  const TemporaryFolder folder_;
};

TEST_P(Texts, AreWhatAManualPageShows) {
  if (ChildProgram({"sh", "-c", "command -v groff"}).wait().exit_code != 0) GTEST_SKIP() << "groff is not installed";
  const std::string help = random_text(".'\\-\"%[]a1");
  bool is_on = false;
  FieldList fields;
  fields.add("flag", &is_on, "", help);
  const std::string page =
      run({"groff", "-man", "-ww", "-Tascii", "-P-cbou"}, ".TH T 1\n.SH FLAGS\n" + man_text(fields));
  std::string shown;  // without the ends of lines, and all spaces as one
  for (const char character : page) {
    const bool is_space = character == ' ' || character == '\n';
    if (!is_space || !shown.ends_with(' ')) shown += is_space ? ' ' : character;
  }
  EXPECT_NE(shown.find("--flag " + help + " "), std::string::npos) << help << "\n" << page;
}

TEST_P(Texts, AreOneWordOfAShell) {
  const std::string text = random_text("'\"\\$`*!#~ab\n\t;");
  EXPECT_EQ(run({"bash"}, "printf %s " + shell_quoted(text)), text);
}

INSTANTIATE_TEST_SUITE_P(Random, Texts, ::testing::Range(0, 12));

}  // namespace
}  // namespace teratron::testing

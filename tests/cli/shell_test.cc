// Completions and the manual page against --help.

#include <map>
#include <regex>
#include <set>

#include "base/lines.h"
#include "cli/binary.h"
#include "cli/registry.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

// The lines of each of `count` parts of an output that end in a line "#".
std::vector<Words> parts_of(const std::string& output, std::size_t count) {
  std::vector<Words> parts(1);
  for (const std::string& line : lines_of(output)) {
    if (line == "#") {
      parts.emplace_back();
    } else {
      parts.back().push_back(line);
    }
  }
  parts.pop_back();
  EXPECT_EQ(parts.size(), count);
  parts.resize(count);
  return parts;
}

struct HelpOfCommand {
  std::string name, summary;
  Words flags;                           // "--tp"
  std::map<std::string, Words> choices;  // of a flag whose value is one of a few words
};

std::vector<HelpOfCommand> commands_of_help() {
  std::vector<HelpOfCommand> commands;
  const std::regex command_line("  ([a-z0-9-]+(?: [a-z0-9-]+)?)  +(.*)"), flag("--[a-z0-9-]+");
  for (const std::string& line : lines_of(succeed({"--help"}))) {
    std::smatch found;
    if (!std::regex_match(line, found, command_line)) continue;
    HelpOfCommand& command = commands.emplace_back(HelpOfCommand{.name = found[1], .summary = found[2]});
    for (const std::string& help : lines_of(succeed(with(words_of(command.name), {"--help"})))) {
      if (!help.starts_with("  --")) continue;
      const std::string usage = help.substr(2, help.find("  ", 2) - 2);
      const Words parts = words_of(usage);
      for (auto at = std::sregex_iterator(usage.begin(), usage.end(), flag); at != std::sregex_iterator(); ++at) {
        command.flags.push_back(at->str());
        static const std::regex some_words("[a-z0-9]+(\\|[a-z0-9]+)*");
        if (parts.size() == 1 || !std::regex_match(parts.back(), some_words)) continue;
        command.choices[at->str()] = words_of(std::regex_replace(parts.back(), std::regex("\\|"), " "));
      }
    }
  }
  return commands;
}

class Shells : public FolderTest {
 protected:
  // A path of a file with the output of these words.
  std::string output_of(const Words& words) const {
    write_file_atomically(path("output"), succeed(words));
    return path("output");
  }

  // Completions of bash at the end of each of `lines`, the words after `teratron`, in `folder`.
  std::vector<Words> complete(const std::vector<Words>& lines, const std::string& folder = "/") const {
    std::string program = "source " + output_of({"completion", "bash"}) + "\ncd " + folder + "\n";
    for (const Words& line : lines) {
      program += "COMP_WORDS=(teratron";
      for (const std::string& word : line) program += " '" + word + "'";
      program += "); COMP_CWORD=" + std::to_string(line.size()) +
                 "; _teratron; for found in \"${COMPREPLY[@]}\"; do echo \"$found\"; done; echo '#'\n";
    }
    write_file_atomically(path("program"), program);
    const Outcome outcome = ChildProgram({"bash", "-u", path("program")}).wait();
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.errors, IsEmpty());
    return parts_of(outcome.output, lines.size());
  }

  // Makes a folder with two folders and three files.
  std::string make_place() const {
    std::string place = path("place");
    for (const char* folder : {"run", "runs of old"}) make_folders(std::filesystem::path(place) / folder);
    for (const std::string file : {"corpus.bin", "corpus.idx", "a.toml"}) write_file_atomically(place + "/" + file, "");
    return place;
  }
  // A process for each command, so they are asked once.
  static const std::vector<HelpOfCommand>& commands() {
    static const std::vector<HelpOfCommand> all = commands_of_help();
    return all;
  }
  const std::vector<HelpOfCommand>& commands_ = commands();
};

bool is_there(const std::string& program) {
  return ChildProgram({"sh", "-c", "command -v " + program}).wait().exit_code == 0;
}

// With a backslash before each dash, as roff has them.
std::string dashed(const std::string& text) { return std::regex_replace(text, std::regex("-"), "\\-"); }

TEST_F(Shells, HelpIsUnderstoodHere) {
  Words names;
  for (const HelpOfCommand& command : commands_) names.push_back(command.name);
  ASSERT_EQ(names, registered_commands());
  EXPECT_GT(commands_[0].flags.size(), 50U);
  EXPECT_THAT(commands_[0].choices.at("--keep-activations"), ElementsAre("auto", "all", "none"));
}

TEST_F(Shells, TheManualPageHasEveryCommandAndFlag) {
  const std::string page = succeed({"man"});
  std::size_t sections = 0;
  for (std::size_t at = 0; (at = page.find("\n.SS ", at)) != std::string::npos; ++at) ++sections;
  EXPECT_EQ(sections, commands_.size());
  for (const HelpOfCommand& command : commands_) {
    const std::size_t begin = page.find("\n.SS teratron " + command.name + "\n");
    ASSERT_NE(begin, std::string::npos) << command.name;
    const std::string section = page.substr(begin, page.find("\n.S", begin + 1) - begin);
    EXPECT_NE(section.find(dashed(command.summary)), std::string::npos) << command.name;
    for (const std::string& flag : command.flags) {
      EXPECT_NE(section.find("\\fB" + dashed(flag) + "\\fR"), std::string::npos) << command.name << " " << flag;
    }
  }
  EXPECT_EQ(page.find("guard"), std::string::npos);  // a hidden flag
  for (const char* code : {"0", "1", "2", "3", "128 + N"}) EXPECT_THAT(page, HasSubstr(fmt::format("\n.B {}\n", code)));
}

TEST_F(Shells, TheManualPageIsRoffWithoutFaults) {
  if (!is_there("groff")) GTEST_SKIP() << "groff is not installed";
  const std::string page = output_of({"man"});
  const Outcome outcome = ChildProgram({"groff", "-man", "-ww", "-Tascii", "-P-cbou", page}).wait();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_NE(outcome.output.find("--tensor-model-parallel-size"), std::string::npos);
}

TEST_F(Shells, BashCompletesEveryCommandFlagAndChoice) {
  std::vector<Words> lines, expected;
  const auto expect = [&](const Words& line, const Words& completions) {
    lines.push_back(line);
    expected.push_back(completions);
  };
  std::map<std::string, Words> families;
  std::set<std::string> first = {"--help", "--version"};
  for (const HelpOfCommand& command : commands_) {
    const Words words = words_of(command.name);
    first.insert(words[0]);
    if (words.size() > 1) families[words[0]].push_back(words[1]);
    expect(with(words, {"--"}), with(command.flags, {"--help"}));
    for (const auto& [flag, choices] : command.choices) {
      expect(with(words, {flag, ""}), choices);
      expect(with(words, {flag, "=", ""}), choices);
      expect(with(words, {"--help", flag, choices[0]}), {choices[0]});
    }
  }
  expect({""}, {first.begin(), first.end()});
  for (const auto& [family, members] : families) expect({family, ""}, members);
  const std::vector<Words> found = complete(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_THAT(found[i], UnorderedElementsAreArray(expected[i])) << ::testing::PrintToString(lines[i]);
  }
}

TEST_F(Shells, BashCompletesFilesWhereTheyAreMeant) {
  const std::string place = make_place();
  const Words folders = {"run", "runs of old"}, all = with(folders, {"corpus.bin", "corpus.idx", "a.toml"});
  const std::vector<std::pair<Words, Words>> cases = {
      {{"train", "--save", ""}, folders},
      {{"train", "--save", "=", "runs"}, {"runs of old"}},
      {{"train", "--save", "run", "--config", "a"}, {"a.toml"}},
      {{"train", "--data-path", ""}, with(folders, {"corpus"})},
      {{"train", "--lr", ""}, {}},
      {{"train", "--model", "8.3B-"}, {"8.3B-24-heads"}},
      {{"train", "--bf16", "--rampup-batch-size", "1", "2", ""}, {}},  // the third of its numbers
      {{"train", "--lr", "1", "--mod"}, {"--model", "--model-type"}},
      {{"data", "info", ""}, with(folders, {"corpus"})},
      {{"tokenizer", "train", "a.toml", "--vocab-size", "3", ""}, all},
      {{"tokenizer", "train", "--", "--"}, {}},
      {{"convert", "--from", "hf", "run", "c"}, {"corpus.bin", "corpus.idx"}},
      {{"convert", "run", "run", "--from", "t"}, {"teratron"}},
      {{"completion", ""}, {"bash", "fish", "zsh"}},
      {{"data", "nonsense", ""}, {}},
      {{"nonsense", ""}, {}},
  };
  std::vector<Words> lines;
  for (const auto& [line, expected] : cases) lines.push_back(line);
  const std::vector<Words> found = complete(lines, place);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_THAT(found[i], UnorderedElementsAreArray(cases[i].second)) << ::testing::PrintToString(cases[i].first);
  }
}

// Completions of fish at the end of each of `lines`, typed after `teratron` in `place`; without their descriptions.
std::vector<Words> completed_by_fish(const std::string& script, const Words& lines, const std::string& place) {
  std::string program = "source " + script + "\ncd " + place + "\n";
  for (const std::string& line : lines) {
    program += "complete -C 'teratron " + line + "' | string replace --regex '\\t.*' ''\necho '#'\n";
  }
  write_file_atomically(script + ".fish", program);
  const Outcome outcome = ChildProgram({"fish", "--no-config", script + ".fish"}).wait();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors, IsEmpty());
  return parts_of(outcome.output, lines.size());
}

TEST_F(Shells, FishCompletesEveryCommandFlagAndChoice) {
  if (!is_there("fish")) GTEST_SKIP() << "fish is not installed";
  Words lines;
  std::vector<Words> expected;
  const auto expect = [&](const std::string& line, const Words& completions) {
    lines.push_back(line);
    expected.push_back(completions);
  };
  Words first = {"--help", "--version"};
  std::map<std::string, Words> families;
  std::set<std::string> seen;
  for (const HelpOfCommand& command : commands_) {
    const Words words = words_of(command.name);
    if (seen.insert(words[0]).second) first.push_back(words[0]);
    if (words.size() > 1) families[words[0]].push_back(words[1]);
    expect(command.name + " --", with(command.flags, {"--help"}));
    for (const auto& [flag, choices] : command.choices) expect(command.name + " " + flag + " ", choices);
  }
  expect("", first);
  for (const auto& [family, members] : families) expect(family + " ", members);
  const std::vector<Words> found = completed_by_fish(output_of({"completion", "fish"}), lines, "/");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_THAT(found[i], UnorderedElementsAreArray(expected[i])) << lines[i];
  }
}

TEST_F(Shells, FishCompletesFilesWhereTheyAreMeant) {
  if (!is_there("fish")) GTEST_SKIP() << "fish is not installed";
  const std::string place = make_place();
  const Words folders = {"run/", "runs of old/"}, all = with(folders, {"corpus.bin", "corpus.idx", "a.toml"});
  const std::vector<std::pair<std::string, Words>> cases = {
      {"train --save ", folders},
      {"train --save=runs", {"--save=runs of old/"}},
      {"train --save run --config a", {"a.toml"}},
      {"train --data-path ", with(folders, {"corpus"})},
      {"train --lr ", {}},
      {"train --model 8.3B-", {"8.3B-24-heads"}},
      {"train --model=8.3B-", {"--model=8.3B-24-heads"}},
      {"train --bf16 --rampup-batch-size 1 2 ", {}},
      {"train --lr 1 --mod", {"--model", "--model-type"}},
      {"train --lr=1 --mod", {"--model", "--model-type"}},
      {"train --lr=1 --save ", folders},
      {"data info ", with(folders, {"corpus"})},
      {"tokenizer train a.toml --vocab-size 3 ", all},
      {"tokenizer train -- --", {}},
      {"convert --from hf run c", {"corpus.bin", "corpus.idx"}},
      {"convert run run --from t", {"teratron"}},
      {"completion ", {"bash", "fish", "zsh"}},
      {"data nonsense ", {}},
      {"nonsense ", {}},
  };
  Words lines;
  for (const auto& [line, expected] : cases) lines.push_back(line);
  const std::vector<Words> found = completed_by_fish(output_of({"completion", "fish"}), lines, place);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_THAT(found[i], UnorderedElementsAreArray(cases[i].second)) << cases[i].first;
  }
}

TEST_F(Shells, TheScriptForZshHasEveryCommandFlagAndChoice) {
  const std::string script = succeed({"completion", "zsh"});
  for (const HelpOfCommand& command : commands_) {
    const std::size_t begin = script.find("\n    '" + command.name + "')\n");
    ASSERT_NE(begin, std::string::npos) << command.name;
    const std::string part = script.substr(begin, script.find("\n      ;;\n", begin) - begin);
    Words flags;
    for (const std::string& line : lines_of(part)) {
      const std::size_t quote = line.find("'--");
      if (quote == std::string::npos) continue;
      flags.push_back(line.substr(quote + 1, line.find_first_of("=[", quote) - quote - 1));
      const auto choices = command.choices.find(flags.back());
      if (choices == command.choices.end()) continue;
      std::string words;
      for (const std::string& word : choices->second) words += (words.empty() ? "" : " ") + word;
      EXPECT_NE(line.find(":(" + words + ")'"), std::string::npos) << line;
    }
    EXPECT_THAT(flags, UnorderedElementsAreArray(with(command.flags, {"--help"}))) << command.name;
  }
  if (!is_there("zsh")) GTEST_SKIP() << "zsh, which would read the script, is not installed";
  const Outcome outcome = ChildProgram({"zsh", "-f", "-n", output_of({"completion", "zsh"})}).wait();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.errors, IsEmpty());
}

}  // namespace
}  // namespace teratron::testing

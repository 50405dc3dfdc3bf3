// Options of every type from TOML.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "base/trials.h"
#include "base/utf8.h"
#include "options/every_type.h"
#include "options/output.h"
#include "options/reading.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace every_type;

class ConfigFile : public ::testing::Test {
 protected:
  Reading read_toml(std::string_view text) {
    write_file_atomically(file_, text);
    return read({"--config", file_.string()});
  }
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "a.toml";
};

TEST_F(ConfigFile, TextsComeFromAnArrayAndTheCommandLineReplacesThem) {
  const Reading r = read_toml("text = ['a', 'b \"c\"']\n");
  EXPECT_THAT(r.faults, IsEmpty());
  EXPECT_THAT(r.options.texts, ElementsAre("a", "b \"c\""));
  Options written = r.options;
  EXPECT_THAT(to_toml(fields_of(written)), HasSubstr("text = [\"a\", \"b \\\"c\\\"\"]"));
  EXPECT_THAT(read({"--config", file_.string(), "--text", "x", "--text", "y"}).options.texts, ElementsAre("x", "y"));
}

TEST_F(ConfigFile, EveryTypeOfValueIsRead) {
  const Reading r = read_toml(
      "count = 7\nrate = 2\nloud_voice = true\nname = 'x'\nfile = \"y\"\ninputs = ['a', 'b']\ncolour = 'green'\n");
  EXPECT_THAT(r.faults, IsEmpty());
  EXPECT_EQ(r.options.count, 7);
  EXPECT_EQ(r.options.rate, 2.0);
  EXPECT_TRUE(r.options.loud);
  EXPECT_EQ(r.options.name, "x");
  EXPECT_EQ(r.options.file, "y");
  EXPECT_THAT(r.options.inputs, ElementsAre("a", "b"));
  EXPECT_EQ(r.options.colour, Colour::kGreen);
}

TEST_F(ConfigFile, WordsAreAListOrOneWordAndMayBeNumbers) {
  const auto words = [&](const std::string& value) {
    const Reading r = read_toml("words = " + value + "\n");
    EXPECT_THAT(r.faults, IsEmpty());
    return r.options.words;
  };
  EXPECT_THAT(words("'a b'"), ElementsAre("a b"));
  EXPECT_THAT(words("[0.7, 'a', 3, \"b\\\"\"]"), ElementsAre("0.7", "a", "3", "b\""));
  EXPECT_THAT(words("[]"), IsEmpty());
  EXPECT_THAT(read_toml("words = ['a', true]\n").faults,
              ElementsAre(HasSubstr("words in quotes or numbers are needed")));
  write_file_atomically(file_, "words = ['a', 'b']\n");
  EXPECT_THAT(read({"--words", "c", "--config", file_.string()}).options.words, ElementsAre("c"));
  Options options{.words = {"0.7", "a \\\"b", "", "0.3"}};
  EXPECT_EQ(read_toml(to_toml(fields_of(options))).options.words, options.words);
}

TEST_F(ConfigFile, ListsOfNumbersAndWordsForNumbersReadBackFromWhatIsWritten) {
  Options options{.width = std::numeric_limits<double>::infinity(), .rates = {1e-5, 3, 0.1}};
  const Reading r = read_toml(to_toml(fields_of(options)));
  EXPECT_THAT(r.faults, IsEmpty());
  EXPECT_EQ(r.options.rates, options.rates);
  EXPECT_EQ(r.options.width, options.width);
  EXPECT_EQ(read_toml("width = 3\n").options.width, 3);
  EXPECT_THAT(read_toml("rates = ['a']\n").faults, ElementsAre(HasSubstr("numbers are needed")));
}

TEST_F(ConfigFile, WrongTypesNameTheKeyTheFileAndTheLine) {
  const std::string at = " (" + file_.string() + ":";
  EXPECT_THAT(read_toml("# a comment\ncount = 1.0\nrate = '1'\nname = 3\nloud_voice = 1\nfile = [1]\n").faults,
              ElementsAre("--count is '1'; a whole number is needed" + at + "2)",
                          "--rate is '1'; a number is needed" + at + "3)",
                          "--loud-voice is '1'; true or false is needed" + at + "5)",
                          "--name is '3'; text in quotes is needed" + at + "4)",
                          "--file is [1]; one value is needed" + at + "6)"));
}

TEST_F(ConfigFile, UnknownKeysTablesAndOddValuesAreFaultsWithTheirLines) {
  const std::string at = " (" + file_.string() + ":";
  EXPECT_THAT(
      read_toml("louid_voice = 1\nzebra = 2\nrate = 1979-05-27\n[model]\nx = 1\n").faults,
      ::testing::UnorderedElementsAre(
          "unknown key 'louid_voice'" + at + "1); did you mean 'loud_voice'?",
          "unknown key 'zebra'" + at + "2); --help lists the flags, which are the keys written with underscores",
          "rate has no value that a setting can have" + at + "3)",
          "'model' is a table" + at + "4); settings are written without tables"));
  EXPECT_THAT(read_toml("config = 'b.toml'\n").faults, ElementsAre(HasSubstr("unknown key 'config'")));
  EXPECT_THAT(read_toml("loud-voice = true\n").faults, ElementsAre(HasSubstr("did you mean 'loud_voice'?")));
}

TEST_F(ConfigFile, TheSecondNameOfAFlagIsAKeyTooAndBothAreAFault) {
  EXPECT_EQ(read_toml("n = 3\n").options.count, 3);
  EXPECT_THAT(read_toml("n = 3\n").faults, IsEmpty());
  EXPECT_THAT(read_toml("n = 3\ncount = 3\n").faults, ElementsAre(HasSubstr("are two names of one setting")));
}

TEST_F(ConfigFile, ByteOrderMarksAreDroppedAndUtf16IsRefused) {
  for (const std::string marks : {"\xEF\xBB\xBF", "\xEF\xBB\xBF\xEF\xBB\xBF"}) {
    const Reading r = read_toml(marks + "count = 3\n");
    EXPECT_THAT(r.faults, IsEmpty());
    EXPECT_EQ(r.options.count, 3);
  }
  for (const std::string& utf16 : {std::string("\xFF\xFE"
                                               "c\0",
                                               4),
                                   std::string("\xFE\xFF\0c", 4)}) {
    EXPECT_THAT(read_toml(utf16).faults, ElementsAre(HasSubstr("UTF-16")));
  }
}

TEST_F(ConfigFile, ListsTheFirstFaultsAndCountsTheOthers) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += fmt::format("kount{} = 1\n", i);
  const FaultLines faults = read_toml(text).faults;
  EXPECT_EQ(faults.size(), 20'000U);
  EXPECT_EQ(faults[20], "unknown key");  // no nearest name was looked for
  const std::string message = message_of(faults);
  EXPECT_LT(message.size(), 10'000U);
  EXPECT_THAT(message, AllOf(HasSubstr("20000 faults:"), HasSubstr(".. and 19980 more")));
}

TEST_F(ConfigFile, LongValuesAndControlCharactersAreNotQuotedAsTheyAre) {
  const std::string lots(trials(1'000'000), 'x');
  for (const std::string& text :
       {"count = '" + lots + "'", "colour = '" + lots + "'", "file = '" + lots + "'", lots + " = 1",
        "rate = ['" + lots + "']", "[" + lots + "]\nx = 1", "inputs = ['" + lots + "']"}) {
    const std::string message = message_of(read_toml(text).faults);
    EXPECT_THAT(message, Not(IsEmpty()));
    EXPECT_LT(message.size(), 1000U) << message.substr(0, 100);
  }
  const std::string message = message_of(read_toml(R"(colour = "a\u0000b\u001B[2J\u009Bc")").faults);
  EXPECT_THAT(message, AllOf(HasSubstr(R"(a\x00b\x1b[2J\u009bc)"), HasSubstr("there are: red, green")));
}

TEST_F(ConfigFile, APipeThroughWhichNoSettingComesIsAFault) {
  const std::filesystem::path pipe = file_.parent_path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const char* const text : {"", "# nothing\n"}) {
    std::thread writer([&] { std::ofstream(pipe) << text; });
    EXPECT_THAT(read({"--config", pipe.string()}).faults, ElementsAre(HasSubstr("no setting came through it")));
    writer.join();
  }
  EXPECT_THAT(read_toml("").faults, IsEmpty());
}

TEST_F(ConfigFile, TextThatIsNotTomlIsOneFaultWithItsLine) {
  const Reading r = read_toml("count = 1\nrate = = 2\n");
  EXPECT_THAT(r.faults, ElementsAre(HasSubstr(file_.string() + ":2: not valid TOML")));
  EXPECT_THAT(read_toml("count = 1\ncount = 2\n").faults, ElementsAre(HasSubstr("not valid TOML")));
  EXPECT_THAT(read_toml(std::string(100000, '[')).faults, ElementsAre(HasSubstr("not valid TOML")));
  EXPECT_THAT(read({"--config", "/nowhere/a.toml"}).faults, ElementsAre(HasSubstr("/nowhere/a.toml")));
}

TEST_F(ConfigFile, KeysOfAnyDepthAreRefusedAndNotFollowed) {
  const auto keys = [](std::size_t parts, const std::string& part = "a") {
    std::string key = part;
    for (std::size_t i = 1; i < parts; ++i) key += "." + part;
    return key;
  };
  for (const std::size_t parts : {17, 40'000}) {
    for (const std::string& text :
         {keys(parts) + " = 1", "[" + keys(parts) + "]", "[[" + keys(parts) + "]]", "x = {" + keys(parts) + " = 1}",
          keys(parts, "\"a\"") + " = 1", "'a\"' = 1\nb = \"\\\"\" # '\n" + keys(parts, " a ") + " = 1",
          "x = {a = \"\"\"y\"\"\"\", " + keys(parts) + " = 1}",
          "x = {a = \'\'\'y\'\'\'\'\', " + keys(parts) + " = 1}"}) {
      EXPECT_THAT(read_toml(text).faults, ElementsAre(HasSubstr("a key of more than 16 parts"))) << text.substr(0, 40);
    }
  }
  std::string nested = "1";
  for (int i = 0; i < 200; ++i) nested = "{" + keys(16) + " = " + nested + "}";
  EXPECT_THAT(read_toml("x = " + nested).faults, ElementsAre(HasSubstr("'x' is a table"))) << "as deep as values go";
  EXPECT_THAT(read_toml("x = " + std::string(100'000, '{')).faults, ElementsAre(HasSubstr("not valid TOML")));
  const std::string dots(300, '.');
  const Reading r = read_toml("name = 'a" + dots + "' # " + dots + "\nfile = \"\\\"" + dots + "\"\ninputs = ['''" +
                              dots + "''', \"\"\"\n" + dots + "\"\"\"]\nrate = 1.5\n");
  EXPECT_THAT(r.faults, IsEmpty()) << "dots in texts and comments are none of a key's";
  EXPECT_THAT(r.options.inputs, ElementsAre(dots, dots));
}

TEST_F(ConfigFile, BytesThatAreNoUtf8ReadBackFromWhatIsWritten) {
  Options options{
      .name = "caf\xE9", .file = "/data/\xFF%41", .inputs = {"bytes:x", "\xC3\xA9"}, .words = {"\x80", "1"}};
  const std::string text = to_toml(fields_of(options));
  EXPECT_TRUE(is_utf8(text));
  const Reading r = read_toml(text);
  EXPECT_THAT(r.faults, IsEmpty());
  EXPECT_EQ(r.options.name, options.name);
  EXPECT_EQ(r.options.file, options.file);
  EXPECT_EQ(r.options.inputs, options.inputs);
  EXPECT_EQ(r.options.words, options.words);
}

// As `--config <(...)` is, by commands that read their options twice.
TEST_F(ConfigFile, APipeIsReadOnce) {
  const std::filesystem::path pipe = file_.parent_path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "count = 5\n"; });
  ConfigFiles files;
  for (int time = 0; time < 2; ++time) {
    Options options;
    FieldList fields = fields_of(options);
    EXPECT_THAT(read_fields(fields, std::vector<std::string>{"--config", pipe.string()}, files), IsEmpty());
    EXPECT_EQ(options.count, 5) << "time " << time;
  }
  writer.join();
  EXPECT_THROW(files.text("/nowhere/a.toml"), UserError);
}

TEST_F(ConfigFile, AFaultOfAValueNamesTheLinesOfItsFlagsAndOfNoOtherThatItsTextMentions) {
  write_file_atomically(file_, "count = 3\nrate = 2\n");
  Options options;
  FieldList fields = fields_of(options);
  FaultLines lines = read_fields(fields, std::vector<std::string>{"--config", file_.string(), "--name=--count"});
  Faults faults;
  faults.add("{} is {}, and {} is {}", Flag{"rate"}, options.rate, Flag{"name"}, options.name);
  faults.add("{} cannot be {}", Flag{"count"}, Fault::of("below {}", Flag{"rate"}));
  add_value_faults(fields, faults, lines);
  EXPECT_THAT(lines, ElementsAre("--rate is 2, and --name is --count (--rate from " + file_.string() + ":2)",
                                 "--count cannot be below --rate (--count from " + file_.string() + ":1, --rate from " +
                                     file_.string() + ":2)"));
}

TEST_F(ConfigFile, LeavesOutFaultsThatFollowFromAWrongValue) {
  Options options;
  FieldList fields = fields_of(options);
  FaultLines lines = read_fields(fields, std::vector<std::string>{"--count", "x"});
  Faults faults;
  faults.need_between({"count"}, options.count, 2, 3);
  faults.need_between({"counts"}, options.count, 2, 3);
  add_value_faults(fields, faults, lines);
  EXPECT_THAT(lines, ElementsAre("--count is 'x'; a whole number is needed", "--counts is 1; it must be at least 2"));
}

}  // namespace
}  // namespace teratron::testing

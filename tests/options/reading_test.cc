// Options of every type from the command line.
#include "options/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "options/every_type.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace every_type;

TEST(CommandLine, AFlagOfAChoiceMayStandAloneWhereItSaysWhatThatMeans) {
  struct Painted {
    Colour colour;
    std::vector<std::filesystem::path> files;
  };
  const auto read_painted = [](const std::vector<std::string>& arguments) {
    Painted painted{.colour = Colour::kRed};
    FieldList list;
    list.add_positional(&painted.files, "FILE", "paths");
    list.add_choice("colour", painted.colour, {{"red", Colour::kRed}, {"green", Colour::kGreen}}, "a colour").bare =
        "green";
    EXPECT_THAT(read_fields(list, arguments), IsEmpty());
    return painted;
  };
  EXPECT_EQ(read_painted({"a"}).colour, Colour::kRed);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--colour", "a"}, {"a", "--colour"}, {"--colour", "green", "a"}, {"--colour=green", "a"}}) {
    const Painted painted = read_painted(words);
    EXPECT_EQ(painted.colour, Colour::kGreen);
    EXPECT_THAT(painted.files, ElementsAre("a"));
  }
  EXPECT_EQ(read_painted({"--colour", "red", "green"}).colour, Colour::kRed);
}

TEST(CommandLine, EveryTypeOfValueIsRead) {
  const Reading r = read({"--count", "-7", "--rate=1e-3", "--loud-voice", "--name", "a b", "--file", "-", "--inputs",
                          "x", "y z", "--words", "0.7", "a b", "-3", "--colour", "green"});
  EXPECT_THAT(r.faults, IsEmpty());
  EXPECT_EQ(r.options.count, -7);
  EXPECT_EQ(r.options.rate, 1e-3);
  EXPECT_TRUE(r.options.loud);
  EXPECT_EQ(r.options.name, "a b");
  EXPECT_EQ(r.options.file, "-");
  EXPECT_THAT(r.options.inputs, ElementsAre("x", "y z"));
  EXPECT_THAT(r.options.words, ElementsAre("0.7", "a b", "-3"));
  EXPECT_EQ(r.options.colour, Colour::kGreen);
}

TEST(CommandLine, AWordMayStandForANumber) {
  for (const char* given : {"--width=auto", "--width=0.25"}) {
    Reading r = read({given});
    EXPECT_THAT(r.faults, IsEmpty());
    const FieldList fields = fields_of(r.options);
    const bool is_auto = std::string_view(given).ends_with("auto");
    EXPECT_EQ(r.options.width, is_auto ? std::numeric_limits<double>::infinity() : 0.25);
    EXPECT_THAT(value_table(fields), HasSubstr(is_auto ? "auto" : "0.25"));
    EXPECT_THAT(to_toml(fields), HasSubstr(is_auto ? "width = \"auto\"" : "width = 0.25"));
  }
  EXPECT_THAT(read({"--width", "wide"}).faults, ElementsAre("--width is 'wide'; a number is needed, or auto"));
  EXPECT_THAT(read({"--width", "inf"}).faults, ElementsAre("--width is 'inf'; a number is needed, or auto"));
  EXPECT_THAT(read({"--rate", "auto"}).faults, ElementsAre("--rate is 'auto'; a number is needed"));
}

TEST(CommandLine, AListOfNumbersIsReadFromWordsAndFromOne) {
  EXPECT_THAT(read({"--rates", "1e-5", "2", "0.5"}).options.rates, ElementsAre(1e-5, 2, 0.5));
  EXPECT_THAT(read({"--rates=1e-5 2e-5"}).options.rates, ElementsAre(1e-5, 2e-5));
  for (const char* wrong : {"x", "inf", "1e999", "1, 2"}) {
    EXPECT_THAT(read({"--rates", wrong}).faults, ElementsAre(HasSubstr("numbers are needed"))) << wrong;
  }
}

TEST(CommandLine, ANumberOutOfItsRangeIsAFault) {
  const auto faults = [](std::int64_t count) {
    Options options{.count = count};
    return fields_of(options).range_faults().texts();
  };
  EXPECT_THAT(faults(-8), ElementsAre("--count is -8; it must be at least -7"));
  EXPECT_THAT(faults(-7), IsEmpty());
  EXPECT_THAT(faults(9), IsEmpty());
  EXPECT_THAT(faults(10), ElementsAre("--count is 10; it must be at most 9"));
  EXPECT_THROW(read_options<Options>(std::vector<std::string>{"--count=10"}), UserError);
}

TEST(CommandLine, TheLastOfAFlagGivenTwiceCountsAndSwitchesCanBeTurnedOff) {
  const Reading r = read({"--count", "1", "--loud-voice", "--n=2", "--loud-voice=false"});
  EXPECT_THAT(r.faults, IsEmpty());
  EXPECT_EQ(r.options.count, 2);
  EXPECT_FALSE(r.options.loud);
}

TEST(CommandLine, AValueThatLooksLikeAFlagIsWrittenWithAnEqualsSign) {
  const Reading r = read({"--name=--loud-voice"});
  EXPECT_THAT(r.faults, IsEmpty());
  EXPECT_EQ(r.options.name, "--loud-voice");
  EXPECT_EQ(read({"--name="}).options.name, "");
}

TEST(CommandLine, AFlagWithoutItsValueDoesNotSwallowTheNextFlag) {
  const Reading r = read({"--count", "--loud-voice", "--rate"});
  EXPECT_THAT(r.faults, ElementsAre("--count needs a value: --count N", "--rate needs a value: --rate X"));
  EXPECT_TRUE(r.options.loud);
}

TEST(CommandLine, WrongTypesSayWhatIsNeeded) {
  const Reading r = read({"--count", "1.5", "--rate", "nan", "--loud-voice=maybe", "--colour", "blue"});
  EXPECT_THAT(r.faults, ElementsAre("--count is '1.5'; a whole number is needed", "--rate is 'nan'; a number is needed",
                                    "--loud-voice is 'maybe'; true or false is needed",
                                    "--colour is 'blue'; there are: red, green"));
  for (const std::string text : {"", " 1", "1 ", "+1", "0x10", "9223372036854775808", "1_000"}) {
    EXPECT_EQ(read({"--count=" + text}).faults.size(), 1U) << text;
  }
}

TEST(CommandLine, UnknownFlagsAreNamedWithTheNearestKnownOneAndTheirValuesAreNoFaultsOfTheirOwn) {
  EXPECT_THAT(read({"--cuont", "3", "--loud-voise", "--zebra=4"}).faults,
              ElementsAre("unknown flag '--cuont'; did you mean '--count'?",
                          "unknown flag '--loud-voise'; did you mean '--loud-voice'?",
                          "unknown flag '--zebra'; --help lists the flags"));
  EXPECT_THAT(read({"stray"}).faults, ElementsAre("unexpected argument 'stray'; flags begin with --"));
  EXPECT_THAT(
      read({"--loud-voice", "True"}).faults,
      ElementsAre("unexpected argument 'True'; --loud-voice is a switch; give it alone, or --loud-voice=false"));
}

TEST(CommandLine, ArgumentsWithoutAFlagFillThePositionsInOrder) {
  std::filesystem::path in;
  std::vector<std::filesystem::path> rest;
  std::int64_t count = 0;
  FieldList fields;
  fields.add_positional(&in, "IN", "a file");
  fields.add_positional(&rest, "FILE", "files");
  fields.add("count", &count, "N", "a count");
  const std::vector<std::string> arguments = {"a", "b", "--count", "2", "c", "--", "--d"};
  EXPECT_THAT(read_fields(fields, arguments), IsEmpty());
  EXPECT_EQ(in, "a");
  EXPECT_THAT(rest, ElementsAre("b", "c", "--d"));
  EXPECT_EQ(count, 2);
}

TEST(CommandLine, TextsOfSeveralFlagsAddUpAndMayLookLikeFlags) {
  EXPECT_THAT(read({"--text", "a b", "--count", "2", "--text=--rate", "--text", ""}).options.texts,
              ElementsAre("a b", "--rate", ""));
  EXPECT_THAT(read({"--text", "a", "b"}).faults, ElementsAre("unexpected argument 'b'; flags begin with --"));
}

TEST(CommandLine, MissingArgumentsAreAllNamed) {
  std::filesystem::path in, out;
  FieldList fields;
  fields.add_positional(&in, "IN", "a file");
  fields.add("out", &out, "DIR", "a folder").required = true;
  EXPECT_THAT(read_fields(fields, {}), ElementsAre("IN is missing: a file", "--out DIR is missing: a folder"));
}

}  // namespace
}  // namespace teratron::testing

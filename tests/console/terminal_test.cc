// Widths and colours of a terminal, by what it says of itself.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "base/pseudo_terminal.h"
#include "base/variable.h"
#include "console/live_line.h"
#include "console/term_list.h"
#include "console/terminal_text.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class Terminal : public ::testing::Test {
 protected:
  void SetUp() override {
    term_.set("xterm");
    no_colour_.unset();
    if (!terminal_.exists()) GTEST_SKIP() << "there are no terminals";
    file_.reset(::fdopen(::open(terminal_.path().c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC), "w"));
    ASSERT_NE(file_, nullptr);
  }

  // What a terminal of ten columns gets of a live line with these texts, one after the other.
  std::string shown_in_ten_columns(const std::vector<std::string>& texts) {
    terminal_.resize(24, 10);
    {
      LiveLine line(file_.get(), terminal_columns(file_.get()));
      for (const std::string& text : texts) line.show(text);
    }
    return terminal_.shown_until("\n");
  }

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const Variable term_{"TERM"}, no_colour_{"NO_COLOR"};
  PseudoTerminal terminal_{24, 91};
  std::unique_ptr<std::FILE, Close> file_;
};

TEST_F(Terminal, ColumnsAreThoseThatItHas) {
  EXPECT_EQ(terminal_columns(file_.get()), 91);
  terminal_.resize(0, 0);
  EXPECT_EQ(terminal_columns(file_.get()), 80) << "one that does not know";
  term_.set("dumb");
  EXPECT_EQ(terminal_columns(file_.get()), 0);
}

TEST_F(Terminal, HelpIsNeitherNarrowNorWideAndHasColoursUnlessNobodyWantsThem) {
  for (const auto& [columns, shown] : {std::pair{20, 60U}, {59, 60U}, {91, 91U}, {110, 110U}, {300, 110U}}) {
    terminal_.resize(24, columns);
    EXPECT_EQ(style_for(file_.get()).columns, shown);
    EXPECT_TRUE(style_for(file_.get()).has_colours);
  }
  for (const auto& [value, has_colours] : {std::pair{"", true}, {"1", false}, {"0", false}}) {
    no_colour_.set(value);
    EXPECT_EQ(style_for(file_.get()).has_colours, has_colours) << "NO_COLOR=" << value << " (no-color.org)";
  }
}

TEST_F(Terminal, ColoursThatAreAskedForGoBeforeTheTerminalsAndNoColor) {
  const std::unique_ptr<std::FILE, Close> plain(std::tmpfile());
  for (const char* no_colour : {"", "1"}) {
    no_colour_.set(no_colour);
    for (std::FILE* file : {file_.get(), plain.get()}) {
      set_colours(Colours::kAlways);
      EXPECT_TRUE(style_for(file).has_colours);
      set_colours(Colours::kNever);
      EXPECT_FALSE(style_for(file).has_colours);
    }
    set_colours(Colours::kAuto);
    EXPECT_EQ(style_for(file_.get()).has_colours, *no_colour == '\0');
    EXPECT_FALSE(style_for(plain.get()).has_colours);
  }
}

TEST_F(Terminal, ALiveLineStaysBelowTheLastColumn) {
  EXPECT_THAT(shown_in_ten_columns({"0123456789abc", "\u00e4\u00f6\u00fc3456789abc"}),
              AllOf(HasSubstr("012345678\r"), EndsWith("\u00e4\u00f6\u00fc345678\r\n")));
}

TEST_F(Terminal, ALiveLineCountsWideCharactersTwiceAndShowsNoControlCharacters) {
  EXPECT_THAT(shown_in_ten_columns({"\u4e2d\u6587\u8bed\u6599\u5e93\u540d", "a\x1b[2J\n\tbcdef"}),
              AllOf(HasSubstr("\u4e2d\u6587\u8bed\u6599\r"), EndsWith("a\\x1b[2J \r\n")));
}

TEST(TerminalText, WidthsAreThoseOfEastAsianText) {
  EXPECT_EQ(display_width("a\u00e4\u0416"), 3U);
  EXPECT_EQ(display_width("\u4e2d\uac00\uff21\U0001f600"), 8U);
  EXPECT_EQ(display_width("a\xE9z\xF0"), 4U) << "bytes that are no character";
  EXPECT_EQ(first_columns("a\u4e2d\u6587", 4), "a\u4e2d");
  EXPECT_EQ(first_columns("a\u4e2d\u6587", 5), "a\u4e2d\u6587");
  EXPECT_EQ(first_columns("\u4e2d", 1), "");
}

}  // namespace
}  // namespace teratron::testing

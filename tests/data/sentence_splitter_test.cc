// Sentences of English texts picked by hand, and what holds for every text.
#include "data/text/sentence_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "base/trials.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace teratron::testing {
namespace {

// "A one.|B two." stands for a text and where it is split: "|" is a place between two sentences, where white space is.
void expect_split(const std::string& marked, std::string_view space = " ") {
  std::string text;
  std::vector<std::string> expected(1);
  for (const char c : marked) {
    if (c == '|') {
      text += space;
      expected.emplace_back();
    } else {
      text += c;
      expected.back() += c;
    }
  }
  const auto found = split_sentences(text);
  EXPECT_EQ(std::vector<std::string>(found.begin(), found.end()), expected) << text;
}

TEST(SentenceSplitter, StopsEndSentences) {
  expect_split("One.|Two.|Three");
  expect_split("Is it?|It is!|Good.", "\n");
  expect_split("What?!|No.|Really?!!|Yes.", "  ");
  expect_split("It costs 5.|50 are left.");
  expect_split("\u00C9t\u00E9.|\u00C0 la carte.|\u0416\u0434\u0443.");
}

TEST(SentenceSplitter, NoStopEndsASentenceThatGoesOn) {
  expect_split("It is about ca. 5 m. or less, i.e. The Wall, e.g. Berlin.|End.");
  expect_split("Version 3.14.2 at example.com/a.b is 0.5 MB.|End.");
  expect_split("\"Why?\" she asked, and \"no!\" he said.|End.");
  expect_split("Yahoo! is a company.|So is Toys \"R\" Us (or was?), says Who? magazine.");
  expect_split("He (b. 1900, d. 1980), wrote it.|End.");
  expect_split("Wait . . . what?|Oh . . .|Well.");
  expect_split("The end (see below.), as it were.");
}

TEST(SentenceSplitter, TitlesInitialsAndAbbreviationsGoOn) {
  expect_split("Mr. and Mrs. Smith met Dr. Who.|Prof. A. B. Jones left.");
  expect_split("We met J. A. Smith and 'B. Jones' there.|End.");
  expect_split("J. R. R. Tolkien and George W. Bush met (Mr. X).|End.");
  expect_split("Lt.-Col. Blimp v. Gen. Li vs. The People.|End.");
  expect_split("The U.S. Army and the U.K. government at 5 p.m. Monday.|End.");
  expect_split("Apple Inc. Chairman Jobs Jr. died on Oct. 5 on Main St. Louis said.|End.");
  expect_split("See Fig. 3, No. 5, pp. 7 and Vol. 2.|End.");
  expect_split("\u201CDr. Who\u201D came\u2014Mr. Bean too.|End.");
}

TEST(SentenceSplitter, AbbreviationsEndSentencesBeforeWordsThatBeginThem) {
  expect_split("He works for Apple Inc.|The firm is big.");
  expect_split("She left the U.S.|In 1990 she came back at 5 p.m.|\"They slept.\"");
  expect_split("It was vitamin C.|It helps.|They like J.|He does not.");
  expect_split("Pens, paper, etc.|We sell them.");
  expect_split("Yes or no.|I did, O'Brien didn't.|Five left.|See AT&T.|Five came.");
}

TEST(SentenceSplitter, QuotesAndBracketsAfterAStopBelongToTheSentence) {
  expect_split("He said \"No.\"|She left.");
  expect_split("(It was late.)|[Exit.]|\u201CGood.\u201D|\u00ABBon.\u00BB|'So?'|''Yes.''|End.");
  expect_split("So it is.[1][citation needed]|See [2].|It goes on.[open End.");
  expect_split("He left.|\"She stayed.|(They did.)");
}

TEST(SentenceSplitter, EllipsesEndASentenceBeforeACapital) {
  expect_split("Well...|I see.");
  expect_split("Well\u2026|I see\u2026 perhaps... or not.");
}

TEST(SentenceSplitter, LowerCaseLettersOfAllAlphabetsGoOn) {
  for (const char* small :
       {"ß", "ĸ", "ľ", "ł", "ń", "ň", "ŋ", "ź", "ż", "ž", "ơ", "ș", "ț", "ά", "ё", "ґ", "ấ", "ở", "ὁ"}) {
    expect_split(std::string("Wiem, tzn. ") + small + "e tak.|Nie.");
    expect_split(std::string("Wiem... (") + small + "e tak).|Nie.");
  }
  for (const char* capital : {"Ľ", "Ł", "Ń", "Ň", "Ŋ", "Ź", "Ż", "Ž", "Ơ", "Ș", "Ț", "Ά", "Ё", "Ґ", "Ấ", "Ở", "Ὁ"}) {
    expect_split(std::string("Wiem.|") + capital + "e tak.|Nie.");
  }
  expect_split("ეს სახლია.|ის მოვიდა.");  // Georgian has no capitals at the beginnings of sentences
}

TEST(SentenceSplitter, NumbersOfListsBelongToTheirSentences) {
  expect_split("1. Open it.|2. Close it.|A. Not that.|4.5. Done.");
}

TEST(SentenceSplitter, ABlankLineEndsASentence) {
  expect_split("= Heading =|A line\nand another|next", "\n\n");
  expect_split("no stop|but a line, e.g.|and more", "\n \t\r\n\n");
  expect_split("one\ntwo\r\nthree");
}

// Hand-made: the sentences of each script with and without white space between them.
TEST(SentenceSplitter, MarksOfOtherScriptsEndSentencesWithOrWithoutWhiteSpace) {
  for (const char* space : {"", " ", "\n", "\u3000"}) {
    expect_split("今天天气很好。|我们去公园吧！|好的？！|走。", space);
    expect_split("「行きますか？」|彼は言った。|（はい。）|終わり｡", space);
    expect_split("他说：“你好。”|她走了……|再见！？|完", space);
    expect_split("यह घर है।|वह कौन है॥|अच्छा।", space);
    expect_split("ما هذا؟|هذا بيت؟|نعم؟!", space);
    expect_split("یہ گھر ہے۔|وہ کون ہے؟|اچھا۔", space);
    expect_split("Սա տուն է։|Նա եկավ։", space);
    expect_split("ይህ ቤት ነው።|እሱ መጣ፧", space);
    expect_split("ဒါ အိမ်ပါ။|သူလာတယ်။", space);
    expect_split("នេះជាផ្ទះ។|គាត់មក។", space);
    expect_split("བཀྲ་ཤིས་བདེ་ལེགས།|ཁྱེད་རང་།", space);
  }
  expect_split("བདེ་ལེགས། །|ཁྱེད་རང་།");  // two strokes with a space between them
}

TEST(SentenceSplitter, MarksOfOtherScriptsEndNoSentenceThatGoesOn) {
  expect_split("“好。”，他说。|“走！”、“来！”");
  expect_split("价格是３．５元．|好");
  expect_split("他想…也许不。|三点...也不");
}

TEST(SentenceSplitter, StopsOfLatinScriptEndSentencesBetweenIdeographs) {
  expect_split("今天很好.|我们走吧!|好吗?|好");
  expect_split("版本3.5很好.|用Node.js写的");
  expect_split("他说「好!」|我走了...也许");
}

TEST(SentenceSplitter, LinesAreSentencesWhereTheUserSaysSo) {
  const auto lines = split_lines(" One. Two. \r\n\n\u3000\u4eca\u5929\u3002\u597d\u00A0\n \t\nthree");
  EXPECT_EQ(std::vector<std::string>(lines.begin(), lines.end()),
            (std::vector<std::string>{"One. Two.", "\u4eca\u5929\u3002\u597d", "three"}));
  EXPECT_TRUE(split_lines(" \n\n").empty());
}

TEST(SentenceSplitter, ATextWithoutWordsHasNoSentences) {
  EXPECT_TRUE(split_sentences("").empty());
  EXPECT_TRUE(split_sentences(" \n\t\n\n \u00A0\u2003").empty());
  expect_split(".");
  expect_split("...");
}

// Texts of what the rules look at, and of bytes that are not UTF-8.
class RandomTexts : public ::testing::Test {
 protected:
  std::string text(bool is_valid = true) {
    static const std::vector<std::string> parts = {
        ".",   ".",    ". ",     ".  ",    "? ",     "!",      "\u2026", "...",        " ",  " ",
        "\n",  "\n\n", " \n \n", "\r\n",   "\u00A0", "\u2003", "\"",     "'",          "(",  ")",
        "[",   "]",    "\u201C", "\u201D", "\u2019", "\u2014", "-",      ",",          ";",  "The",
        "He",  "a",    "I",      "A",      "Mr",     "U.S",    "e.g",    "etc",        "No", "5",
        "3.1", "word", "Name",   "\u00E9", "\u00C9", "\u0416", "\u4E2D", "\U0001F600", "=",  "*"};
    static const std::vector<std::string> broken = {"\xff", "\xe2\x80", "\x80\x80\x80\x80", "\xf0\x9f"};
    const auto pick = [&](const auto& from) {
      return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random_)];
    };
    std::string result;
    for (int left = std::uniform_int_distribution<int>(0, 60)(random_); left > 0; --left) {
      result += is_valid || random_() % 8 != 0 ? pick(parts) : pick(broken);
    }
    return result;
  }
  static bool is_space(std::string_view text) {
    while (!text.empty()) {
      const Utf8Step step = decode_utf8(text);
      if (step.status != Utf8Status::kValid || class_of(step.code) != CharClass::kSpace) return false;
      text.remove_prefix(step.length);
    }
    return true;
  }
  static std::vector<std::string> sentences_of(const std::string& text) {
    const auto found = split_sentences(text);
    return {found.begin(), found.end()};
  }
  std::mt19937_64 random_{1};
};

TEST_F(RandomTexts, AreTheirSentencesAndTheWhiteSpaceBetween) {
  for (int round = 0; round < 20'000; ++round) {
    const std::string whole = text(round % 2 == 0);
    std::size_t at = 0;
    for (const std::string_view sentence : split_sentences(whole)) {
      const auto begin = static_cast<std::size_t>(sentence.data() - whole.data());
      ASSERT_GE(begin, at);
      ASSERT_TRUE(is_space(std::string_view(whole).substr(at, begin - at)));
      // Between ideographs a stop ends a sentence without white space.
      const bool may_touch = sentence.starts_with("\u4E2D") || sentence.starts_with("\u201C");
      ASSERT_TRUE(at == 0 || begin > at || may_touch) << "no white space between sentences: " << whole;
      ASSERT_FALSE(sentence.empty());
      ASSERT_FALSE(is_space(sentence.substr(0, 1)));
      ASSERT_FALSE(is_space(sentence.substr(sentence.size() - 1)));
      at = begin + sentence.size();
    }
    ASSERT_TRUE(is_space(std::string_view(whole).substr(at)));
  }
}

TEST_F(RandomTexts, ASentenceByItselfIsOne) {
  for (int round = 0; round < 10'000; ++round) {
    for (const std::string& sentence : sentences_of(text())) {
      ASSERT_EQ(sentences_of(sentence), std::vector<std::string>{sentence});
    }
  }
}

TEST_F(RandomTexts, ABlankLineBetweenTwoKeepsThemApart) {
  for (int round = 0; round < 10'000; ++round) {
    const std::string first = text(), second = text();
    std::vector<std::string> expected = sentences_of(first);
    std::ranges::copy(sentences_of(second), std::back_inserter(expected));
    ASSERT_EQ(sentences_of(first + "\n\n" + second), expected) << first << "\n---\n" << second;
  }
}

TEST_F(RandomTexts, ALineEndIsWhiteSpaceLikeAnyOther) {
  for (int round = 0; round < 10'000; ++round) {
    std::string spaced = text();
    std::ranges::replace(spaced, '\n', ' ');
    std::string lines = spaced;
    bool has_line = false;  // the white space at hand, which is to be no blank line
    for (std::size_t i = 0; i < lines.size(); i += decode_utf8(std::string_view(lines).substr(i)).length) {
      has_line = has_line && is_space(lines.substr(i, decode_utf8(std::string_view(lines).substr(i)).length));
      if (lines[i] != ' ' || has_line || random_() % 2 == 0) continue;
      lines[i] = '\n';
      has_line = true;
    }
    const auto found = split_sentences(lines), expected = split_sentences(spaced);
    ASSERT_EQ(found.size(), expected.size()) << spaced;
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].data() - lines.data(), expected[i].data() - spaced.data());
      ASSERT_EQ(found[i].size(), expected[i].size());
    }
  }
}

// A second each at most; with the square of the length, a sixth of it would take a minute each, and all of it hours.
TEST(SentenceSplitter, LongRunsOfAnythingAreSplitInLinearTime) {
  for (const char* part : {" ", "\n", "(", "a", "a.", ". ", "e.g. ", "(e.g. ", "\x80", ".\"", " \n", "\u2003", "A "}) {
    std::string text = "(((";
    while (text.size() < trials(std::size_t{1} << 20)) text += part;
    EXPECT_GE(split_sentences(text).size(), 1U);
  }
}

TEST(SentenceSplitter, QuotesCloseAsTheyWereOpened) {
  expect_split("\u201EIch komme.\u201C|Dann ging er.");
  expect_split("\u201AHalt!\u2018|Er blieb.");
  expect_split("\u00BBIch komme.\u00AB|Dann ging er.");
  expect_split("\u203AHalt!\u2039|Er blieb.");
  expect_split("\u00ABOui.\u00BB|\u00ABNon.\u00BB|Puis rien.");
  for (const char* space : {" ", "\u00A0", "\u202F"}) {
    expect_split(std::string("\u00AB") + space + "Oui." + space + "\u00BB|Puis il partit.");
    expect_split(std::string("\u00AB") + space + "Oui." + space + "\u00BB|\u00AB" + space + "Non." + space + "\u00BB");
  }
  expect_split("\u201EIch komme.|Er geht.\u201C|Dann kam sie.");
  expect_split("\u201EIch komme!\u201C sagte er.|Ende.");
  expect_split("He left.|\u201CStay.\u201D|She sat.");
  expect_split("Er ging.|\u00BBHalt!\u00AB|Ende.");
  expect_split("Ok\u203C|Yes\u2049|no\u203D");
}

}  // namespace
}  // namespace teratron::testing

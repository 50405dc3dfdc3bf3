// Repairs against ftfy's own (tests/golden/make_ftfy_golden.py), and what must hold for any text.
#include "corpus/clean/text_repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utf8proc.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/lines.h"
#include "base/philox.h"
#include "base/utf8.h"
#include "corpus/clean/garbled_signs.h"
#include "corpus/clean/mojibake.h"
#include "corpus/clean/windows_1252.h"

namespace teratron::testing {
namespace {

// UTF-8 as a reader of windows-1252 shows it.
std::string garbled(std::string_view text) {
  std::string shown;
  for (const char byte : text) append_utf8(windows_1252_character(static_cast<std::uint8_t>(byte)), shown);
  return shown;
}

std::u32string codes_of(std::string_view text) {
  std::u32string codes;
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    codes.push_back(step.code);
    text.remove_prefix(step.length);
  }
  return codes;
}

struct FtfyCase {
  std::string kind, text, fixed;
};

constexpr const char* kFtfyFile = TERATRON_SOURCE_DIR "/tests/golden/corpus/ftfy.jsonl";

std::vector<FtfyCase> ftfy_cases() {
  std::vector<FtfyCase> cases;
  for (const nlohmann::json& json : json_lines(kFtfyFile)) {
    if (json.contains("kind")) cases.push_back({json["kind"], json["text"], json["fixed"]});
  }
  return cases;
}

TEST(TextRepair, MendsAsFtfyDoes) {
  for (const FtfyCase& one : ftfy_cases()) {
    EXPECT_EQ(repair_text(one.text), one.fixed) << one.kind << ": " << nlohmann::json(one.text);
  }
}

// Each garbled word stands alone in an English line.
TEST(TextRepair, MendsNearlyAllGarbledWordsOfManyLanguagesAndNoCleanSentence) {
  int words = 0, mended = 0;
  for (const FtfyCase& one : ftfy_cases()) {
    if (one.kind == "clean") {
      EXPECT_EQ(mend_mojibake(one.text), one.text);
    } else if (one.kind == "word") {
      ++words;
      mended += mend_mojibake(one.text) != one.text ? 1 : 0;
    }
  }
  EXPECT_EQ(words, 638);
  EXPECT_EQ(mended, 618);
}

TEST(GarbledSigns, ArePairsThatFtfyTakesForGarbled) {
  int pairs = 0;
  for (const nlohmann::json& json : json_lines(kFtfyFile)) {
    if (!json.contains("signs")) continue;
    const std::u32string signs = codes_of(json["signs"].get<std::string>());
    for (std::size_t a = 0; a < signs.size(); ++a) {
      const std::string row =
          json["garbled"][a].get<std::string>();  // a hexadecimal number, of which the last sign has the last bit
      for (std::size_t b = 0; b < signs.size(); ++b, ++pairs) {
        const std::size_t bit = signs.size() - 1 - b;
        const int digit = bit / 4 < row.size() ? std::stoi(row.substr(row.size() - 1 - bit / 4, 1), nullptr, 16) : 0;
        const bool expected = ((digit >> (bit % 4)) & 1) != 0;
        const std::u32string text = {U'x', signs[a], signs[b], U'y'};
        EXPECT_EQ(looks_garbled(text), expected)
            << std::hex << static_cast<int>(signs[a]) << " " << static_cast<int>(signs[b]);
      }
    }
  }
  EXPECT_GT(pairs, 15000);
}

TEST(TextRepair, UndoesAnyNumberOfGarblings) {
  const std::string text = "D\u00e9j\u00e0 vu \u2014 na\u00efve caf\u00e9s, \u20ac5.";
  std::string worse = text;
  for (int times = 0; times < 5; ++times) {
    EXPECT_EQ(repair_text(worse), text) << times;
    worse = garbled(worse);
  }
}

TEST(TextRepair, LeavesNothingToRepair) {
  RandomSequence random(RandomStream{.seed = 11});
  const std::vector<char32_t> often = {0xC3, 0xA9, 0xE2, 0x20AC, 0x2122, '&',    ';',    '#',  'x',    'a',  '1',  '\r',
                                       '\n', 0x1B, '[',  'm',    0x301,  0xFB01, 0xFF21, 0x85, 0x201C, 0xC2, 0xA0, '<'};
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text;
    for (std::uint64_t left = random.below(16); left > 0; --left) {
      const auto any = static_cast<char32_t>(random.below(0xD800));
      append_utf8(random.below(3) == 0 ? any : often[random.below(often.size())], text);
    }
    const std::string once = repair_text(text);
    EXPECT_TRUE(is_utf8(once));
    if (text.find('<') == text.npos) {  // what follows it is not unescaped, and may come after a new line end
      EXPECT_EQ(repair_text(once), once) << nlohmann::json(text);
    }
  }
}

// Each character after, and before, one that combines with it if any does.
TEST(TextRepair, ComposesWhatNormalisationComposes) {
  const auto composed = [](const std::string& text) {
    utf8proc_uint8_t* out = utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
    std::string result(reinterpret_cast<const char*>(out));
    std::free(out);
    return result;
  };
  for (char32_t code = 0x2A0; code < 0xD800; ++code) {
    if (code >= 0x2018 && code <= 0x201F) continue;  // quotes
    std::string text = "a\u00E9";
    append_utf8(code, text);
    text += "b";
    const std::string repaired = repair_text(text);
    if (repaired.find('\'') != text.npos || repaired.find(' ') != text.npos || repaired.find('\n') != text.npos)
      continue;
    if (code >= 0x206A && code <= 0x206F) continue;  // controls
    EXPECT_EQ(repaired, composed(text)) << static_cast<std::uint32_t>(code);
  }
}

// Unicode's compatible letters of them, but for the long s.
TEST(TextRepair, LigaturesOfLatinLettersBecomeTheirLetters) {
  const auto compatible = [](const std::string& text) {
    utf8proc_uint8_t* out = utf8proc_NFKC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
    std::string result(reinterpret_cast<const char*>(out));
    std::free(out);
    return result;
  };
  std::vector<char32_t> codes = {0x132, 0x133, 0x1F1, 0x1F2, 0x1F3};
  for (char32_t code = 0x1C4; code <= 0x1CC; ++code) codes.push_back(code);
  for (char32_t code = 0xFB00; code <= 0xFB06; ++code) codes.push_back(code);
  for (const char32_t code : codes) {
    std::string text;
    append_utf8(code, text);
    const std::string expected = code == 0xFB05 ? "\u017Ft" : compatible(text);
    EXPECT_EQ(repair_text("a" + text + "b"), "a" + expected + "b") << static_cast<std::uint32_t>(code);
  }
  EXPECT_EQ(repair_text("\u0149"), "'n");
}

TEST(TextRepair, AsciiTextChangesInReferencesAndControlsAlone) {
  std::string text;
  for (char c = 0x20; c < 0x7F; ++c) {
    if (c != '&') text.push_back(c);
  }
  EXPECT_EQ(repair_text(text + "\t\n & &x; &amp"), text + "\t\n & &x; &amp");
}

TEST(NeedlessNewlines, AreThoseInsideOfSentencesAndEmptyLines) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"The end of\nthis line is\nneedless. The\nNext one stays.",
       "The end of this line is needless. The\nNext one stays."},
      {"Heading\n\n\n\nText, \nwith a comma \t\nand more.  \n\n", "Heading\n\nText, with a comma and more."},
      {"\n\n  indented\n    code\nend", "  indented\n    code end"},
      {"  \nHello", "Hello"},
      {"\t\n \r\n\f\n  code\n \nend. \n ", "  code\n\nend."},
      {"a.\nb", "a.\nb"},
      {"caf\u00e9\n\u00e9t\u00e9", "caf\u00e9 \u00e9t\u00e9"},
      {"in 1999\nthey", "in 1999 they"},
      {"one\n \ntwo", "one\n\ntwo"},
      {" \n ", ""},
      {"", ""}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(remove_needless_newlines(text), expected);
    EXPECT_EQ(remove_needless_newlines(expected), expected);
  }
}

}  // namespace
}  // namespace teratron::testing

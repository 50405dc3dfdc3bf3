// The kind of a file by its content: every kind of content, under every kind of name.
#include "data/text/content.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/compressed.h"
#include "base/error.h"
#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

struct Example {
  std::string bytes;
  std::string refusal;  // empty: it is taken
  ContentKind kind = ContentKind::kText;
};

std::vector<Example> examples() {
  const auto lines = ContentKind::kJsonLines, array = ContentKind::kJsonArray;
  const std::string two = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n", bom = "\xEF\xBB\xBF";
  return {
      {two, "", lines},
      {bom + "\n \r\n" + two, "", lines},
      {"{\"text\": \"" + std::string(100'000, 'x') + "\"}\n", "", lines},
      {"{\"n\": 1e400, \"m\": 18446744073709551616, \"text\": \"a\"}\n", "", lines},
      {"[{\"text\": \"one\"}, {\"text\": \"two\"}]", "", array},
      {bom + " [\n  {\n    \"text\": \"one\"\n  }\n]\n", "", array},
      {"[{\"text\": \"" + std::string(100'000, 'x') + "\"}]", "", array},
      {"[{\"text\": \"a\"}][{\"text\": \"b\"}]", "", array},
      // Other text that begins with a bracket.
      {"{\n  int x = 0;\n  return x;\n}\n", ""},
      {"{\\bf Theorem.} Let x be [0, 1].\n", ""},
      {"{{template}} of a wiki\n", ""},
      {"{ a set } of things\n", ""},
      {"[link](http://a.org) and more\n", ""},
      {"[1] A. Author, A paper.\n[2] B. Author.\n", ""},
      {"[ ] to do\n[x] done\n", ""},
      {"[\"quoted\" words] in a line\n", ""},
      {"[[wiki link]] text\n", ""},
      {"[{a: 1}, {b: 2}]; // JavaScript\n", ""},
      {"Hello, world.\nThis is, well, text.\nIt has, of course, commas.\n", ""},
      {"import os, sys\nx = 1\n", ""},
      {"ORCs are not what ORC is.\n", ""},
      {"a\tb\nno tab\n", ""},
      // Prose, verse, dialogue, code and lists, whose lines may have as many separators each.
      {"ALICE\tHello.\nBOB\tHi.\nALICE\tBye.\n", ""},
      {"\tindented\n\tlike this\n\tand this\n", ""},
      {"\tif a:\tx\n\tif b:\ty\n\tif c:\tz\n", ""},
      {"Flour,sugar\nEggs,milk\nSalt,oil\n", ""},
      {"Roses are red, violets are blue\nSugar is sweet, and so are you\nLate is the hour, early the dew\n", ""},
      {"Text, music\nA song, a dance\n", ""},
      {"x = 1\ny = \"a\"\n", ""},
      {"import os,sys\nimport io,re\nimport a,b\n", ""},
      {"mov eax,1\nadd eax,2\nsub ecx,3\n", ""},
      {"print(a,b)\nprint(c,d)\nprint(e,f)\n", ""},
      {"int id;\nint text;\nint label;\n", ""},
      {"SELECT id,text\nFROM a,b\nWHERE x,y\n", ""},
      {"return text;\nreturn id;\nreturn label;\n", ""},
      {"2024-01-01 10:00:00,123 INFO a\n2024-01-01 10:00:01,200 INFO b\n2024-01-01 10:00:02,300 INFO c\n", ""},
      {"| id | text |\n|---|---|\n| 1 | a |\n", ""},
      {"| id, text | label, n |\n| a, b | c, d |\n| e, f | g, h |\n", ""},
      {"<alice> hi\n<bob> hello\n", ""},
      {"<table> of contents\n", ""},
      {"<p align=\"center\">A project</p>\n\n# Markdown\n", ""},
      {"<table><tr><td>logo</td></tr></table>\n\n# Markdown\n", ""},
      {"<title of a book> was read\n", ""},
      {"<!-- a note -->\n# Markdown\n", ""},
      {"cats\nare\npets\n", ""},
      {"From here on it is prose.\n", ""},
      {"", ""},
      {" \n", ""},
      // Texts that may be either.
      {"{\"text\": \"open\n{\"text\": \"b\"}\n", "--format jsonl"},
      {"{'text': 'as Python prints it'}\n", "--format jsonl"},
      {"{\"text\": \"a\", \"score\": NaN}\n", "--format jsonl"},
      {"{\"text\": \"a\"}{\"text\": \"b\"}\n", "--format jsonl"},
      {"[{\"text\": \"a\"}, {\"text\"; \"b\"}]", "--format jsonl"},
      // Contents that are no text.
      {"{\n  \"text\": \"one\"\n}\n{\n  \"text\": \"two\"\n}\n", "several lines each"},
      {"[\"one\", \"two\"]\n", "something else than objects"},
      {"[1, 2, 3]", "something else than objects"},
      {"{\"data\": [{\"title\": \"t\", \"paragraphs\": [{\"context\": \"c\", \"qas\": []}]}]}", "SQuAD's JSON"},
      {"id,text,label\n1,\"a, \"\"b\"\"\nc\",x\n2,d,y\n", "comma-separated"},
      {",text\n0,Hello there\n1,Bye now\n2,x\n", "comma-separated"},
      {",0\n0,Hello there\n1,Bye now\n", "comma-separated"},
      {"id,text\n1,Hello there\n", "comma-separated"},
      {"id,text\n1," + std::string(150'000, 'x') + "\n2,b\n", "comma-separated"},
      {"id,text\n1,\"" + std::string(150'000, 'x') + "\"\n2,b\n", "comma-separated"},
      {"id\ttext\n1\t" + std::string(150'000, 'x') + "\n2\tb\n", "tab-separated"},
      {"id;text\n1;Hello\n2;Bye\n3;x\n", "semicolon-separated"},
      {"id,donn\u00E9es\n1,Hello\n2,Bye\n", "comma-separated"},
      {"id,text (en)\n1,Hello\n2,Bye\n", "comma-separated"},
      {"user id,full text\n1,Hello\n", "comma-separated"},
      {"#id,text\n1,Hello\n2,Bye\n", "comma-separated"},
      {"id,src/tgt\n1,Hello\n2,Bye\n", "comma-separated"},
      {"id,text,\n1,Hello,\n2,Bye,\n", "comma-separated"},
      {"id, text\n1, Hello\n2, Bye\n", "comma-separated"},
      {"id," + std::string(41, 'n') + "\n1,Hello\n2,Bye\n", "comma-separated"},
      {"quote,rating\nGood as bread,5\nNot for me,1\n", "comma-separated"},
      {"speaker,line\nHamlet,\"To be, or not\"\nYorick,Alas\n", "comma-separated"},
      {"<mediawiki xmlns=\"http://www.mediawiki.org\">\n<page>", "XML"},
      {"<mediawiki>\n<page>", "XML"},
      {"<rss version=\"2.0\"><channel>", "XML"},
      {"<feed xmlns=\"http://www.w3.org/2005/Atom\">", "XML"},
      {"<doc id=\"12\" url=\"http://a\" title=\"b\">\nText\n</doc>\n", "XML"},
      {"<svg width=\"3\"><path/></svg>", "XML"},
      {"<root xmlns:a=\"b\"><a:c/></root>", "XML"},
      {"<table border=\"1\" class=\"dataframe\">\n  <thead>\n<tr></tr></thead></table>\n", "HTML"},
      {"<HEAD lang=en><title>x</title>", "HTML"},
      {"<meta charset=\"utf-8\">\n<p>x", "HTML"},
      {"<title>x</title>\n<p>x", "HTML"},
      {"<!--" + std::string(70'000, '-') + "-->\n<html><body>", "HTML"},
      {"(lp0\nVHello\np1\na.", "pickle"},
      {"(dp0\nVtext\np1\n", "pickle"},
      {"cnumpy.core.multiarray\n_reconstruct\np0\n(cnumpy\n", "pickle"},
      {"]q\x00(X\x05\x00\x00\x00"s, "pickle"},
      {"filedesc://a.arc 0.0.0.0 20100101000000 text/plain 76\n", "ARC"},
      {"a\tb\nc\td\ne\tf\n", "tab-separated"},
      {"# settings\nmodel = \"tiny\"\nlr = 0.1\n", "settings"},
      {"[model]\nlayers = 3\n", "settings"},
      {"<!DOCTYPE html>\n<html><body>x</body></html>", "HTML"},
      {"<!-- a note -->\n<HTML lang=en>", "HTML"},
      {"<?xml version=\"1.0\"?><mediawiki/>", "XML"},
      {"\xFD\x37\x7A\x58\x5A\x00\x00"s, "xz"},
      {"BZh91AY&SY\x01\x02", "bzip2"},
      {"PK\x03\x04\x14\x00"s, "zip"},
      {gzip("inner"), "compressed twice"},
      {std::string(257, 'n') + "ustar\x00"s + "00", "tar archive"},
      {"PAR1\x15\x00\x15"s, "", ContentKind::kParquet},
      {"PARE\x15\x00\x15"s, "an encrypted Parquet file"},
      {"ARROW1\x00\x00"s, "Arrow"},
      {"Obj\x01\x04", "Avro"},
      {"SQLite format 3\x00"s, "SQLite"},
      {"%PDF-1.7\n", "PDF"},
      {"{\\rtf1\\ansi text}", "RTF"},
      {"\x80\x04\x95", "pickle"},
      {"\x89PNG\r\n\x1A\n", "picture"},
      {"\x7F"
       "ELF\x02",
       "program"},
      {"WARC/1.0\r\nWARC-Type: warcinfo\r\n", "WARC"},
      {"\xFF\xFE"
       "a\x00"s,
       "UTF-16"},
      {"a\x00"
       "b\x00"
       "c\x00"
       "d\x00"s,
       "UTF-16LE"},
      {"\x00"
       "a\x00"
       "b\x00"
       "c\x00"
       "d"s,
       "UTF-16BE"},
      {"\xFF\xFE\x00\x00"
       "a\x00\x00\x00"s,
       "UTF-32"},
  };
}

TEST(ContentKinds, AreRefusedWithAdviceThatTheCommandHasAFlagFor) {
  const auto fault = [](const std::string& head, std::string_view flag) {
    return message_of<UserError>([&] { require_readable(recognise_content(head, "a"), "a", flag); });
  };
  for (const std::string head : {"{'text': 'as Python prints it'}\n", "id,text,label\n1,a,x\n2,d,y\n"}) {
    EXPECT_THAT(fault(head, "--prompts-format"), HasSubstr("--prompts-format text"));
    EXPECT_THAT(fault(head, ""), ::testing::Not(HasSubstr("format")));
  }
  const Content lines = recognise_content("{\"text\": \"a\"}\n", "a.txt");
  EXPECT_THAT(surprise_of(lines, "a.txt", ""), ::testing::Not(HasSubstr("--format")));
}

TEST(ContentKinds, AreSeenInTheBytesUnderEveryNameThatSaysNothingElse) {
  for (const Example& example : examples()) {
    for (const char* name : {"a", "-", "a.txt", "a.dat", "folder.x/a.TXT"}) {
      const std::string head = example.bytes.substr(0, kContentHead);
      const Content found = recognise_content(head, name);
      const std::string shown = example.bytes.substr(0, 60) + " in " + name;
      if (example.refusal.empty()) {
        EXPECT_EQ(found.kind, example.kind) << shown << ": " << found.refusal;
      } else {
        EXPECT_EQ(found.kind, ContentKind::kOther) << shown;
        EXPECT_THAT(message_of<UserError>([&] { require_readable(found, name); }), HasSubstr(example.refusal)) << shown;
      }
    }
  }
}

TEST(ContentKinds, ReadJsonNamesAsJsonSoThatFaultsHaveALine) {
  for (const char* name : {"a.jsonl", "a.JSONL", "a.ndjson", "a.json", "a.json.gz", "a.JsonL.zst"}) {
    for (const char* text : {"{\"text\": \"open\n", "plain", "{'text': 1}\n", "{ x }", "", "[1", "{\"a\": NaN}\n"}) {
      const ContentKind kind = recognise_content(text, name).kind;
      EXPECT_EQ(kind, ContentKind::kJsonLines) << text << " in " << name;
    }
    EXPECT_EQ(recognise_content("[{\"text\": \"a\"}]", name).kind, ContentKind::kJsonArray);
    EXPECT_EQ(recognise_content("[{\"text\": \"a\"}, {\"te", name).kind, ContentKind::kJsonArray);  // cut short
    EXPECT_EQ(recognise_content("[]", name).kind, ContentKind::kJsonArray);
    EXPECT_EQ(recognise_content("%PDF-1.7", name).kind, ContentKind::kOther);
  }
}

TEST(ContentKinds, GoByTheNameWhereTheBytesDoNotDecide) {
  for (const char* name : {"a.csv", "a.TSV.gz", "a.toml", "a.html", "a.HTM", "a.xml", "a.pkl", "a.pickle"}) {
    EXPECT_EQ(recognise_content("some text\n", name).kind, ContentKind::kOther) << name;
    EXPECT_EQ(recognise_content("{\"text\": \"a\"}\n", name).kind, ContentKind::kJsonLines) << name;
  }
}

TEST(ContentKinds, ThatANameDoesNotLetExpectAreReported) {
  const Content lines{.kind = ContentKind::kJsonLines}, array{.kind = ContentKind::kJsonArray};
  for (const char* name : {"-", "a", "a.json", "a.jsonl", "a.NDJSON.gz"})
    EXPECT_EQ(surprise_of(lines, name), "") << name;
  for (const char* name : {"a.txt", "a.csv.gz"})
    EXPECT_THAT(surprise_of(lines, name), HasSubstr("--format text")) << name;
  EXPECT_THAT(surprise_of(array, "a.jsonl"), HasSubstr("a JSON array"));
  EXPECT_EQ(surprise_of(Content{}, "a.txt"), "");
}

TEST(ContentKinds, RecogniseWideAndPackedTextWithoutAMark) {
  const std::u32string russian = U"Паром всё утро стоял у дальнего берега, и никто не шёл домой. ",
                       chinese = U"昨天晚上我们在河边坐了很久，看着河水慢慢变暗。谁也不想回家。",
                       english = U"The rank waits for it. ";
  const auto bytes_of = [](const std::u32string& text, int width, bool is_big) {
    std::string bytes;
    for (const char32_t code : text) {
      for (int i = 0; i < width; ++i) bytes += static_cast<char>(code >> (8 * (is_big ? width - 1 - i : i)) & 0xFF);
    }
    return bytes;
  };
  for (const std::u32string& text : {russian, chinese, english}) {
    for (const int width : {2, 4}) {
      for (const bool is_big : {false, true}) {
        const std::string name = fmt::format("UTF-{}{}", 8 * width, is_big ? "BE" : "LE");
        EXPECT_THAT(recognise_content(bytes_of(text, width, is_big), "a").refusal, HasSubstr(name)) << text.size();
      }
    }
  }
  std::string zlib = "\x78\x9C\xED\xC1\x01\x0D\x80\xC2\xA0";
  EXPECT_THAT(recognise_content(zlib, "a").refusal, HasSubstr("zlib"));
  EXPECT_EQ(recognise_content("x^2 + y^2 = z^2\n", "a").kind, ContentKind::kText);
  EXPECT_THAT(recognise_content("\x1B\x0C\x80", "a.txt.br").refusal, HasSubstr("brotli"));
}

// No file of this project's own prose and source code is refused.
TEST(ContentKinds, CallProseAndSourceCodeText) {
  int files = 0;
  for (const char* folder : {"docs", "src", "tests", "scripts"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(TERATRON_SOURCE_DIR) / folder)) {
      const std::string ending = entry.path().extension();
      if (!entry.is_regular_file() || (ending != ".md" && ending != ".cc" && ending != ".h" && ending != ".py"))
        continue;
      const Content found = content_of_file(entry.path());
      EXPECT_NE(found.kind, ContentKind::kOther) << entry.path() << found.refusal;
      ++files;
    }
  }
  EXPECT_GT(files, 500);
}

}  // namespace
}  // namespace teratron::testing

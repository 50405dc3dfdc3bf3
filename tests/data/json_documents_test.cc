// Documents of JSON lines and arrays, and JSON by its grammar.
#include "data/text/document_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/compressed.h"
#include "base/error.h"
#include "data/dataset_fixture.h"
#include "data/text/document_text.h"
#include "data/text/json_scanner.h"

namespace teratron::testing {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// nlohmann's parser as the oracle: on valid JSON with a byte changed here and there.
TEST(JsonScanner, TakesWhatAnotherParserTakes) {
  const std::string json =
      R"({"a": [1, -0.5e+3, 0, 10E2, true, false, null, "x\u00e9\\\"\/\b", {}, []], "b": {"c": [[], [{}]]}, "": ""})";
  ASSERT_TRUE(is_json(json));
  std::mt19937 random(1);
  const std::string letters = R"({}[],:"\0123456789.eE+-truefalsn u/b)";
  int valid = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string changed = json;
    for (std::size_t i = 1 + random() % 2; i-- > 0;) {
      const std::size_t at = random() % changed.size();
      switch (random() % 3) {
        case 0: changed[at] = letters[random() % letters.size()]; break;
        case 1: changed.erase(at, 1); break;
        default: changed.insert(at, 1, letters[random() % letters.size()]);
      }
    }
    const bool expected = nlohmann::json::accept(changed);
    // That parser has limits for numbers, and looks into escapes of surrogates.
    if (changed.find("\\ud") != changed.npos) continue;
    EXPECT_EQ(is_json(changed), expected) << changed;
    valid += expected ? 1 : 0;
    JsonScanner pieces;  // the same byte by byte
    bool goes_on = true;
    for (const char c : changed) goes_on = goes_on && pieces.scan({&c, 1}) == 1;
    EXPECT_EQ(goes_on && pieces.is_complete(), goes_on && expected) << changed;
  }
  EXPECT_GT(valid, 1000);
}

class JsonDocuments : public ::testing::Test {
 protected:
  // The texts, or the fault of the first document that has one.
  std::vector<std::string> read(const std::string& content, std::int64_t batch_bytes = 1 << 20,
                                const std::string& name = "a.json") const {
    write_file_atomically(folder_ / name, content);
    const std::filesystem::path file = folder_ / name;
    DocumentReader reader(std::span(&file, 1), batch_bytes);
    DocumentText text_of("text");
    std::vector<std::string> texts;
    for (DocumentBatch batch; reader.next(batch);) {
      for (const RawDocument& document : batch.documents) {
        try {
          texts.emplace_back(text_of.of(document));
          EXPECT_EQ(document.bytes.find('\n'), std::string_view::npos);  // it is on one line
        } catch (const UserError& error) {
          texts.emplace_back(std::string("fault ") + error.what());
        }
      }
    }
    return texts;
  }
  TemporaryFolder folder_;
};

TEST_F(JsonDocuments, NumbersOfAnySizeAndListsOfAnyDepthAreNoFaultWhereTheyAreNotRead) {
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  for (const std::string& value : {"18446744073709551616"s, "-9223372036854775809"s, "1e400"s, "-1E+999"s,
                                   "340282366920938463463374607431768211456"s, deep, "0.1e-9999"s}) {
    EXPECT_THAT(read("{\"n\": " + value + ", \"text\": \"on\\u00e9\", \"m\": " + value + "}\n"),
                ElementsAre("on\u00E9"));
    EXPECT_THAT(read("[{\"text\": \"one\", \"n\": " + value + "}, {\"text\": \"two\"}]"), ElementsAre("one", "two"));
    EXPECT_THAT(read("{\"text\": " + value + "}\n").front(), HasSubstr(", not a string"));
    EXPECT_THAT(read("{\"other\": " + value + "}\n").front(), HasSubstr("no \"text\""));
    for (const char* bad : {"{\"n\": %, \"text\": \"a\"", "{\"n\": %, \"text\": \"a\", }",
                            "{\"n\": %x, \"text\": \"a\"}", "{\"n\": 0%, \"text\": \"a\"}"}) {
      std::string line = bad;
      line.replace(line.find('%'), 1, value);
      EXPECT_THAT(read(line + "\n", 1 << 20, "a.jsonl").front(), HasSubstr("a.jsonl:1: this line is not valid JSON"))
          << bad;
    }
  }
}

// As Python's json reads them; half a surrogate pair is U+FFFD, as ftfy makes of it.
TEST_F(JsonDocuments, HaveTheirLastTextWhateverElseTheyHold) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"meta": "\ud800", "text": "one"})", "one"},
      {R"({"meta": "\udc00\ud800\u0041", "text": "one"})", "one"},
      {R"({"\ud800": 1, "text": "one"})", "one"},
      {R"({"text": "a\ud800b", "n": 1e400})", "a\uFFFDb"},
      {R"({"text": "a\udead"})", "a\uFFFD"},
      {R"({"text": "\ud83d\ude00 \ud83d\u0041"})", "\U0001F600 \uFFFDA"},
      {R"({"text": "first", "text": "second"})", "second"},
      {R"({"text": "first", "n": 1e400, "te\u0078t": "second"})", "second"},
      {R"({"text": 1, "text": "second"})", "second"},
      {R"({"text": "first", "inner": {"text": "no"}, "text": "th\u00e9"})", "th\u00E9"}};
  for (const auto& [line, text] : cases) EXPECT_THAT(read(line + "\n", 1 << 20, "a.jsonl"), ElementsAre(text)) << line;
}

TEST_F(JsonDocuments, AreTheElementsOfAnArrayWhateverTheBatches) {
  const std::string array =
      "\xEF\xBB\xBF [ {\"text\": \"a, ]}\\\"\"},\r\n  {\n    \"more\": [[1, {}], \"x\"],\n    \"text\": \"b\\\\\"\n  "
      "},\n"
      "3, {\"text\": \"c\" \"d\"}, {\"text\": \"e\"}\n]\n";
  for (const std::int64_t batch : {1, 2, 7, 40, 1 << 20}) {
    const std::vector<std::string> texts = read(array, batch);
    ASSERT_EQ(texts.size(), 5U) << batch;
    EXPECT_EQ(texts[0], "a, ]}\"");
    EXPECT_EQ(texts[1], "b\\");
    EXPECT_THAT(texts[2], HasSubstr("a.json, element 3: this element is not a JSON object"));
    EXPECT_THAT(texts[3], HasSubstr("element 4: this element is not valid JSON"));
    EXPECT_EQ(texts[4], "e");
  }
  EXPECT_THAT(read("[{\"text\": \"a\\nb\"}, ]"),
              ElementsAre("a\nb", HasSubstr("element 2: this element is not valid")));
  EXPECT_THAT(read("[{\"text\": \"a\"}]\n\xEF\xBB\xBF[{\"text\": \"b\"}]", 3), ElementsAre("a", "b"));
  EXPECT_THAT(read("[{\"text\": \"raw\nend\"}]").front(), HasSubstr("not valid JSON"));
  const auto fault = [&](const std::string& content) { return message_of<UserError>([&] { read(content); }); };
  for (const char* rest : {"\xEF", "\n\xEF\xBB"}) {
    EXPECT_THAT(fault(std::string("[{\"text\": \"a\"}]") + rest), HasSubstr("text follows the end"));
  }
  EXPECT_THAT(fault("[{\"text\": \"a\"}, {\"text\": \"b\""),
              HasSubstr("cut short: its JSON array does not end, after element 1"));
  EXPECT_THAT(fault("[{\"text\": \"a\"}] x"), HasSubstr("text follows the end of its JSON array"));
  EXPECT_THAT(fault("[{\"text\": \"" + std::string(100'000, 'a') + "\"}] x"),
              HasSubstr("text follows the end of its JSON array"));
}

TEST_F(JsonDocuments, MayBeginWithAByteOrderMarkInAnyLine) {
  const std::string mark = "\xEF\xBB\xBF", line = mark + "{\"text\": \"a\"}\n";
  EXPECT_THAT(read(line + line + line), ElementsAre("a", "a", "a"));
}

TEST_F(JsonDocuments, HaveALargestSizeInCompressedFiles) {
  const std::string long_line = "{\"text\": \"" + std::string(5000, 'a') + "\"}\n";
  const auto fault = [&](const std::string& name, const std::string& content) {
    write_file_atomically(folder_ / name, content);
    const std::filesystem::path file = folder_ / name;
    return message_of<UserError>([&] {
      DocumentReader reader(std::span(&file, 1), 100, TextFormat::kAuto, 4000);
      for (DocumentBatch batch; reader.next(batch);) continue;
    });
  };
  EXPECT_THAT(fault("a.jsonl.gz", gzip("{\"text\": \"a\"}\n" + long_line)), HasSubstr("document 2 of"));
  EXPECT_THAT(fault("a.json.gz", gzip("[" + long_line + "]")), HasSubstr("document 1 of"));
  EXPECT_THAT(fault("a.txt.zst", zstd(std::string(5000, 'a'))), HasSubstr("decompress it into a file"));
  EXPECT_THAT(read(long_line, 100, "b.jsonl"), ElementsAre(std::string(5000, 'a')));  // what is not has none
}

TEST_F(JsonDocuments, OrTextsThatAreNotUtf8AreRefusedWithTheirPlaceUnlessAnyBytesAreText) {
  EXPECT_THAT(read("caf\xE9", 1 << 20, "a.txt").front(), HasSubstr("0xe9 at byte 3"));
  EXPECT_THAT(read("caf\xE9", 1 << 20, "a.txt").front(), HasSubstr("Latin-1"));
  EXPECT_THAT(read("\u00E9t\u00E9 \xE9", 1 << 20, "a.txt").front(), HasSubstr("damaged"));
}

TEST_F(JsonDocuments, ThatTheUserSaysAreLinesAndAreNotAreNamed) {
  const auto fault = [&](const std::string& content) {
    write_file_atomically(folder_ / "a", content);
    const std::filesystem::path file = folder_ / "a";
    DocumentReader reader(std::span(&file, 1), 1 << 20, TextFormat::kJsonLines);
    DocumentBatch batch;
    try {
      reader.next(batch);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  EXPECT_THAT(fault("[{\"text\": \"a\"}]"), HasSubstr("a JSON array"));
  EXPECT_THAT(fault("{\n  \"text\": \"a\"\n}\n"), HasSubstr("several lines each"));
  EXPECT_THAT(fault("id,text\n1,a\n2,b\n"), HasSubstr("comma-separated"));
  EXPECT_THAT(fault("\xFD\x37\x7A\x58\x5A\x00"s), HasSubstr("xz"));
  EXPECT_EQ(fault("{\"text\": \"open\n{\"text\": \"b\"}\n"), "read");  // reported with its line
}

}  // namespace
}  // namespace teratron::testing

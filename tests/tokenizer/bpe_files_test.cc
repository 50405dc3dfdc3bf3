// The files of a tokenizer: written and read back, in every form there is, and refused with a clear word when they are
// not what they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/message_of.h"
#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string error_of(const std::filesystem::path& path) {
  return message_of<UserError>([&] { Tokenizer::load(path); });
}

class TokenizerFiles : public ::testing::Test {
 protected:
  void SetUp() override { tokenizer_.save(folder_.path()); }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string read(const std::string& name) const { return read_file(folder_ / name); }
  // The complaint about the pair of files, and about tokenizer.json, after a change of one of them.
  std::string error_of_pair() const { return error_of(folder_ / "vocab.json"); }
  std::string error_after(const std::function<void(json&)>& change) {
    json content = json::parse(read("tokenizer.json"));
    change(content);
    write("changed.json", content.dump());
    return error_of(folder_ / "changed.json");
  }
  std::string error_after_vocabulary(const std::function<void(json&)>& change) {
    json content = json::parse(read("vocab.json"));
    change(content);
    write("vocab.json", content.dump());
    return error_of_pair();
  }

  Tokenizer tokenizer_ = small_tokenizer();
  TemporaryFolder folder_;
};

// Steps of a post-processor. kText is the text itself in a template.
const json kText = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
const json kByteLevel = {{"type", "ByteLevel"}, {"trim_offsets", true}};
json template_of(const json& pieces) {
  return {
      {"type", "TemplateProcessing"}, {"single", pieces}, {"pair", json::array()}, {"special_tokens", json::object()}};
}
json sequence_of(const json& processors) { return {{"type", "Sequence"}, {"processors", processors}}; }

TEST_F(TokenizerFiles, ReadBackTheSameInEveryForm) {
  for (const char* name : {"", "tokenizer.json", "vocab.json", "merges.txt"}) {
    EXPECT_EQ(Tokenizer::load(folder_ / name).model(), tokenizer_.model()) << name;
  }
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_EQ(Tokenizer::load(folder_.path()).model(), tokenizer_.model());
  std::filesystem::rename(folder_ / "vocab.json", folder_ / "encoder.json");
  std::filesystem::rename(folder_ / "merges.txt", folder_ / "vocab.bpe");
  EXPECT_EQ(Tokenizer::load(folder_.path()).model(), tokenizer_.model());
}

TEST_F(TokenizerFiles, KeepSpecialTokensOfAnyText) {
  json content = json::parse(read("tokenizer.json"));
  for (const char* text : {"<|im_start|>", "\u2581<\"quoted\\\n>", "    "}) {
    content["added_tokens"].push_back(
        {{"id", 299 + content["added_tokens"].size()}, {"content", text}, {"special", true}});
  }
  write("changed.json", content.dump());
  const Tokenizer changed = Tokenizer::load(folder_ / "changed.json");
  EXPECT_EQ(changed.bytes_of(301), "\u2581<\"quoted\\\n>");
  EXPECT_EQ(changed.special_token("    "), 302);
  changed.save(folder_ / "again");
  EXPECT_EQ(Tokenizer::load(folder_ / "again").model(), changed.model());
}

TEST_F(TokenizerFiles, TakeMergesAsStringsOrPairs) {
  json content = json::parse(read("tokenizer.json"));
  for (json& merge : content["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    merge = json::array({text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)});
  }
  write("changed.json", content.dump());
  EXPECT_EQ(Tokenizer::load(folder_ / "changed.json").model(), tokenizer_.model());
}

TEST_F(TokenizerFiles, AreNamedWhenMissing) {
  EXPECT_THAT(error_of(folder_ / "nowhere"), HasSubstr("no tokenizer at"));
  std::filesystem::remove(folder_ / "merges.txt");
  EXPECT_THAT(error_of_pair(), HasSubstr("merges.txt"));
  TemporaryFolder empty;
  EXPECT_THAT(error_of(empty.path()), HasSubstr("needs tokenizer.json, or vocab.json with merges.txt"));
}

TEST_F(TokenizerFiles, AreRefusedWhenNotJson) {
  for (const char* content : {"", "{", "[1, 2]", "nothing", "{\"a\": 1,}", "\xFF\xFE"}) {
    write("vocab.json", content);
    EXPECT_THAT(error_of_pair(), HasSubstr("is not a JSON object of tokens and ids")) << content;
    write("changed.json", content);
    EXPECT_THAT(error_of(folder_ / "changed.json"), HasSubstr("is not a tokenizer.json")) << content;
  }
  write("vocab.json", "{\"a\": \"1\"}");
  EXPECT_THAT(error_of_pair(), HasSubstr("the id of token 'a' is not a whole number"));
}

TEST_F(TokenizerFiles, AreRefusedWhenIdsAreWrong) {
  EXPECT_THAT(error_after_vocabulary([](json& v) { v["!"] = 1; }), HasSubstr("have the same id, 1"));
  EXPECT_THAT(error_after_vocabulary([](json& v) { v["!"] = 300; }),
              HasSubstr("'!' has id 300, but the ids of 300 tokens must be 0 to 299 without gaps"));
  EXPECT_THAT(error_after_vocabulary([](json& v) { v["!"] = -1; }), HasSubstr("has id -1"));
  EXPECT_THAT(error_after_vocabulary([](json& v) { v["!"] = 1e9; }), HasSubstr("not a whole number"));
  write("vocab.json", R"({"a": 0, "b": 1, "a": 2})");
  EXPECT_THAT(error_of_pair(), HasSubstr("token 'a' is listed twice, with ids 0 and 2"));
}

TEST_F(TokenizerFiles, AreRefusedWhenAByteHasNoToken) {
  std::string vocabulary = read("vocab.json");
  vocabulary.replace(vocabulary.find("\"!\""), 3, "\"<!>\"");
  write("vocab.json", vocabulary);
  EXPECT_THAT(error_of_pair(), HasSubstr("no token for byte 0x21"));
}

TEST_F(TokenizerFiles, AreRefusedWhenTheyDisagree) {
  const std::string merges = read("merges.txt");
  const std::size_t last_line = merges.rfind('\n', merges.size() - 2) + 1;
  write("merges.txt", merges.substr(0, last_line));
  EXPECT_THAT(error_of_pair(), HasSubstr("the vocabulary and the merges disagree: no merge makes token 298"));

  write("merges.txt", merges + "q q\n");
  EXPECT_THAT(error_of_pair(),
              HasSubstr("merges.txt', line 45: the vocabulary and the merges disagree: 'qq' is not in"));
  write("merges.txt", merges + "missing q\n");
  EXPECT_THAT(error_of_pair(), HasSubstr("'missing' is not in"));

  write("merges.txt", merges + merges.substr(last_line));
  EXPECT_THAT(error_of_pair(), HasSubstr("is listed twice"));
  for (const char* line : {"word", " word", "word ", "a b c"}) {
    write("merges.txt", merges + line + "\n");
    EXPECT_THAT(error_of_pair(), HasSubstr("two tokens with a space between them are needed")) << line;
  }
}

TEST_F(TokenizerFiles, AreRefusedWhenNotByteLevel) {
  EXPECT_THAT(error_after_vocabulary([](json& v) { v["\u4E2D"] = 300; }),
              HasSubstr("characters that stand for no byte"));
}

TEST_F(TokenizerFiles, AreRefusedByNameForOtherPipelines) {
  const std::vector<std::pair<std::function<void(json&)>, std::string>> cases = {
      {[](json& t) { t["model"]["type"] = "Unigram"; }, "its model is 'Unigram'"},
      {[](json& t) { t.erase("model"); }, "it has no \"model\""},
      {[](json& t) { t["model"]["merges"] = 3; }, "no list \"merges\""},
      {[](json& t) { t["model"]["vocab"] = 3; }, "no object \"vocab\""},
      {[](json& t) { t["model"]["merges"][0] = "ab"; }, "merge 1: two tokens are needed"},
      {[](json& t) {
         t["model"]["merges"][1] = {"a", 1};
       },
       "merge 2: two tokens are needed"},
      {[](json& t) { t["model"]["byte_fallback"] = true; }, "its pre_tokenizer is 'ByteLevel'"},
      {[](json& t) { t["model"]["end_of_word_suffix"] = "</w>"; }, "sets \"end_of_word_suffix\""},
      {[](json& t) { t["model"]["dropout"] = 0.1; }, "drops merges at random"},
      {[](json& t) {
         t["normalizer"] = {{"type", "NFD"}};
       },
       "its normalizer is 'NFD'"},
      {[](json& t) {
         t["pre_tokenizer"] = {{"type", "Sequence"}};
       },
       "its pre_tokenizer is a Sequence without a list"},
      {[](json& t) { t["pre_tokenizer"] = nullptr; }, "its pre_tokenizer is 'null'"},
      {[](json& t) { t["pre_tokenizer"]["use_regex"] = false; }, "does not split"},
      {[](json& t) {
         t["post_processor"] = {{"type", "BertProcessing"}};
       },
       "its post_processor is 'BertProcessing'"},
      {[](json& t) {
         t["post_processor"] = {{"type", "TemplateProcessing"}};
       },
       "a template without a list \"single\""},
      {[](json& t) {
         t["post_processor"] = template_of({kText, {{"SpecialToken", {{"id", "<s>"}}}}});
       },
       "adds '<s>'"},
      {[](json& t) {
         t["post_processor"] = template_of({kText, kText});
       },
       "more than the text itself"},
      {[](json& t) { t["post_processor"] = template_of(json::array()); }, "more than the text itself"},
      {[](json& t) {
         t["post_processor"] = sequence_of({kByteLevel, template_of({{{"SpecialToken", {{"id", "[CLS]"}}}}, kText})});
       },
       "adds '[CLS]'"},
      {[](json& t) {
         t["decoder"] = {{"type", "WordPiece"}};
       },
       "its decoder is 'WordPiece'"},
      {[](json& t) { t["added_tokens"][0]["lstrip"] = true; }, "'<|endoftext|>' sets \"lstrip\""},
      {[](json& t) {
         t["added_tokens"].push_back({{"id", 300}, {"content", "word"}, {"special", false}});
       },
       "'word' is not special"},
      {[](json& t) {
         t["added_tokens"].push_back({{"id", t["model"]["vocab"]["th"]}, {"content", "th"}, {"special", true}});
       },
       "'th' is an ordinary token"},
      {[](json& t) { t["added_tokens"][0].erase("id"); }, "an added token needs a \"content\""},
      {[](json& t) { t["added_tokens"][0]["id"] = 7; }, "'<|endoftext|>' is listed twice, with ids 299 and 7"},
  };
  for (const auto& [change, expected] : cases) EXPECT_THAT(error_after(change), HasSubstr(expected));
  for (const char* step : {"post_processor", "decoder"}) {
    EXPECT_EQ(error_after([&](json& t) { t[step] = nullptr; }), kNoError) << step;
  }
}

TEST_F(TokenizerFiles, AreTakenWhateverPostProcessorAddsNothing) {
  const json text = template_of(json::array({kText}));  // what transformers 5 writes
  for (const json& processor : {text, kByteLevel, sequence_of(json::array()), sequence_of({kByteLevel, text}),
                                sequence_of(json::array({sequence_of({text, kByteLevel})}))}) {
    EXPECT_EQ(error_after([&](json& t) { t["post_processor"] = processor; }), kNoError) << processor;
    EXPECT_EQ(Tokenizer::load(folder_ / "changed.json").model(), tokenizer_.model());
  }
}

TEST_F(TokenizerFiles, AreEitherReadOrRefusedWhateverTheyHold) {
  RandomSequence random = random_sequence(10);
  int refused = 0;
  for (const char* name : {"vocab.json", "merges.txt", "tokenizer.json"}) {
    const std::string content = read(name);
    for (int trial = 0; trial < 100; ++trial) {
      std::string damaged = content;
      for (std::uint64_t i = 1 + random.below(3); i > 0; --i) {
        const std::size_t at = random.below(damaged.size());
        switch (random.below(3)) {
          case 0: damaged[at] = static_cast<char>(random.below(256)); break;
          case 1: damaged.erase(at, random.below(40)); break;
          default: damaged.insert(at, damaged.substr(random.below(damaged.size()), random.below(40)));
        }
      }
      write(name, damaged);
      const std::string error = error_of(folder_ / name);
      EXPECT_FALSE(error.empty());
      refused += error == kNoError ? 0 : 1;
    }
    write(name, content);
  }
  EXPECT_GT(refused, 200);
}

TEST_F(TokenizerFiles, ThatWouldStandInAFileAreAUserError) {
  EXPECT_THROW(tokenizer_.save(folder_ / "vocab.json" / "below"), UserError);
}

}  // namespace
}  // namespace teratron::testing

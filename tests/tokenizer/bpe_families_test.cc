// Tokenizers of today's models against Hugging Face's: tests/golden/bpe_families, whose answers
// make_bpe_families_golden.py wrote down, and random Unicode, where the environment of scripts/oracle-env is (other
// texts with TERATRON_SEED).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "oracle/python.h"
#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

std::filesystem::path family_file(const std::string& name) {
  return std::filesystem::path(TERATRON_SOURCE_DIR) / "tests/golden/bpe_families" / name;
}

class BpeFamilies : public ::testing::TestWithParam<const char*> {
 protected:
  // In every way to encode, and back.
  static void expect_same(const Tokenizer& tokenizer, const std::string& text, const Ids& ids,
                          const std::string& decoded) {
    ASSERT_EQ(tokenizer.encode(text), ids) << json(text);
    ASSERT_EQ(tokenizer.decode(ids), decoded) << json(text);
    ASSERT_EQ(tokenizer.encode_parallel(text), ids) << json(text);
    std::uint32_t at = 0;
    std::size_t count = 0;
    for (const TokenSpan& span : tokenizer.encode_with_offsets(text)) {
      ASSERT_EQ(span.id, ids.at(count++)) << json(text);
      ASSERT_LE(span.begin, span.end) << json(text);
      ASSERT_LE(span.begin, at) << json(text);  // no byte is left out
      at = span.end;
    }
    ASSERT_EQ(at, text.size()) << json(text);
  }

  const Tokenizer tokenizer_ = Tokenizer::load(family_file(std::string(GetParam()) + ".json"));
  TemporaryFolder folder_;
};

TEST_P(BpeFamilies, HardTextsHaveTheIdsOfHuggingFace) {
  const json texts = json::parse(read_file(family_file("texts.json")));
  const json answers = json::parse(read_file(family_file(std::string(GetParam()) + "_ids.json")));
  ASSERT_EQ(texts.size(), answers.size());
  ASSERT_GT(texts.size(), 100U);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    const auto ids = answers[i][0].get<Ids>();
    const std::string decoded = answers[i][1].is_null() ? text : answers[i][1].get<std::string>();
    ASSERT_NO_FATAL_FAILURE(expect_same(tokenizer_, text, ids, decoded));
    ASSERT_EQ(tokenizer_.encode(text, SpecialText::kToken), answers[i][2].is_null() ? ids : answers[i][2].get<Ids>())
        << texts[i];
  }
}

TEST_P(BpeFamilies, ComeBackFromTheirFiles) {
  tokenizer_.save(folder_.path());
  const Tokenizer again = Tokenizer::load(folder_.path());
  EXPECT_EQ(again.model(), tokenizer_.model());
  EXPECT_EQ(again.hash(), tokenizer_.hash());
  EXPECT_EQ(again.beginning_of_text(), tokenizer_.beginning_of_text());
}

TEST_P(BpeFamilies, EncodeAnyBytes) {
  RandomSequence random = random_sequence(7);
  for (int trial = 0; trial < 300; ++trial) {
    const std::string text =
        random_bytes(random, random.below(200), trial % 2 == 0 ? "" : " a\xCC\x81\xE2\x96\xC3\xA9.<");
    const Ids ids = tokenizer_.encode(text);
    ASSERT_EQ(tokenizer_.encode_parallel(text), ids);
    std::uint32_t at = 0;
    for (const TokenSpan& span : tokenizer_.encode_with_offsets(text)) {
      ASSERT_LE(span.begin, span.end);
      ASSERT_LE(span.end, text.size());
      at = span.end;
    }
    const BpePipeline& pipeline = tokenizer_.model().pipeline;
    if (tokenizer_.model().tokens.size() < 256 || pipeline.nfc || pipeline.splitter == BpeSplitter::kDigits) continue;
    ASSERT_EQ(at, text.size());
    std::string expected = text;
    for (std::size_t sign; pipeline.is_sentence_piece() && (sign = expected.find(kSpaceSign)) != std::string::npos;) {
      expected.replace(sign, kSpaceSign.size(), " ");
    }
    if (pipeline.prefix == BpePrefix::kUnlessSpace || pipeline.prefix == BpePrefix::kUnlessSpaceAtStart) {
      expected.erase(0, expected.starts_with(' ') ? 1 : 0);  // the space that decoding takes for the one put before
    }
    ASSERT_EQ(tokenizer_.decode(ids), expected);
  }
}

TEST_P(BpeFamilies, OracleHasTheSameIdsOfRandomUnicodeAndCode) {
  if (const std::string why = why_no_oracle(); !why.empty()) GTEST_SKIP() << why;
  const char* seed = std::getenv("TERATRON_SEED");
  tokenizer_.save(folder_.path());
  ASSERT_EQ(run_oracle("bpe_families.py",
                       {family_file(std::string(GetParam()) + ".json").string(), (folder_ / "tokenizer.json").string(),
                        seed == nullptr ? "1" : seed, (folder_ / "answers").string()},
                       folder_ / "log"),
            0)
      << read_file(folder_ / "log");
  const json answers = json::parse(read_file(folder_ / "answers"));
  ASSERT_GT(answers.size(), 3000U);
  for (const json& one : answers) {
    const auto text = one[0].get<std::string>();
    ASSERT_NO_FATAL_FAILURE(expect_same(tokenizer_, text, one[1].get<Ids>(), one[2].get<std::string>()));
    const auto special = one[3].get<Ids>();
    ASSERT_EQ(tokenizer_.encode(text, SpecialText::kToken), special) << one[0];
    ASSERT_EQ(tokenizer_.decode(special), one[4].get<std::string>()) << one[0];
  }
}

INSTANTIATE_TEST_SUITE_P(Each, BpeFamilies,
                         ::testing::Values("llama3", "qwen3", "neox", "smollm", "llama2", "mistral", "metaspace"),
                         [](const auto& one) { return one.param; });

TEST(BpeFamilyFiles, AreRefusedByNameForAnotherMeaning) {
  const TemporaryFolder folder;
  const auto error_after = [&](const std::string& family, const std::function<void(json&)>& change) {
    json content = json::parse(read_file(family_file(family + ".json")));
    change(content);
    std::ofstream(folder / "tokenizer.json") << content.dump();
    try {
      Tokenizer::load(folder / "tokenizer.json");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  struct Case {
    const char* family;
    std::function<void(json&)> change;
    const char* expected;
  };
  const std::vector<Case> cases = {
      {"llama3", [](json& t) { t["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = R"(\p{L}+)"; },
       R"(splits by another expression than Llama 3's and Qwen 2's: '\p{L}+')"},
      {"llama3",
       [](json& t) {
         t["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", " "}};
       },
       "another expression"},
      {"llama3", [](json& t) { t["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }, "not \"Isolated\""},
      {"llama3", [](json& t) { t["pre_tokenizer"]["pretokenizers"][0]["invert"] = true; }, "inverted"},
      {"llama3", [](json& t) { t["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true; }, "splits a second time"},
      {"llama3", [](json& t) { t["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; },
       "add_prefix_space"},
      {"llama3",
       [](json& t) {
         t["normalizer"] = {{"type", "NFKC"}};
       },
       "its normalizer is 'NFKC'"},
      {"llama3",
       [](json& t) { t["post_processor"]["processors"][1]["special_tokens"]["<|begin_of_text|>"]["ids"] = {5}; },
       "adds '<|begin_of_text|>' to every text, which is no added token with the same id"},
      {"llama3", [](json& t) { std::ranges::reverse(t["post_processor"]["processors"][1]["single"]); },
       "adds '<|begin_of_text|>' to every text, and one token before it is the most"},
      {"qwen3", [](json& t) { t["added_tokens"][1]["normalized"] = true; }, "'<|im_start|>' sets \"normalized\""},
      {"qwen3", [](json& t) { t["added_tokens"][3]["content"] = "think"; }, "'think' is not special"},
      {"smollm", [](json& t) { t["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = false; },
       "its pre_tokenizer is 'Sequence' of 'Digits', 'ByteLevel'"},
      {"neox",
       [](json& t) {
         t["model"]["vocab"]["<zero>"] = t["model"]["vocab"]["\u0100"];
         t["model"]["vocab"].erase("\u0100");
       },
       "no token for byte 0x00"},
      {"llama2", [](json& t) { t["model"]["byte_fallback"] = false; },
       "its normalizer is 'Sequence' of 'Prepend', 'Replace'"},
      {"llama2", [](json& t) { t["model"]["ignore_merges"] = true; }, "\"ignore_merges\" and \"byte_fallback\""},
      {"llama2", [](json& t) { t["normalizer"]["normalizers"][0]["prepend"] = "_"; }, "its normalizer is 'Sequence'"},
      {"llama2", [](json& t) { t["normalizer"] = nullptr; }, "its normalizer is 'null'"},
      {"llama2", [](json& t) { t["added_tokens"][1]["normalized"] = true; }, "'<s>' sets \"normalized\""},
      {"llama2", [](json& t) { t["decoder"]["decoders"][3]["start"] = 2; }, "its decoder is 'Sequence' of 'Replace'"},
      {"llama2", [](json& t) { t["decoder"] = nullptr; }, "its decoder is 'null'"},
      {"llama2", [](json& t) { t["model"]["type"] = "Unigram"; }, "its model is 'Unigram'"},
      {"llama2",
       [](json& t) {
         t["model"]["vocab"]["<0x4a>x"] = t["model"]["vocab"]["<0x4A>"];
         t["model"]["vocab"].erase("<0x4A>");
       },
       "has no token <0x4A>"},
      {"mistral", [](json& t) { t["pre_tokenizer"]["prepend_scheme"] = "last"; }, "its prepend_scheme is 'last'"},
      {"mistral", [](json& t) { t["pre_tokenizer"]["replacement"] = "_"; }, "another sign"},
      {"mistral", [](json& t) { t["pre_tokenizer"]["type"] = "WhitespaceSplit"; },
       "its pre_tokenizer is 'WhitespaceSplit'"},
  };
  for (const Case& one : cases) EXPECT_THAT(error_after(one.family, one.change), HasSubstr(one.expected)) << one.family;
}

TEST(BpeFamilyFiles, HaveTheBeginningOfTheirTemplate) {
  EXPECT_EQ(Tokenizer::load(family_file("mistral.json")).beginning_of_text(), 1);
  EXPECT_EQ(Tokenizer::load(family_file("qwen3.json")).beginning_of_text(), std::nullopt);
  const Tokenizer llama = Tokenizer::load(family_file("llama3.json"));
  EXPECT_EQ(llama.beginning_of_text(), llama.special_token("<|begin_of_text|>"));
  EXPECT_NE(llama.beginning_of_text(), std::nullopt);
}

}  // namespace
}  // namespace teratron::testing

// Tokenizers in GGUF: what llama.cpp makes of SentencePiece's scores has our ids, and a tokenizer that it would treat
// otherwise is refused. tests/oracle/gguf_as_llama_cpp.py asks llama.cpp itself.
#include "tokenizer/gguf_vocabulary.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/message_of.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json family_json(const std::string& name) {
  return json::parse(
      read_file(std::filesystem::path(TERATRON_SOURCE_DIR) / "tests/golden/bpe_families" / (name + ".json")));
}

Tokenizer tokenizer_of(const json& content, const std::string& end = "</s>") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "tokenizer.json", content.dump());
  write_file_atomically(folder / "tokenizer_config.json", json{{"eos_token", end}}.dump());
  return Tokenizer::load(folder / "tokenizer.json");
}

// Every split of a token into two tokens merges, as SentencePiece's do; tokens in the order of their first merge.
json with_all_merges(json content) {
  std::set<std::string> plain;
  for (const auto& [token, id] : content["model"]["vocab"].items()) {
    if (id.get<int>() > 2 && !token.starts_with("<0x")) plain.insert(token);
  }
  json merges = json::array();
  std::set<std::string> done;
  for (const json& merge : content["model"]["merges"]) {
    const std::string left = merge[0], right = merge[1], whole = left + right;
    if (!done.insert(whole).second) continue;
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
      if (plain.contains(whole.substr(0, cut)) && plain.contains(whole.substr(cut))) {
        merges.push_back({whole.substr(0, cut), whole.substr(cut)});
      }
    }
  }
  content["model"]["merges"] = merges;
  return content;
}

// As llama.cpp does it: of all neighbours whose text is a token, the one with the highest score becomes it.
std::vector<std::int32_t> by_scores(const GgufVocabulary& vocabulary, std::string text) {
  std::map<std::string, std::int32_t> ids;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    ids[vocabulary.tokens[id]] = static_cast<std::int32_t>(id);
  }
  std::vector<std::string> parts;
  if (vocabulary.adds_space) text.insert(0, " ");
  for (std::string_view rest = text; !rest.empty();) {
    const auto length = static_cast<std::size_t>(decode_utf8(rest).length);
    parts.emplace_back(rest[0] == ' ' ? "\u2581" : rest.substr(0, length));
    rest.remove_prefix(length);
  }
  while (true) {
    std::size_t best = parts.size();
    float score = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ids.find(parts[i] + parts[i + 1]);
      if (found == ids.end()) continue;
      const float here = vocabulary.scores[static_cast<std::size_t>(found->second)];
      if (best == parts.size() || here > score) best = i, score = here;
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<std::int32_t> result;
  for (const std::string& part : parts) {
    if (const auto found = ids.find(part); found != ids.end()) {
      result.push_back(found->second);
      continue;
    }
    for (const char byte : part) result.push_back(ids.at(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte))));
  }
  return result;
}

TEST(GgufVocabulary, ScoresMergeAsSentencePiecesRanks) {
  const Tokenizer tokenizer = tokenizer_of(with_all_merges(family_json("llama2")));
  const GgufVocabulary vocabulary = gguf_vocabulary(tokenizer, tokenizer.vocab_size());
  EXPECT_EQ(vocabulary.model, "llama");
  EXPECT_TRUE(vocabulary.adds_space && vocabulary.adds_beginning);
  EXPECT_EQ(vocabulary.types[0], 2);
  EXPECT_EQ(vocabulary.types[1], 3);
  EXPECT_EQ(vocabulary.types[3], 6);
  RandomSequence random = random_sequence(7);
  std::vector<std::string> texts = {"the cat sat on 12 mats", "na\u00efve \u4e2d\u6587  two", "\n\tx"};
  for (int i = 0; i < 300; ++i) texts.push_back(random_bytes(random, 1 + random.below(30), "the rein aonds  \n"));
  for (const std::string& text : texts) EXPECT_EQ(by_scores(vocabulary, text), tokenizer.encode(text)) << text;
}

TEST(GgufVocabulary, FamiliesHaveTheNamesOfTheirSplitters) {
  const std::pair<const char*, const char*> names[] = {
      {"llama3", "llama-bpe"}, {"qwen3", "qwen2"}, {"smollm", "smollm"}, {"neox", "gpt-2"}};
  for (const auto& [family, name] : names) {
    const bool is_llama = std::string(family) == "llama3";
    const Tokenizer tokenizer = tokenizer_of(family_json(family), is_llama ? "<|end_of_text|>" : "<|endoftext|>");
    const GgufVocabulary vocabulary = gguf_vocabulary(tokenizer, tokenizer.vocab_size() + 2);
    EXPECT_EQ(vocabulary.splitter, name);
    EXPECT_EQ(vocabulary.adds_beginning, is_llama);
    EXPECT_EQ(vocabulary.merges.size(), tokenizer.model().merges.size());
    EXPECT_EQ(vocabulary.tokens.back(), fmt::format("[PAD{}]", tokenizer.vocab_size() + 1));
    EXPECT_EQ(vocabulary.types.back(), 5);
    EXPECT_EQ(vocabulary.tokens[static_cast<std::size_t>(vocabulary.end_of_text)], tokenizer.model().end_of_text);
    const bool composes = std::string(family) == "qwen3" || std::string(family) == "neox";
    EXPECT_EQ(vocabulary.notes.size(), composes ? 1U : 0U);
  }
}

TEST(GgufVocabulary, RunsOfSpacesAreUserDefined) {
  const GgufVocabulary vocabulary = gguf_vocabulary(tokenizer_of(family_json("neox"), "<|endoftext|>"), 0);
  const auto found = std::ranges::find(vocabulary.tokens, std::string(24, ' '));
  ASSERT_NE(found, vocabulary.tokens.end());
  EXPECT_EQ(vocabulary.types[static_cast<std::size_t>(found - vocabulary.tokens.begin())], 4);
}

void expect_refused(const Tokenizer& tokenizer, const std::string& why) {
  EXPECT_THAT(message_of<UserError>([&] { gguf_vocabulary(tokenizer, tokenizer.vocab_size()); }), HasSubstr(why));
}

TEST(GgufVocabulary, RefusesTextThatLlamaCppWouldSplitOtherwise) {
  expect_refused(tokenizer_of(family_json("llama2")), "whose text is a token");  // one merge a token
  json apart = with_all_merges(family_json("llama2"));
  json& merges = apart["model"]["merges"];
  std::size_t second = 1;
  const auto whole = [&](std::size_t i) { return merges[i][0].get<std::string>() + merges[i][1].get<std::string>(); };
  while (whole(second) != whole(second - 1)) ++second;
  merges.push_back(merges[second]);
  merges.erase(merges.begin() + static_cast<std::ptrdiff_t>(second));
  expect_refused(tokenizer_of(apart), "stand apart");
  json early = family_json("qwen3");
  early["model"]["ignore_merges"] = true;
  expect_refused(tokenizer_of(early, "<|endoftext|>"), "ignore_merges");
  BpeModel model = small_tokenizer().model();
  model.pipeline.prefix = BpePrefix::kUnlessSpace;
  expect_refused(Tokenizer(model), "add_prefix_space");
  model = small_tokenizer().model();
  model.end_of_text = "<|other|>";
  expect_refused(Tokenizer(model), "eos_token");
}

}  // namespace
}  // namespace teratron::testing

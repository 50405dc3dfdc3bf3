// RoBERTa's byte-level BPE: its files, the frame of its texts, and white space before <mask>. Its ids beside
// transformers' are compared by tests/oracle/encoders_as_transformers.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/text_frame.h"
#include "tokenizer/tokenizer_fixture.h"

namespace teratron::testing {
namespace {

using Json = nlohmann::json;

Tokenizer roberta(std::vector<std::string> special = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}) {
  const std::string_view text = "the ranks of the rank wait for the ranks";
  BpeModel model = train_bpe({&text, 1}, {.vocab_size = 270, .special = std::move(special)});
  model.end_of_text = "</s>";
  return Tokenizer(std::move(model));
}

TEST(RobertaTokenizer, FramesTextsAndBertsFramesThem) {
  const Tokenizer tokenizer = roberta();
  const auto frame = text_frame(tokenizer);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->begin, tokenizer.special_token("<s>"));
  EXPECT_EQ(frame->end, tokenizer.special_token("</s>"));
  EXPECT_EQ(frame->mask, tokenizer.special_token("<mask>"));
  EXPECT_EQ(frame->tokens_of_two(), 4);
  EXPECT_FALSE(text_frame(small_tokenizer()));
  EXPECT_FALSE(text_frame(roberta({"<s>", "</s>"})));
}

TEST(RobertaTokenizer, IsSavedAndReadAsOne) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = roberta();
  tokenizer.save(folder.path());
  const Json saved = Json::parse(read_file(folder / "tokenizer.json"));
  EXPECT_EQ(saved["post_processor"]["type"], "RobertaProcessing");
  EXPECT_EQ(saved["post_processor"]["cls"], Json::array({"<s>", *tokenizer.special_token("<s>")}));
  EXPECT_EQ(Json::parse(read_file(folder / "tokenizer_config.json"))["tokenizer_class"], "RobertaTokenizer");
  EXPECT_EQ(Tokenizer::load(folder.path()).hash(), tokenizer.hash());
  std::filesystem::remove(folder / "tokenizer.json");  // vocab.json and merges.txt
  EXPECT_EQ(Tokenizer::load(folder.path()).hash(), tokenizer.hash());
}

TEST(RobertaTokenizer, TheMaskTakesTheSpaceBeforeIt) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = roberta();
  tokenizer.save(folder.path());
  Json saved = Json::parse(read_file(folder / "tokenizer.json"));
  for (Json& added : saved["added_tokens"]) added["lstrip"] = added["content"] == "<mask>";
  write_file_atomically(folder / "tokenizer.json", saved.dump());
  const Tokenizer read = Tokenizer::load(folder.path());
  const auto ids = [&](std::string_view text) { return read.encode(text, SpecialText::kToken); };
  EXPECT_EQ(ids("the \t\u00a0<mask> rank"), ids("the<mask> rank"));
  EXPECT_NE(ids("the <s> rank"), ids("the<s> rank"));
  EXPECT_EQ(read.encode_with_offsets("the <mask>", SpecialText::kToken).back().begin, 4U);
  for (Json& added : saved["added_tokens"]) added["lstrip"] = added["content"] == "<s>";
  write_file_atomically(folder / "tokenizer.json", saved.dump());
  EXPECT_THROW(Tokenizer::load(folder.path()), UserError);
}

TEST(RobertaTokenizer, OtherFramesAreRefused) {
  const TemporaryFolder folder;
  roberta().save(folder.path());
  const Json good = Json::parse(read_file(folder / "tokenizer.json"));
  for (const auto& [key, value] : {std::pair<const char*, Json>{"cls", Json::array({"<s>", 5})},
                                   {"sep", Json::array({"<pad>", 1})},
                                   {"sep", Json("</s>")}}) {
    Json bad = good;
    bad["post_processor"][key] = value;
    write_file_atomically(folder / "tokenizer.json", bad.dump());
    EXPECT_THROW(Tokenizer::load(folder.path()), UserError) << bad["post_processor"];
  }
}

}  // namespace
}  // namespace teratron::testing

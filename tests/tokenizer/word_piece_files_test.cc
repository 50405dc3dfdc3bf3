// The files of a WordPiece tokenizer: written and read back, in every form there is, and refused with a clear word when
// they are not what they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/message_of.h"
#include "base/trials.h"
#include "tokenizer/bpe/bpe_trainer.h"
#include "tokenizer/word_piece_fixture.h"

namespace teratron::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class WordPieceFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string error_of(const std::string& name) {
    return message_of<UserError>([&] { Tokenizer::load(folder_ / name); });
  }
  // The complaint about vocab.txt with this content, about one with these settings beside it, and about tokenizer.json
  // after a change.
  std::string error_of_vocabulary(const std::string& content) {
    write("vocab.txt", content);
    return error_of("vocab.txt");
  }
  std::string error_with_config(const std::string& content) {
    write("tokenizer_config.json", content);
    return error_of_vocabulary(kLines);
  }
  std::string error_after(const std::function<void(json&)>& change) {
    Tokenizer(word_piece_of({"a", "##b"})).save(folder_.path());
    json content = json::parse(read_file(folder_ / "tokenizer.json"));
    change(content);
    write("changed.json", content.dump());
    return error_of("changed.json");
  }

  static constexpr const char* kLines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n";
  TemporaryFolder folder_;
};

TEST_F(WordPieceFiles, ReadBackTheSameInEveryForm) {
  RandomSequence random = random_sequence(21);
  for (int trial = 0; trial < 8; ++trial) {
    WordPieceModel model = random_word_piece(random, "abc").word_piece();
    std::ranges::rotate(model.tokens, model.tokens.begin() + 5);  // special tokens need not come first
    const auto first = static_cast<std::int32_t>(model.tokens.size()) - 5;
    model.special = {first, first + 1, first + 2, first + 3, first + 4};
    model.pad += first;
    model.unknown += first;
    model.classify += first;
    model.separate += first;
    model.mask += first;
    const Tokenizer tokenizer(model);
    tokenizer.save(folder_ / "saved");
    for (const char* name : {"saved", "saved/tokenizer.json", "saved/vocab.txt"}) {
      EXPECT_EQ(Tokenizer::load(folder_ / name).word_piece(), model) << name;
    }
    std::filesystem::remove(folder_ / "saved" / "tokenizer.json");
    EXPECT_EQ(Tokenizer::load(folder_ / "saved").hash(), tokenizer.hash());
    std::filesystem::rename(folder_ / "saved" / "vocab.txt", folder_ / "saved" / "bert-vocab.txt");
    EXPECT_EQ(Tokenizer::load(folder_ / "saved" / "bert-vocab.txt").hash(), tokenizer.hash());
  }
}

TEST_F(WordPieceFiles, ThatCannotBeWrittenLeaveAnotherTokenizersFiles) {
  const Tokenizer other(train_bpe(std::vector<std::string_view>{"a b"}, {.vocab_size = 260}));
  other.save(folder_.path());
  std::filesystem::create_directory(folder_ / "tokenizer.json.partial");
  EXPECT_THROW(Tokenizer(word_piece_of({"a"})).save(folder_.path()), EnvironmentError);
  EXPECT_EQ(Tokenizer::load(folder_ / "vocab.json").hash(), other.hash());
  std::filesystem::remove(folder_ / "tokenizer.json.partial");
  Tokenizer(word_piece_of({"a"})).save(folder_.path());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "vocab.json") || std::filesystem::exists(folder_ / "merges.txt"));
}

TEST_F(WordPieceFiles, KeepInTokenizerJsonWhatVocabTxtCannotSay) {
  WordPieceModel model = word_piece_of({"a", "@@b", "[E1]"});
  model.prefix = "@@";
  model.max_word_characters = 17;
  model.clean_up = false;
  model.special.push_back(7);
  Tokenizer(model).save(folder_.path());
  EXPECT_EQ(Tokenizer::load(folder_.path()).word_piece(), model);
}

TEST_F(WordPieceFiles, AreCasedWhereATokenHasACapital) {
  const auto is_uncased = [&](const std::string& more) {
    write("vocab.txt", kLines + more);
    const WordPieceModel model = Tokenizer::load(folder_.path()).word_piece();
    EXPECT_EQ(model.strip_accents, model.lower_case);
    return model.lower_case;
  };
  EXPECT_TRUE(is_uncased(""));
  EXPECT_TRUE(is_uncased("\u00E9\n\u211D\n[unused1]\n[E1]\n"));  // the double-struck R has no lower case
  EXPECT_FALSE(is_uncased("A\n"));
  EXPECT_FALSE(is_uncased("##\u00C9\n"));
}

TEST_F(WordPieceFiles, AreWhatTokenizerConfigSays) {
  const auto read = [&](const std::string& config) {
    write("vocab.txt", kLines);
    write("tokenizer_config.json", config);
    return Tokenizer::load(folder_.path()).word_piece();
  };
  EXPECT_FALSE(read(R"({"do_lower_case": false})").lower_case);
  EXPECT_FALSE(read(R"({"do_lower_case": false})").strip_accents);
  EXPECT_TRUE(read(R"({"do_lower_case": false, "strip_accents": true})").strip_accents);
  EXPECT_FALSE(read(R"({"do_lower_case": true, "strip_accents": false})").strip_accents);
  EXPECT_TRUE(read(R"({"do_lower_case": true, "strip_accents": null})").strip_accents);
  EXPECT_FALSE(read(R"({"tokenize_chinese_chars": false})").split_chinese);
  EXPECT_TRUE(read(R"({"do_lower_case": true})").split_chinese);
  EXPECT_EQ(read(R"({"mask_token": "[PAD]", "unk_token": {"content": "[CLS]"}})").mask, 0);
  EXPECT_EQ(read(R"({"mask_token": "[PAD]", "unk_token": {"content": "[CLS]"}})").unknown, 2);
  // tokenizer.json, which is preferred, has no name of the mask.
  read(R"({"mask_token": "[PAD]"})");
  const TemporaryFolder saved;
  Tokenizer::load(folder_.path()).save(saved.path());
  EXPECT_EQ(Tokenizer::load(saved.path()).word_piece().mask, 0);
}

TEST_F(WordPieceFiles, WithOtherLineEndsAreTheSame) {
  write("vocab.txt", kLines);
  const std::string hash = Tokenizer::load(folder_.path()).hash();
  std::string lines = kLines;
  write("vocab.txt", lines.substr(0, lines.size() - 1));
  EXPECT_EQ(Tokenizer::load(folder_.path()).hash(), hash);
  for (std::size_t at = 0; (at = lines.find('\n', at)) != lines.npos; at += 2) lines.insert(at, "\r");
  write("vocab.txt", lines);
  EXPECT_EQ(Tokenizer::load(folder_.path()).hash(), hash);
}

TEST_F(WordPieceFiles, WithoutSpecialTokensAreRefusedByAllTheirNames) {
  const std::vector<std::string> names = {"[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"};
  for (std::size_t left_out = 1; left_out < 32; ++left_out) {
    std::string lines = "a\n", missing;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if ((left_out >> i & 1) == 0) lines += names[i] + "\n";
      if ((left_out >> i & 1) != 0) missing += (missing.empty() ? "" : ", ") + names[i];
    }
    EXPECT_THAT(error_of_vocabulary(lines),
                HasSubstr("vocab.txt' has no token " + missing + "; a WordPiece vocabulary"));
  }
  EXPECT_THAT(error_of_vocabulary(""), HasSubstr("has no token [UNK], [PAD], [CLS], [SEP], [MASK]"));
  EXPECT_THAT(error_with_config(R"({"sep_token": "</s>"})"), HasSubstr("has no token </s>;"));
  EXPECT_THAT(error_after([](json& t) {
                t["model"]["vocab"] = {{"a", 0}};
                t["added_tokens"] = json::array();
              }),
              HasSubstr("has no token [UNK], [PAD], [CLS], [SEP], [MASK]"));
}

TEST_F(WordPieceFiles, WithLinesThatAreNoTokensAreRefused) {
  const std::string lines = kLines;
  EXPECT_THAT(error_of_vocabulary(lines + "a\n"), HasSubstr("line 8: token 'a' is in line 6 already"));
  EXPECT_THAT(error_of_vocabulary(lines + "\nc\n"), HasSubstr("line 8 is empty"));
  EXPECT_THAT(error_of_vocabulary(lines + "\n"), HasSubstr("line 8 is empty"));
  EXPECT_THAT(error_of_vocabulary(lines + "\r\n"), HasSubstr("line 8 is empty"));
  EXPECT_THAT(error_of_vocabulary(lines + "c \n"), HasSubstr("line 8: there is white space after 'c'"));
  EXPECT_THAT(error_of_vocabulary(lines + "\xFF\n"), HasSubstr("line 8: this is not valid UTF-8"));
  EXPECT_EQ(error_of_vocabulary(std::string("\xEF\xBB\xBF") + kLines), kNoError);  // as other programs read it
  EXPECT_THAT(error_of_vocabulary(lines + std::string(5000, 'x') + "\n"), HasSubstr("line 8 has 5000 bytes"));
}

TEST_F(WordPieceFiles, WithOtherSettingsAreRefused) {
  EXPECT_THAT(error_with_config("[1]"), HasSubstr("tokenizer_config.json' is not a JSON object"));
  EXPECT_THAT(error_with_config(R"({"do_lower_case": "yes"})"), HasSubstr("is neither true nor false"));
  EXPECT_THAT(error_with_config(R"({"do_basic_tokenize": false})"), HasSubstr("do_basic_tokenize"));
  EXPECT_THAT(error_with_config(R"({"tokenizer_class": "BertJapaneseTokenizer"})"), HasSubstr("BertJapaneseTokenizer"));
  EXPECT_THAT(error_with_config(R"({"added_tokens_decoder": {"0": {"content": "[PAD]"}, "7": {"content": "new"}}})"),
              HasSubstr("adds token 'new' with id 7"));
}

TEST_F(WordPieceFiles, AreRefusedByNameForOtherPipelines) {
  const std::vector<std::pair<std::function<void(json&)>, std::string>> cases = {
      {[](json& t) { t["model"]["vocab"] = 3; }, "no object \"vocab\""},
      {[](json& t) { t["model"]["vocab"]["a"] = 9; }, "'a' has id 9, but the ids of 7 tokens must be 0 to 6"},
      {[](json& t) { t["model"]["vocab"]["a"] = 6; }, "have the same id, 6"},
      {[](json& t) { t["model"]["vocab"]["a"] = "x"; }, "the id of token 'a' is not a whole number"},
      {[](json& t) { t["model"]["max_input_chars_per_word"] = 0; }, "\"max_input_chars_per_word\""},
      {[](json& t) { t["model"]["continuing_subword_prefix"] = "@@"; },
       "its decoder joins at '##', and its model at '@@'"},
      {[](json& t) { t["normalizer"] = nullptr; }, "its normalizer is 'null', not BertNormalizer"},
      {[](json& t) { t["normalizer"]["type"] = "NFC"; }, "its normalizer is 'NFC'"},
      {[](json& t) { t["normalizer"]["clean_text"] = false; }, "does not clean text"},
      {[](json& t) { t["pre_tokenizer"]["type"] = "Whitespace"; }, "its pre_tokenizer is 'Whitespace'"},
      {[](json& t) { t["decoder"]["type"] = "ByteLevel"; }, "its decoder is 'ByteLevel'"},
      {[](json& t) { t["post_processor"]["type"] = "Other"; }, "its post_processor is 'Other'"},
      {[](json& t) { t["post_processor"]["single"].erase(2); }, "makes '[CLS] A ' of a text A"},
      {[](json& t) { t["post_processor"].erase("single"); }, "no list \"single\""},
      {[](json& t) { t["added_tokens"][0]["lstrip"] = true; }, "its added token '[PAD]' sets \"lstrip\""},
      {[](json& t) { t["added_tokens"][0]["special"] = false; }, "is not special"},
      {[](json& t) { t["added_tokens"][0]["id"] = 3; }, "token '[PAD]' is listed twice, with ids 0 and 3"},
      {[](json& t) { t["model"]["unk_token"] = "<unk>"; }, "has no token <unk>"}};
  for (const auto& [change, message] : cases) EXPECT_THAT(error_after(change), HasSubstr(message)) << message;
  EXPECT_EQ(error_after([](json& t) { t["post_processor"] = nullptr; }), kNoError);
  const auto framed_by = [&](const json& cls, const json& sep) {
    return error_after([&](json& t) {
      t["post_processor"] = {{"type", "BertProcessing"}, {"sep", sep}, {"cls", cls}};
    });
  };
  const json cls = {"[CLS]", 2}, sep = {"[SEP]", 3};
  EXPECT_EQ(framed_by(cls, sep), kNoError);
  EXPECT_THAT(framed_by(sep, cls), HasSubstr("by other tokens than [CLS] and [SEP]"));
  EXPECT_THAT(framed_by(cls, {"[SEP]", 2}), HasSubstr("by other tokens"));
  EXPECT_EQ(error_after([](json& t) { t["model"].erase("type"); }), kNoError);  // as files of before 2021
}

TEST_F(WordPieceFiles, WithRandomDamageAreReadOrRefused) {
  Tokenizer(word_piece_of({"a", "##b", "\u00E9"})).save(folder_.path());
  RandomSequence random = random_sequence(22);
  for (const char* name : {"vocab.txt", "tokenizer.json", "tokenizer_config.json"}) {
    const std::string content = read_file(folder_ / name);
    for (int trial = 0; trial < trials(300); ++trial) {
      std::string damaged = content.substr(0, random.below(4) == 0 ? random.below(content.size()) : content.size());
      for (std::uint64_t i = random.below(4); i > 0 && !damaged.empty(); --i) {
        damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
      }
      write(name, damaged);
      for (const char* read : {"vocab.txt", "tokenizer.json"}) {
        try {
          Tokenizer::load(folder_ / read).encode("A caf\u00E9 ab");
        } catch (const UserError&) {  // anything else fails the test
        }
      }
    }
    write(name, content);
  }
}

}  // namespace
}  // namespace teratron::testing

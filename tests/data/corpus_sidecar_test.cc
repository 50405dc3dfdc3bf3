// A corpus knows its tokenizer and its bytes: another tokenizer is refused, and so is every changed byte.
#include "data/indexed/corpus_sidecar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/dataset_fixture.h"
#include "data/text/tokenize.h"
#include "tokenizer/bpe/bpe_trainer.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Sidecar : public ::testing::Test {
 protected:
  fs::path make_corpus(const std::string& text = "some text", const Tokenizer& tokenizer = byte_tokenizer()) const {
    write_file_atomically(folder_ / "text.txt", text);
    const std::vector<fs::path> files = {folder_ / "text.txt"};
    tokenize_files(tokenizer, files, folder_ / "c", {.tokenizer_name = "tok"});
    return folder_ / "c";
  }
  std::string refusal_of(const Tokenizer& tokenizer) const {
    return message_of<UserError>([&] { require_tokenizer(folder_ / "c", tokenizer, "mine"); });
  }
  void change_sidecar(const std::function<void(nlohmann::json&)>& change) const {
    nlohmann::json json = nlohmann::json::parse(read_file(sidecar_path(folder_ / "c")));
    change(json);
    write_file_atomically(sidecar_path(folder_ / "c"), json.dump());
  }
  TemporaryFolder folder_;
};

// A byte-level BPE with a few merges, drawn.
BpeModel random_model(std::mt19937_64& random) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>('a' + std::uniform_int_distribution<int>(0, 3)(random));
  const std::string_view view = text;
  return train_bpe({&view, 1}, {.vocab_size = 270});
}

TEST_F(Sidecar, DistinguishesSentencesFromDocuments) {
  const fs::path corpus = make_corpus("One. Two.");
  EXPECT_EQ(read_sidecar(corpus)->unit, SequenceUnit::kDocument);
  require_whole_documents(corpus);
  const std::vector<fs::path> files = {folder_ / "text.txt"};
  tokenize_files(byte_tokenizer(), files, corpus, {.tokenizer_name = "tok", .split = SentenceSplit::kPunctuation});
  EXPECT_EQ(read_sidecar(corpus)->unit, SequenceUnit::kSentence);
  EXPECT_EQ(read_sidecar(corpus)->sequences, 2);
  EXPECT_THAT(message_of<UserError>([&] { require_whole_documents(corpus); }),
              AllOf(HasSubstr("split into sentences"), HasSubstr("without --split-sentences")));
  EXPECT_THAT(verify_corpus(corpus).faults, IsEmpty());
  change_sidecar([](nlohmann::json& json) { json["sequence_unit"] = "word"; });
  EXPECT_THAT(message_of<UserError>([&] { read_sidecar(corpus); }), HasSubstr("sequence_unit"));
  change_sidecar([](nlohmann::json& json) { json.erase("sequence_unit"); });  // as older versions wrote it
  EXPECT_EQ(read_sidecar(corpus)->unit, SequenceUnit::kDocument);
  fs::remove(sidecar_path(corpus));
  require_whole_documents(corpus);
}

TEST_F(Sidecar, SaysWhatTheCorpusIs) {
  const fs::path corpus = make_corpus("some text");
  const std::optional<CorpusSidecar> sidecar = read_sidecar(corpus);
  ASSERT_TRUE(sidecar);
  EXPECT_EQ(sidecar->tokenizer.name, "tok");
  EXPECT_EQ(sidecar->tokenizer.hash, byte_tokenizer().hash());
  EXPECT_EQ(sidecar->tokenizer.vocab_size, 257);
  EXPECT_EQ(sidecar->documents, 1);
  EXPECT_EQ(sidecar->tokens, 10);
  EXPECT_EQ(sidecar->bin.bytes, static_cast<std::int64_t>(fs::file_size(bin_path(corpus))));
  EXPECT_EQ(sidecar->idx.bytes, static_cast<std::int64_t>(fs::file_size(idx_path(corpus))));
  const CorpusVerification found = verify_corpus(corpus);
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(found.bytes, static_cast<std::uint64_t>(sidecar->bin.bytes + sidecar->idx.bytes));
}

TEST_F(Sidecar, TheHashIsTheSameForEveryFormOfATokenizersFilesAndAnotherForEveryOtherTokenizer) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 20; ++trial) {
    const BpeModel model = random_model(random);
    const Tokenizer tokenizer(model);
    tokenizer.save(folder_ / "t");
    for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"}) {
      EXPECT_EQ(Tokenizer::load(folder_ / "t" / name).hash(), tokenizer.hash()) << name;
    }
    const auto draw = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
    BpeModel other = model;  // two ids change places
    const std::size_t a = draw(256), b = (a + 1 + draw(255)) % 256;
    std::swap(other.tokens[a], other.tokens[b]);
    for (BpeMerge& merge : other.merges) {
      for (std::int32_t* id : {&merge.left, &merge.right}) {
        if (*id == static_cast<std::int32_t>(a)) {
          *id = static_cast<std::int32_t>(b);
        } else if (*id == static_cast<std::int32_t>(b)) {
          *id = static_cast<std::int32_t>(a);
        }
      }
    }
    EXPECT_NE(Tokenizer(other).hash(), tokenizer.hash());
    other = model;  // two merges do
    ASSERT_GT(other.merges.size(), 1U);
    std::swap(other.merges[0], other.merges[1 + draw(other.merges.size() - 1)]);
    EXPECT_NE(Tokenizer(other).hash(), tokenizer.hash());
    other = model;  // another special token
    other.tokens[static_cast<std::size_t>(other.special[0])] = "<|end|>";
    EXPECT_NE(Tokenizer(other).hash(), tokenizer.hash());
  }
}

TEST_F(Sidecar, AnotherTokenizerIsRefusedNamingBoth) {
  make_corpus();
  require_tokenizer(folder_ / "c", byte_tokenizer(), "mine");  // its own is taken
  const Tokenizer other = byte_tokenizer(false);
  EXPECT_THAT(refusal_of(other), AllOf(HasSubstr("'tok' (257 tokens, " + byte_tokenizer().hash()),
                                       HasSubstr("'mine' (256 tokens, " + other.hash()), HasSubstr("/c'")));
}

TEST_F(Sidecar, ACorpusWithoutOneIsTakenWithAnyTokenizer) {
  make_corpus();
  fs::remove(sidecar_path(folder_ / "c"));
  require_tokenizer(folder_ / "c", byte_tokenizer(false), "mine");
  const CorpusVerification found = verify_corpus(folder_ / "c");
  EXPECT_FALSE(found.sidecar);
  EXPECT_THAT(found.faults, IsEmpty());
}

TEST_F(Sidecar, OneThatAnotherProgramLeftBesideANewCorpusIsReported) {
  make_corpus("a text that is longer");
  const std::string old = read_file(sidecar_path(folder_ / "c"));
  make_corpus("short");
  write_file_atomically(sidecar_path(folder_ / "c"), old);
  EXPECT_THAT(refusal_of(byte_tokenizer()), AllOf(HasSubstr("when it was written"), HasSubstr("remove that file")));
}

TEST_F(Sidecar, ACorpusOfAnUnknownTokenizerLosesTheOldOne) {
  write_dataset(make_corpus(), {{1, 2, 3}}, 10);
  EXPECT_FALSE(fs::exists(sidecar_path(folder_ / "c")));
}

// Any byte of any of the three files.
TEST_F(Sidecar, VerificationFindsEveryChangedByte) {
  std::mt19937_64 random(2);
  std::string text;
  for (int i = 0; i < 500; ++i) text += "word ";
  const fs::path corpus = make_corpus(text);
  for (const fs::path& path : {bin_path(corpus), idx_path(corpus)}) {
    const std::string whole = read_file(path);
    for (int trial = 0; trial < 60; ++trial) {
      std::string changed = whole;
      changed[std::uniform_int_distribution<std::size_t>(0, whole.size() - 1)(random)] ^=
          static_cast<char>(1 << trial % 8);
      write_file_atomically(path, changed);
      EXPECT_THAT(verify_corpus(corpus).faults, Not(IsEmpty()));
    }
    write_file_atomically(path, whole.substr(0, whole.size() - 1));
    EXPECT_THAT(verify_corpus(corpus).faults, Not(IsEmpty()));
    write_file_atomically(path, whole);
    EXPECT_THAT(verify_corpus(corpus).faults, IsEmpty());
  }
  for (const char* count : {"documents", "sequences", "tokens"}) {
    const std::string before = read_file(sidecar_path(corpus));
    change_sidecar([&](nlohmann::json& json) { json[count] = 7; });
    EXPECT_THAT(verify_corpus(corpus).faults,
                ::testing::ElementsAre(AllOf(HasSubstr(count), HasSubstr("and 7 when it was written"))));
    write_file_atomically(sidecar_path(corpus), before);
  }
}

TEST_F(Sidecar, TokensOutsideTheVocabularyAreReported) {
  make_corpus("zebra");
  change_sidecar([](nlohmann::json& json) { json["tokenizer"]["vocab_size"] = 100; });
  EXPECT_THAT(verify_corpus(folder_ / "c").faults, ::testing::ElementsAre(HasSubstr("holds token id 122")));
}

TEST_F(Sidecar, RefusesOtherFilesByName) {
  const fs::path corpus = make_corpus();
  const std::vector<std::pair<std::function<void(nlohmann::json&)>, std::string>> cases = {
      {[](nlohmann::json& json) { json["format"] = "x"; }, "does not describe a corpus"},
      {[](nlohmann::json& json) { json["version"] = 2; }, "version 2"},
      {[](nlohmann::json& json) { json.erase("bin"); }, "bin"},
      {[](nlohmann::json& json) { json["tokenizer"]["hash"] = 3; }, "hash"},
      {[](nlohmann::json& json) { json["tokens"] = -1; }, "tokens"},
      {[](nlohmann::json& json) { json["sequence_unit"] = "x"; }, "\"turn\" or \"pair\""},
      {[](nlohmann::json& json) { json["bin"]["bytes"] = INT64_MAX; }, "the checksums of"},
      {[](nlohmann::json& json) { json = {1}; }, "c.teratron.json"},
  };
  const std::string whole = read_file(sidecar_path(corpus));
  for (const auto& [change, expected] : cases) {
    change_sidecar(change);
    EXPECT_THAT(message_of<UserError>([&] { read_sidecar(corpus); }),
                AllOf(HasSubstr("c.teratron.json"), HasSubstr(expected)));
    write_file_atomically(sidecar_path(corpus), whole);
  }
}

}  // namespace
}  // namespace teratron::testing

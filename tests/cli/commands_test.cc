// The subcommands for tokenizers, data and checkpoints, end to end on small files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files/file.h"
#include "base/philox.h"
#include "cli/binary.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::json_of;
using testing::Outcome;
using testing::run_teratron;
using ::testing::StartsWith;

// A corpus of words with something to merge, and the tokenizer that the binary learns from it.
class Commands : public ::testing::Test {
 protected:
  void SetUp() override {
    RandomSequence random(RandomStream{.seed = 1});
    const std::vector<std::string> words = {"the", "train", "layer", "layers", "trains", "a", "gradient", "\n"};
    std::string text;
    for (int i = 0; i < 3000; ++i) text += " " + words[random.below(words.size())];
    write_file_atomically(path("corpus.txt"), text);
    const Outcome outcome = run_teratron({"tokenizer", "train", "--vocab-size", "300", "--out", path("tokenizer"),
                                          path("corpus.txt"), "--json", path("train.json")});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  testing::TemporaryFolder folder_;
};

TEST_F(Commands, TokenizerTrainWritesWhatInfoShows) {
  const nlohmann::json trained = nlohmann::json::parse(read_file(path("train.json")));
  const nlohmann::json info = json_of({"tokenizer", "info", path("tokenizer")});
  EXPECT_EQ(info.at("vocab_size"), trained.at("vocab_size"));
  EXPECT_EQ(info.at("merges"), trained.at("merges"));
  EXPECT_GT(info.at("merges"), 0);
  EXPECT_EQ(info.at("end_of_text"), info.at("special_tokens").at("<|endoftext|>"));
}

TEST_F(Commands, TokenizerInfoShowsAVocabularyOfWordPieces) {
  const std::vector<std::string> tokens = {"[PAD]",  "[UNK]", "[CLS]",   "[SEP]",
                                           "[MASK]", "word",  "##piece", "\xE4\xB8\x80"};
  std::string lines;
  for (const std::string& token : tokens) lines += token + "\n";
  write_file_atomically(path("vocab.txt"), lines);
  write_file_atomically(path("tokenizer_config.json"),
                        R"({"do_lower_case": false, "strip_accents": true, "tokenize_chinese_chars": false})");
  const nlohmann::json info = json_of({"tokenizer", "info", path("vocab.txt")});
  const nlohmann::json special = {{"[PAD]", 0}, {"[UNK]", 1}, {"[CLS]", 2}, {"[SEP]", 3}, {"[MASK]", 4}};
  const nlohmann::json expected = {
      {"kind", "WordPiece"},    {"vocab_size", tokens.size()}, {"lower_case", false},      {"strip_accents", true},
      {"split_chinese", false}, {"max_word_characters", 100},  {"longest_token_bytes", 7}, {"special_tokens", special}};
  EXPECT_EQ(info, expected);
  const std::string text = run_teratron({"tokenizer", "info", path("vocab.txt")}).output;
  EXPECT_THAT(text, AllOf(HasSubstr("strips accents"), HasSubstr("special [MASK]")));
}

TEST_F(Commands, EncodeWritesTheLibrarysIdsAsLittleEndian32BitAndDecodeGivesTheBytesBack) {
  RandomSequence random(RandomStream{.seed = 2});
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{5000}}) {
    std::string bytes(length, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next_u32());
    write_file_atomically(path("in"), bytes);
    const nlohmann::json encoded =
        json_of({"tokenizer", "encode", "--overwrite", "--tokenizer", path("tokenizer"), path("in"), path("ids")});
    const std::vector<std::int32_t> expected = Tokenizer::load(path("tokenizer")).encode(bytes);
    EXPECT_EQ(encoded.at("tokens"), expected.size());
    const std::string ids = read_file(path("ids"));
    ASSERT_EQ(ids.size(), 4 * expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      std::uint32_t id = 0;
      for (std::size_t byte = 4; byte-- > 0;) id = id << 8 | static_cast<unsigned char>(ids[4 * i + byte]);
      ASSERT_EQ(id, static_cast<std::uint32_t>(expected[i]));
    }
    json_of({"tokenizer", "decode", "--overwrite", "--tokenizer", path("tokenizer"), path("ids"), path("out")});
    EXPECT_EQ(read_file(path("out")), bytes);
  }
}

TEST_F(Commands, EncodeShowsIdsBesideTheirTexts) {
  write_file_atomically(path("in"), "a \"\xC3\n");  // a character cut in the middle
  run_teratron({"tokenizer", "encode", "--as-text", "--tokenizer", path("tokenizer"), path("in"), path("ids")});
  const Tokenizer tokenizer = Tokenizer::load(path("tokenizer"));
  std::istringstream lines(read_file(path("ids")));
  std::vector<std::int32_t> ids;
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    ids.push_back(std::stoi(line.substr(0, space)));
    text += nlohmann::json::parse(line.substr(space + 1)).get<std::string>();
  }
  EXPECT_EQ(ids, tokenizer.encode("a \"\xC3\n"));
  EXPECT_EQ(text, "a \"\xEF\xBF\xBD\n");
}

TEST_F(Commands, DecodeRefusesWhatAreNoIdsOfTheTokenizer) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {std::string("\x01\x00\x00", 3), "3 bytes"},
      {std::string("\x01\x00\x00\x00\xFF\xFF\x00\x00", 8), "id 65535 (number 2 of "},
      {"\xFF\xFF\xFF\xFF", "id 4294967295 (number 1 of "},
  };
  for (const auto& [bytes, message] : cases) {
    write_file_atomically(path("ids"), bytes);
    const Outcome outcome =
        run_teratron({"tokenizer", "decode", "--tokenizer", path("tokenizer"), path("ids"), path("out")});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.errors, AllOf(StartsWith("error: "), HasSubstr(message)));
    EXPECT_FALSE(std::filesystem::exists(path("out")));
  }
}

TEST_F(Commands, DataTokenizeWritesWhatInfoShows) {
  write_file_atomically(path("lines.jsonl"),
                        "{\"text\": \"one layer\"}\n{\"text\": \"\"}\n{\"text\": \"two layers\"}\n");
  const nlohmann::json counts = json_of({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("data"),
                                         path("lines.jsonl"), path("corpus.txt")});
  EXPECT_EQ(counts.at("documents"), 3);
  EXPECT_EQ(counts.at("empty_documents"), 1);
  const nlohmann::json info = json_of({"data", "info", path("data")});
  EXPECT_EQ(info.at("documents"), counts.at("documents"));
  EXPECT_EQ(info.at("tokens"), counts.at("tokens"));
  EXPECT_EQ(info.at("largest_token"), json_of({"tokenizer", "info", path("tokenizer")}).at("end_of_text"));
}

TEST_F(Commands, WithoutJsonTheResultIsForPeopleOnStandardOutput) {
  const Outcome outcome = run_teratron({"tokenizer", "info", path("tokenizer")});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("vocabulary"));
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Commands, MissingInputIsTheUsersFaultAndAnUnwritablePlaceTheEnvironments) {
  const std::string missing = path("missing");
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"tokenizer", "info", missing},
           {"tokenizer", "encode", "--tokenizer", path("tokenizer"), missing, path("out")},
           {"tokenizer", "train", "--vocab-size", "300", "--out", path("t"), missing},
           {"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("d"), missing},
           {"data", "info", missing},
           {"checkpoint", "info", missing},
           {"checkpoint", "verify", missing},
           {"convert", "--from", "hf", "--to", "teratron", missing, path("c")},
           {"convert", "--from", "teratron", "--to", "hf", missing, path("c")}}) {
    const Outcome outcome = run_teratron(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments[0] << " " << arguments[1];
    EXPECT_THAT(outcome.errors, AllOf(StartsWith("error: "), HasSubstr("missing"))) << arguments[0];
  }
  const Outcome outcome = run_teratron(
      {"tokenizer", "encode", "--tokenizer", path("tokenizer"), path("corpus.txt"), path("no/such/folder/ids")});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, AllOf(StartsWith("error: "), HasSubstr("no/such/folder/ids")));
}

TEST_F(Commands, ConvertBetweenTheSameFormatsAndFilesOfOursAreRefused) {
  const Outcome outcome = run_teratron({"convert", "--from", "hf", "--to", "hf", "a", "b"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("--from and --to name the same format"));
  const Outcome in_files =
      run_teratron({"convert", "--from", "hf", "--to", "teratron", "--max-file-size", "1", "a", "b"});
  EXPECT_EQ(in_files.exit_code, 2);
  EXPECT_THAT(in_files.errors, HasSubstr("--max-file-size is for --to hf"));
}

}  // namespace
}  // namespace teratron

// The subcommands for tokenizers, data and checkpoints, end to end on small files.

#include <cstring>

#include "base/lines.h"
#include "base/philox.h"
#include "cli/binary.h"
#include "tokenizer/tokenizer.h"

namespace teratron::testing {
namespace {

// A corpus of words with something to merge, and the tokenizer that the binary learns from it.
class Commands : public FolderTest {
 protected:
  void SetUp() override {
    RandomSequence random(RandomStream{.seed = 1});
    const std::vector<std::string> words = {"the", "train", "layer", "layers", "trains", "a", "gradient", "\n"};
    std::string text;
    for (int i = 0; i < 3000; ++i) text += " " + words[random.below(words.size())];
    write_file_atomically(path("corpus.txt"), text);
    must({"tokenizer", "train", "--vocab-size", "300", "--out", path("tokenizer"), path("corpus.txt"), "--json",
          path("train.json")});
  }
};

TEST_F(Commands, TokenizerTrainWritesWhatInfoShows) {
  const Json trained = Json::parse(read_file(path("train.json")));
  const Json info = json_of({"tokenizer", "info", path("tokenizer")});
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
  const Json info = json_of({"tokenizer", "info", path("vocab.txt")});
  const Json special = {{"[PAD]", 0}, {"[UNK]", 1}, {"[CLS]", 2}, {"[SEP]", 3}, {"[MASK]", 4}};
  const Json expected = {{"kind", "WordPiece"},      {"vocab_size", tokens.size()}, {"lower_case", false},
                         {"strip_accents", true},    {"split_chinese", false},      {"max_word_characters", 100},
                         {"longest_token_bytes", 7}, {"special_tokens", special}};
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
    const Json encoded =
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
  std::vector<std::int32_t> ids;
  std::string text;
  for (const std::string& line : lines_of(read_file(path("ids")))) {
    const std::size_t space = line.find(' ');
    ids.push_back(std::stoi(line.substr(0, space)));
    text += Json::parse(line.substr(space + 1)).get<std::string>();
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
    EXPECT_THAT(refused({"tokenizer", "decode", "--tokenizer", path("tokenizer"), path("ids"), path("out")}),
                AllOf(StartsWith("error: "), HasSubstr(message)));
    EXPECT_FALSE(std::filesystem::exists(path("out")));
  }
}

TEST_F(Commands, DataTokenizeWritesWhatInfoShows) {
  write_file_atomically(path("lines.jsonl"),
                        "{\"text\": \"one layer\"}\n{\"text\": \"\"}\n{\"text\": \"two layers\"}\n");
  const Json counts = json_of({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("data"),
                               path("lines.jsonl"), path("corpus.txt")});
  EXPECT_EQ(counts.at("documents"), 3);
  EXPECT_EQ(counts.at("empty_documents"), 1);
  const Json info = json_of({"data", "info", path("data")});
  EXPECT_EQ(info.at("documents"), counts.at("documents"));
  EXPECT_EQ(info.at("tokens"), counts.at("tokens"));
  EXPECT_EQ(info.at("largest_token"), json_of({"tokenizer", "info", path("tokenizer")}).at("end_of_text"));
}

TEST_F(Commands, WithoutJsonTheResultIsForPeopleOnStandardOutput) {
  const Outcome outcome = must({"tokenizer", "info", path("tokenizer")});
  EXPECT_THAT(outcome.output, HasSubstr("vocabulary"));
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Commands, MissingInputIsTheUsersFault) {
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
           {"convert", "--from", "teratron", "--to", "hf", missing, path("c")},
           {"convert", "--from", "nanogpt", "--to", "teratron", missing, path("c")},
           {"convert", "--from", "llmc", "--to", "teratron", missing, path("c")},
           {"convert", "--from", "megatron", "--to", "teratron", missing, path("c")}}) {
    EXPECT_THAT(refused(arguments), AllOf(StartsWith("error: "), HasSubstr("missing"))) << arguments[0];
  }
}

TEST_F(Commands, ConvertTakesTheModelsOfOtherPrograms) {
  const std::string golden = TERATRON_SOURCE_DIR "/tests/golden/foreign/";
  for (const auto& [format, file] : std::vector<std::pair<std::string, std::string>>{
           {"nanogpt", "nanogpt.pt"}, {"llmc", "llmc.bin"}, {"megatron", "megatron_3.pt"}}) {
    const Outcome outcome =
        must({"convert", "--from", format, "--to", "teratron", golden + file, path(format), "--json", "-"});
    EXPECT_EQ(Json::parse(outcome.output).at("to"), path(format) + "/iter_0000000");
    EXPECT_EQ(outcome.errors.find("note:"), std::string::npos);
    must({"checkpoint", "verify", path(format)});
    must({"convert", "--from", "teratron", "--to", "hf", path(format), path(format) + "-hf"});
  }
  const Outcome without =
      must({"convert", "--from", "nanogpt", "--to", "teratron", golden + "nanogpt_compiled.pt", path("without")});
  EXPECT_THAT(without.errors, HasSubstr("has no biases; here they are zeros"));
  EXPECT_THAT(refused({"convert", "--from", "nanogpt", "--to", "teratron", golden + "hostile.pt", path("hostile")}),
              HasSubstr("posix.system, which is not data"));
  EXPECT_FALSE(std::filesystem::exists(path("hostile")));
  EXPECT_THAT(refused({"convert", "--from", "llmc", "--to", "hf", golden + "llmc.bin", path("hf")}),
              HasSubstr("become teratron: --to teratron"));
}

TEST_F(Commands, ConvertBetweenTheSameFormatsAndFilesOfOursAreRefused) {
  EXPECT_THAT(refused({"convert", "--from", "hf", "--to", "hf", "a", "b"}),
              HasSubstr("--from and --to name the same format"));
  EXPECT_THAT(refused({"convert", "--from", "hf", "--to", "teratron", "--max-file-size", "1", "a", "b"}),
              HasSubstr("--max-file-size is for --to hf"));
}

}  // namespace
}  // namespace teratron::testing

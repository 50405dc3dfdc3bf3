// `teratron embed` end to end, and what is said of models that are of the wrong kind. Its values are compared with
// transformers' in embed_oracle_test.cc.

#include <cstring>

#include "cli/binary.h"
#include "cli/weights/bert_folder.h"

namespace teratron::testing {
namespace {

class EmbedCommands : public FolderTest {
 protected:
  // A folder of Hugging Face's with a vocabulary of words "w5" and so on, and the checkpoint made of it.
  void SetUp() override {
    write_golden_bert(path("hf"));
    succeed({"convert", "--from", "hf", "--to", "teratron", path("hf"), path("run")});
    write_file_atomically(path("texts"), "w5 w6\n\nw7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19 w20 w21\n");
  }

  Words embed(const Words& more) const {
    return with({"embed", "--overwrite", "--out", path("out.npy"), path("texts")}, more);
  }
  std::vector<float> values() const {
    const std::string file = read_file(path("out.npy"));
    std::vector<float> all(3 * 16);
    EXPECT_EQ(file.size(), 128 + all.size() * sizeof(float));
    std::memcpy(all.data(), file.data() + 128, all.size() * sizeof(float));
    return all;
  }
};

// Models of transformers are trained in any layout and given back to them.
TEST_F(EmbedCommands, AFolderOfHuggingFacesIsTrainedOn) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += fmt::format("w{} w{} w{}.\n\n", 5 + i % 49, 5 + 2 * i % 49, 5 + 3 * i % 49);
  write_file_atomically(path("text.txt"), text);
  succeed(
      {"data", "tokenize", "--split-sentences", "--tokenizer", path("hf"), "--out", path("data"), path("text.txt")});
  const Words train = {"train", "--finetune",    path("hf"), "--data-path", path("data"), "--seq-length",
                       "12",    "--train-iters", "4",        "--split",     "1"};
  const double alone = json_of(with(train, {"--save", path("tuned")})).at("final_loss");
  EXPECT_NEAR(json_of(with(train, {"--tp", "2"})).at("final_loss"), alone, 1e-5 * alone);
  succeed({"convert", "--from", "teratron", "--to", "hf", path("tuned"), path("back")});
  EXPECT_EQ(Json::parse(read_file(path("back") + "/config.json")).at("architectures")[0], "BertForPreTraining");
}

TEST_F(EmbedCommands, AProfileOfSlicesIsRefused) {
  EXPECT_THAT(refused({"profile", "--model", "bert-tiny", "--vocab-size", "100", "--pp", "2"}),
              AllOf(HasSubstr("not cut into slices"), Not(HasSubstr("--token-slices"))));
}

TEST_F(EmbedCommands, ConvertedCheckpointsHaveTheirTokenizerAndTheVectorsOfTheirSource) {
  EXPECT_EQ(read_file(path("run") + "/iter_0000000/vocab.txt"), read_file(path("hf") + "/vocab.txt"));
  const auto report = json_of(embed({"--load", path("hf")}));
  EXPECT_EQ(report.at("texts"), 3);
  EXPECT_EQ(report.at("tokens"), 4 + 2 + 16);
  EXPECT_EQ(report.at("cut_texts"), 1);
  EXPECT_EQ(report.at("hidden_size"), 16);
  const std::vector<float> of_folder = values();
  succeed(embed({"--load", path("run")}));
  EXPECT_EQ(values(), of_folder);
  succeed({"convert", "--from", "teratron", "--to", "hf", path("run"), path("back")});
  succeed(embed({"--load", path("back")}));
  EXPECT_EQ(values(), of_folder);
  succeed(embed({"--load", path("run"), "--tp", "2", "--pp", "2", "--normalize", "--pooling", "cls"}));
  const std::vector<float> other = values();
  for (std::size_t text = 0; text < 3; ++text) {
    double squares = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      squares += static_cast<double>(other[16 * text + i]) * static_cast<double>(other[16 * text + i]);
    }
    EXPECT_NEAR(squares, 1, 1e-5);
  }
}

TEST_F(EmbedCommands, SentenceTransformersFoldersSayWhatFlagsDoNot) {
  succeed(embed({"--load", path("hf"), "--pooling", "max", "--normalize", "--seq-length", "6"}));
  const std::vector<float> expected = values();
  succeed(embed({"--load", path("hf"), "--pooling", "cls"}));
  const std::vector<float> first_tokens = values();
  fs::create_directories(path("sentence/1_Pooling"));
  fs::copy(path("hf"), path("sentence/0_Transformer"));
  write_file_atomically(
      path("sentence/modules.json"),
      R"([{"idx": 0, "name": "0", "path": "0_Transformer", "type": "sentence_transformers.models.Transformer"},
                            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  write_file_atomically(path("sentence/0_Transformer/sentence_bert_config.json"), R"({"max_seq_length": 6})");
  write_file_atomically(path("sentence/1_Pooling/config.json"), R"({"pooling_mode": "max"})");
  const Outcome made = run_teratron(embed({"--load", path("sentence")}));
  EXPECT_EQ(values(), expected) << made.errors;
  EXPECT_THAT(made.errors, AllOf(HasSubstr("is a sentence-transformer: --pooling max --normalize --seq-length 6\n"),
                                 HasSubstr("warning: 1 of 3 texts cut: more than 6 tokens")));
  const Words given = {"--load", path("sentence"), "--pooling", "cls", "--normalize=false", "--seq-length", "16"};
  EXPECT_THAT(run_teratron(embed(given)).errors,
              HasSubstr("--seq-length 6; but --pooling cls --normalize=false --seq-length 16, as given\n"));
  EXPECT_EQ(values(), first_tokens);
  const Json report = json_of(embed({"--load", path("sentence"), "--pooling", "lasttoken"}));
  EXPECT_EQ(report.at("pooling"), "lasttoken");
  EXPECT_EQ(report.at("normalized"), true);
  EXPECT_EQ(report.at("seq_length"), 6);
  EXPECT_THAT(refused(embed({"--load", path("hf"), "--seq-length", "17"})), HasSubstr("from 2 to the 16 positions"));
}

TEST_F(EmbedCommands, VectorsMayGoToStandardOutput) {
  succeed(embed({"--load", path("hf")}));
  EXPECT_EQ(succeed({"embed", "--load", path("hf"), "--out", "-", path("texts")}), read_file(path("out.npy")));
  EXPECT_THAT(refused({"embed", "--load", path("hf"), "--out", "-", path("texts"), "--json", "-"}),
              HasSubstr("both go to standard output"));
}

TEST_F(EmbedCommands, NamesOfOtherFormatsAreRefusedForVectors) {
  EXPECT_THAT(refused({"embed", "--load", path("hf"), "--out", path("v.csv"), path("texts")}),
              HasSubstr("v.csv would hold NumPy's .npy"));
}

TEST_F(EmbedCommands, ModelsOfTheWrongKindAreRefusedByName) {
  const std::string gpt2 = TERATRON_SOURCE_DIR "/tests/golden/gpt2_tiny";
  EXPECT_THAT(refused(embed({"--load", gpt2})), AllOf(HasSubstr("is of type gpt2"), HasSubstr("name a BERT's folder")));
  for (const Words& command : {Words{"generate"}, Words{"eval", "wikitext103", "--data", path("texts")}}) {
    EXPECT_THAT(refused(with(command, {"--load", path("run")})),
                HasSubstr("is a BERT, which reads texts and continues none"));
  }
}

}  // namespace
}  // namespace teratron::testing

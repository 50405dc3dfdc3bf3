// Vectors of texts: what a text gets does not depend on the texts beside it. That they are those of transformers is
// tested in tests/cli/oracles_test.cc.
#include "eval/text_vectors.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "base/temporary_folder.h"
#include "tokenizer/bpe/bpe_trainer.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tokenizer word_tokenizer() {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n##d\n[MASK]\n");
  return Tokenizer::load(folder.path());
}

ModelConfig bert_of_vectors() {
  ModelConfig config{.num_layers = 2,
                     .hidden_size = 12,
                     .num_attention_heads = 3,
                     .vocab_size = 8,
                     .max_position_embeddings = 20,
                     .make_vocab_size_divisible_by = 8,
                     .init_method_std = 0.3};
  config.set_kind(ModelKind::kBert);
  config.norm_placement = NormPlacement::kPost;
  return config;
}

TEST(TextVectors, TextsAreFramedAndCut) {
  const std::vector<std::string_view> texts = {"a bd", "", "c c c c c c", "c c"};
  const TokenizedTexts all = tokenize_texts(word_tokenizer(), texts, 5);
  EXPECT_THAT(all.ids, ElementsAre(ElementsAre(2, 4, 5, 7, 3), ElementsAre(2, 3), ElementsAre(2, 6, 6, 6, 3),
                                   ElementsAre(2, 6, 6, 3)));
  EXPECT_EQ(all.cut, 1);
  EXPECT_EQ(all.longest, 5);
  EXPECT_EQ(all.tokens, 16);
  EXPECT_THAT(message_of<UserError>([&] { tokenize_texts(Tokenizer(train_bpe(texts, {})), texts, 5); }),
              HasSubstr("has no [CLS], which BERT"));
}

TEST(TextVectors, DoNotDependOnTheOtherTextsNorOnTheBatch) {
  const auto backend = make_reference_backend(DType::kF64);
  const ModelConfig config = bert_of_vectors();
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 12; ++trial) {
    TokenizedTexts texts;
    for (std::uint64_t text = 1 + random.below(12); text > 0; --text) {
      std::vector<std::int32_t>& ids = texts.ids.emplace_back(2 + random.below(18));
      for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(8));
    }
    const TextVectorSettings settings{.pooling = trial % 2 == 0 ? Pooling::kMean : Pooling::kCls,
                                      .normalize = trial / 2 % 2 == 0};
    const auto vectors_of = [&](const TokenizedTexts& some, std::int64_t batch) {
      Encoder encoder(*backend, config, {.purpose = Purpose::kEvaluation, .batch = batch, .tokens = 20});
      encoder.allocate();
      encoder.initialize(7);
      std::vector<std::vector<float>> vectors(some.ids.size());
      std::size_t told = 0;
      make_text_vectors(
          encoder, some, settings,
          [&](std::size_t number, std::span<const float> vector) {
            EXPECT_TRUE(vectors[number].empty()) << "each text once";
            vectors[number].assign(vector.begin(), vector.end());
          },
          [&](std::size_t done) { told = done; });
      EXPECT_EQ(told, some.ids.size());
      return vectors;
    };
    const std::vector<std::vector<float>> together = vectors_of(texts, static_cast<std::int64_t>(1 + random.below(6)));
    for (std::size_t i = 0; i < texts.ids.size(); ++i) {
      const std::vector<float> alone = vectors_of({.ids = {texts.ids[i]}}, 1).front();
      double squares = 0;
      for (std::size_t feature = 0; feature < alone.size(); ++feature) {
        EXPECT_NEAR(together[i][feature], alone[feature], 1e-6);  // both are rounded to fp32
        squares += std::pow(static_cast<double>(alone[feature]), 2);
      }
      if (settings.normalize) {
        EXPECT_NEAR(squares, 1, 1e-6);
      }
    }
  }
}

TEST(Npy, HeaderFillsWholeLinesOf64BytesAndHasTheShape) {
  const TemporaryFolder folder;
  for (const std::int64_t rows : {0, 1, 12345}) {
    const std::vector<float> values(static_cast<std::size_t>(rows * 3), 1.5F);
    write_npy(folder.path() / "v.npy", 3, values);
    const std::string file = read_file(folder.path() / "v.npy");
    EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    const std::size_t header = 10 + static_cast<std::uint8_t>(file[8]) + 256 * static_cast<std::uint8_t>(file[9]);
    EXPECT_EQ(header % 64, 0U);
    EXPECT_EQ(file[header - 1], '\n');
    EXPECT_THAT(file.substr(10, header - 10),
                HasSubstr(fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 3), }}", rows)));
    EXPECT_EQ(file.size(), header + values.size() * sizeof(float));
  }
}

}  // namespace
}  // namespace teratron::testing

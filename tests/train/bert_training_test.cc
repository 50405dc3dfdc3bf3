// BERT's pre-training as `train` runs it: what layouts, resuming and padding may not change.
#include <algorithm>
#include <fstream>

#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

class BertTraining : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    // Five special tokens, words, and pieces that go on with a word.
    std::filesystem::create_directories(folder_ / "words");
    std::ofstream vocabulary(folder_ / "words" / "vocab.txt");
    vocabulary << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (std::int64_t id = 5; id < kVocab; ++id) vocabulary << (id % 4 == 0 ? "##" : "") << "w" << id << "\n";
    vocabulary.close();
    // Sentences that count up, so that both what is masked and their order can be told.
    IndexedDatasetWriter writer(folder_ / "sentences", kVocab);
    std::mt19937 random(1);
    for (int document = 0; document < 60; ++document) {
      auto next = static_cast<std::int32_t>(random() % 20);
      for (std::uint32_t sentence = 0; sentence < 1 + random() % 8; ++sentence) {
        std::vector<std::int32_t> tokens(2 + random() % 7);
        for (std::int32_t& token : tokens) token = 5 + next++ % 45;
        writer.add_sequence(tokens);
      }
      writer.end_document();
    }
    writer.commit();
    config_.model.config.set_kind(ModelKind::kBert);
    config_.model.tokenizer = folder_ / "words";
    config_.data_path = {(folder_ / "sentences").string()};
    config_.model.seq_length = 24;
    // The gradient of the keys' biases is 0 but for rounding, which AdamW would make steps of.
    config_.optimizer.adamw.epsilon = 1e-6;
  }
};

TEST_F(BertTraining, LayoutsChangeNothing) {
  for (const NormPlacement placement : {NormPlacement::kPre, NormPlacement::kPost}) {
    config_.model.config.norm_placement = placement;
    const TrainingRun alone = train(config_);
    EXPECT_LT(alone.losses.back(), alone.losses.front());
    ASSERT_EQ(alone.reports.front().losses.of_kind.size(), 3U);
    TrainConfig other = config_;
    other.layout.tensor_parallel = 3;
    expect_same_training(train(other), alone, "tp 3");
    other.layout.sequence_parallel = true;
    other.batch.micro_batch_size = 1;
    expect_same_training(train(other), alone, "tp 3, sequence parallel, single samples");
    other = config_;
    other.layout.data_parallel = 2;
    other.layout.pipeline_parallel = 2;
    other.batch.micro_batch_size = 1;
    other.layout.distributed_optimizer = true;
    expect_same_training(train(other), alone, "dp 2, pp 2, sharded optimizer");
    other = config_;
    other.batch.micro_batch_size = 4;
    expect_same_training(train(other), alone, "one micro-batch");
  }
}

// Without one there is nothing to learn, and no loss to report.
TEST_F(BertTraining, NeedsTheHeadOfPretraining) {
  for (const ModelHead head :
       {ModelHead::kNone, ModelHead::kClassification, ModelHead::kChoice, ModelHead::kSpans, ModelHead::kTokens}) {
    config_.model.config.head = head;
    EXPECT_THROW(train(config_), UserError);
  }
  config_.model.config.set_pretraining_head();
  EXPECT_NO_THROW(train(config_));
}

TEST_F(BertTraining, GoesOnBitForBit) { expect_same_bits(train_in_two(config_, 3), train(config_)); }

TEST_F(BertTraining, CountsTextAndNotPadding) {
  const TrainingRun run = train(config_);
  for (const IterationReport& report : run.reports) {
    EXPECT_LT(report.tokens, report.global_batch_size * config_.model.seq_length);
    EXPECT_GE(report.tokens, report.global_batch_size * 5);
    EXPECT_EQ(report.consumed_tokens, report.consumed_samples * config_.model.seq_length);
  }
}

TEST_F(BertTraining, SaysWhatItNeeds) {
  config_.model.tokenizer.clear();
  config_.documents.reset_attention_mask = true;
  config_.pipeline.token_slices = "2";
  config_.output.sample_prompts = {"w"};
  const std::vector<std::string> faults = config_.faults().texts();
  const auto are_reported = [&](const std::string& words) {
    return std::ranges::any_of(faults,
                               [&](const std::string& fault) { return fault.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(are_reported("WordPiece vocabulary"));
  EXPECT_TRUE(are_reported("--reset-attention-mask"));
  EXPECT_TRUE(are_reported("tokens see no later ones"));
  EXPECT_TRUE(are_reported("does not continue text"));
}

}  // namespace
}  // namespace teratron::testing

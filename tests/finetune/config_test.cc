// The flags of `finetune`: the trainer's, and the task's own.
#include "finetune/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace teratron::testing {
namespace {

using ::testing::UnorderedElementsAre;

TEST(FinetuneFlags, AreTheTrainersButThoseThatFollowFromTheTask) {
  FinetuneConfig tuned;
  TrainConfig trained;
  FieldList ours = fields_of(tuned), theirs = fields_of(trained);
  std::set<std::string> missing;
  for (const Field& field : theirs) {
    if (ours.find(field.name) == nullptr) missing.insert(field.name);
  }
  EXPECT_THAT(missing,
              UnorderedElementsAre(
                  // The length of the run: its epochs.
                  "train-iters", "lr-decay-iters", "lr-warmup-iters", "rampup-batch-size",
                  // Files of the task.
                  "data-path", "valid-data-path", "split", "split-order", "split-seed", "override-data", "packing",
                  "reset-attention-mask", "reset-position-ids", "eod-mask-loss", "sft", "dpo", "dpo-beta", "mask-prob",
                  "short-seq-prob", "masking-max-ngram", "masking-use-geometric-distribution",
                  // Where it starts: --load, or what --save holds.
                  "iteration", "finetune", "override-opt-param-scheduler",
                  // When it is scored: after each epoch, on the whole set.
                  "eval-interval", "eval-iters", "save-best", "early-stop",
                  // A process of its own starts one run again; these are several.
                  "restart-on-failure", "launcher",
                  // Features that BERT lacks.
                  "sample-prompt", "sample-tokens", "lora-rank", "lora-alpha", "lora-dropout", "lora-targets", "rslora",
                  "frozen-weights"));
}

TEST(FinetuneFlags, EveryNameStandsForOneValue) {
  FinetuneConfig config;
  FieldList fields = fields_of(config);
  std::set<std::string> names;
  std::set<const void*> values;
  for (const Field& field : fields) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(values.insert(field.address()).second) << field.name;
  }
}

}  // namespace
}  // namespace teratron::testing

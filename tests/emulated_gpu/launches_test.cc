// How often the host queues something on a GPU in a step of training.
#include <gtest/gtest.h>

#include "emulated_gpu/emulator.h"
#include "model/train_in_layout.h"

namespace teratron::testing {
namespace {

// Of three steps, in which every pass has been captured, less those of the first three.
std::int64_t queued_calls(std::int64_t layers, std::int64_t micro_batches, bool graphs) {
  Study study{.batch = micro_batches, .tokens = 5, .logits_chunk = 20, .learning_rate = 1e-4};
  study.config = small_config();
  study.config.num_layers = layers;
  study.config.num_attention_heads = 1;  // sizes change no count of calls
  study.config.hidden_size = 8;
  study.config.hidden_dropout = study.config.attention_dropout = 0.1;
  const auto calls_in = [&](int steps) {
    study.steps = steps;
    const std::int64_t before = emulated::queued_calls();
    train(study, {.micro_batch = 1}, [=] { return make_cuda_backend({.graphs = graphs}); });
    return emulated::queued_calls() - before;
  };
  return calls_in(6) - calls_in(3);
}

// What one layer more costs each micro-batch more.
double calls_of_layer(bool graphs) {
  const auto more = [&](std::int64_t layers) {
    return queued_calls(layers, 4, graphs) - queued_calls(layers, 3, graphs);
  };
  return static_cast<double>(more(3) - more(2)) / 3;
}

TEST(GpuLaunches, AreTwoForALayerOnceItsPassesAreCaptured) {
  EXPECT_EQ(calls_of_layer(true), 2);
  const double plain = calls_of_layer(false);
  RecordProperty("plain", static_cast<int>(plain));
  EXPECT_GT(plain, 20);
}

}  // namespace
}  // namespace teratron::testing

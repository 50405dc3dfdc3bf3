// The promise that the layout never changes the result, for pipelines: every schedule, sequences in slices of tokens,
// deferred weight gradients, together with tensor and data parallelism, against one rank.
#include <gtest/gtest.h>

#include <random>

#include "model/train_in_layout.h"

namespace teratron {
namespace {

using pipeline::ScheduleKind;
using test::expect_near;
using test::expect_same;
using test::Layout;
using test::MakeBackend;
using test::Result;
using test::Study;
using test::train;

class RandomPipeline {
 public:
  explicit RandomPipeline(std::uint32_t seed) : random_(seed) {
    layout.mesh = {.tensor = one_of({1, 1, 2}), .pipeline = one_of({1, 2, 2, 3, 4}), .data = one_of({1, 1, 2})};
    layout.schedule = static_cast<ScheduleKind>(one_of({0, 1, 2, 3, 4}));
    if (layout.schedule == ScheduleKind::kInterleaved && layout.mesh.pipeline > 1) {
      layout.virtual_stages = one_of({1, 2, 3});
    }
    layout.micro_batch = one_of({1, 1, 2, 3});
    layout.shard_optimizer = one_of({0, 1}) == 1;
    layout.recompute = static_cast<Recompute>(one_of({0, 1, 2}));
    layout.defer_weight_gradients = one_of({0, 1}) == 1;
    // Rows of the residual stream are shared out over the tensor-parallel ranks: of one sequence at a time.
    layout.sequence_parallel = layout.mesh.tensor > 1 && layout.micro_batch == 1 && one_of({0, 1}) == 1;
    choose_slices();
    choose_layers();
    study.config.num_attention_heads = layout.mesh.tensor * one_of({1, 2});
    study.config.hidden_size = study.config.num_attention_heads * one_of({2, 5});
    study.config.vocab_size = one_of({7, 19, 50});
    study.config.make_vocab_size_divisible_by = one_of({1, 4, 8});
    study.config.max_position_embeddings = 32;
    study.config.hidden_dropout = study.config.attention_dropout = 0.1;
    study.config.init_method_std = 0.3;
    study.batch = layout.mesh.data * layout.micro_batch * one_of({1, 2, 4}) + one_of({0, 0, 1});
    study.logits_chunk = one_of({1, 3, 100});
    study.seed = seed;
  }
  std::string text() const {
    return fmt::format("seed {}: {} layers, hidden {}, {} heads, vocabulary {}, batch {}, {} tokens; {}", study.seed,
                       study.config.num_layers, study.config.hidden_size, study.config.num_attention_heads,
                       study.config.vocab_size, study.batch, study.tokens, layout.text());
  }
  Study study;
  Layout layout;

 private:
  void choose_slices() {
    const int unit = layout.sequence_parallel ? layout.mesh.tensor : 1;
    const bool sliced = layout.schedule == ScheduleKind::kTeraPipe || layout.schedule == ScheduleKind::kSeq1F1B;
    const int count = sliced ? one_of({1, 2, 3, 5}) : 1;
    study.tokens = 0;
    for (int slice = 0; slice < count; ++slice) {
      layout.slices.push_back(unit * one_of({1, 1, 2, 4}));
      study.tokens += layout.slices.back();
    }
    if (count == 1) layout.slices.clear();
  }
  void choose_layers() {
    const int cells = layout.mesh.pipeline * layout.virtual_stages;
    for (int cell = 0; cell < cells; ++cell) layout.cell_layers.push_back(one_of({1, 1, 2}));
    study.config.num_layers = std::accumulate(layout.cell_layers.begin(), layout.cell_layers.end(), std::int64_t{0});
  }
  int one_of(std::initializer_list<int> values) { return *(values.begin() + random_() % values.size()); }
  std::mt19937 random_;
};

// In double the layouts may differ only by the order of sums: 1e-10 leaves four digits for three AdamW steps.
TEST(PipelineLayout, ChangesNothingInDoubleOverRandomSchedulesAndSlices) {
  const MakeBackend reference = [] { return make_reference_backend(DType::kF64); };
  for (std::uint32_t seed = 1; seed <= 120; ++seed) {
    const RandomPipeline random(seed);
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, reference);
    expect_same(train(random.study, random.layout, reference), alone, 1e-10, random.text());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace teratron

// The working memory that plans count for the threads of a CPU is what these take: steps of a transformer layer and of
// a head, of random shapes, on a new thread, whose blocks are then compared.
#include "ops/working_memory.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "base/philox.h"
#include "base/trials.h"
#include "ops/backend.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu_instructions.h"
#include "tensor/weight_tiles.h"

namespace teratron::testing {
namespace {

constexpr const char* kNames[] = {"reduction", "panels",  "tile a", "tile b",   "keys",
                                  "values",    "queries", "rows",   "key sums", "low rank"};
static_assert(std::size(kNames) == static_cast<std::size_t>(Scratch::kCount));

std::int64_t drawn(RandomSequence& random, const std::vector<std::int64_t>& values) {
  return values[random.below(values.size())];
}

struct Trial {
  CpuOptions options;
  int threads = 1;
  std::int64_t batch = 1, tokens = 1, context = 0, hidden = 1, heads = 1, key_heads = 1, vocabulary = 1, chunk = 1;
  std::vector<std::int32_t> lengths = {};  // of text; empty: all of it

  std::int64_t rows() const { return batch * tokens; }
  WorkShapes shapes() const {
    WorkShapes work{.norm_rows = rows(), .norm_columns = hidden, .has_backward = true};
    work.products = {{rows(), hidden, 3 * hidden},
                     {rows(), hidden, 4 * hidden},
                     {rows(), 4 * hidden, hidden},
                     {std::min(rows(), chunk), hidden, vocabulary}};
    work.attentions = {{tokens, tokens + context, hidden / heads, heads / key_heads}};
    work.largest_parameter = hidden * std::max(vocabulary, 4 * hidden);
    return work;
  }
  std::string text() const {
    return fmt::format(
        "{}{}, {} threads, {} x {} tokens after {}, hidden {}, {} heads on {}, vocabulary {}, logits {}, {}",
        name_of(options.compute_dtype), options.bf16_products ? " products" : "", threads, batch, tokens, context,
        hidden, heads, key_heads, vocabulary, chunk, lengths.empty() ? "all text" : "padded");
  }
};

Trial random_trial(RandomSequence& random) {
  Trial trial{.options = {.compute_dtype = std::array{DType::kF32, DType::kBF16, DType::kF16}[random.below(3)],
                          .bf16_products = random.below(2) == 0},
              .threads = static_cast<int>(1 + random.below(3))};
  trial.heads = trial.key_heads = drawn(random, {1, 2, 4});
  trial.hidden = trial.heads * drawn(random, {16, 24, 64, 100, 160});
  trial.batch = drawn(random, {1, 2, 3});
  trial.tokens = drawn(random, {1, 3, 32, 65, 128, 300});
  trial.context = trial.tokens > 3 ? drawn(random, {0, 0, 70}) : 0;
  trial.vocabulary = drawn(random, {50, 1000, 3000});
  trial.chunk = drawn(random, {64, 256});
  if (trial.context == 0 && random.below(3) == 0) {
    for (std::int64_t b = 0; b < trial.batch; ++b) {
      trial.lengths.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(trial.tokens) + 1)));
    }
  }
  return trial;
}

class Steps {
 public:
  explicit Steps(const Trial& trial) : trial_(trial), backend_(make_cpu_backend(trial.options)) {}

  void run() {
    const std::int64_t hidden = trial_.hidden, rows = trial_.rows();
    linear(rows, hidden, 3 * hidden, trial_.lengths);
    linear(rows, hidden, 4 * hidden, trial_.lengths);
    linear(rows, 4 * hidden, hidden, trial_.lengths);
    linear(std::min(rows, trial_.chunk), hidden, trial_.vocabulary, {});
    attention();
    norm();
    backend_->sum_of_squares(weights(hidden * std::max(trial_.vocabulary, 4 * hidden)));
  }

 private:
  TensorRef tensor(DType dtype, const Shape& shape) {
    tensors_.push_back(std::make_unique<Tensor>(*backend_, dtype, shape));
    backend_->fill_zero(*tensors_.back());
    return *tensors_.back();
  }
  TensorRef stored(const Shape& shape) { return tensor(trial_.options.compute_dtype, shape); }
  TensorRef weights(std::int64_t elements) { return tensor(DType::kF32, {elements}); }
  TensorRef lengths_of(const std::vector<std::int32_t>& lengths) {
    if (lengths.empty()) return {};
    const TensorRef view = tensor(DType::kI32, {std::ssize(lengths)});
    backend_->upload(view, lengths.data());
    return view;
  }

  void linear(std::int64_t rows, std::int64_t inputs, std::int64_t outputs, const std::vector<std::int32_t>& text) {
    const TensorRef x = stored({rows, inputs}), y = stored({rows, outputs}), weight = stored({outputs, inputs});
    const TensorRef lengths = lengths_of(text);
    backend_->linear_forward({.y = y, .x = x, .weight = weight, .lengths = lengths});
    backend_->linear_input_gradient({.dx = x, .dy = y, .weight = weight, .lengths = lengths});
    backend_->linear_weight_gradient(
        {.dweight = tensor(DType::kF32, {outputs, inputs}), .dy = y, .x = x, .lengths = lengths});
    tensors_.clear();
  }

  void attention() {
    const std::int64_t keys = trial_.tokens + trial_.context, size = trial_.hidden / trial_.heads;
    const auto queries = [&] { return stored({trial_.batch, trial_.tokens, trial_.heads, size}); };
    const auto key_rows = [&] { return stored({trial_.batch, keys, trial_.key_heads, size}); };
    const AttentionForward forward{.out = queries(),
                                   .log_sum_exp = tensor(DType::kF32, {trial_.batch, trial_.heads, trial_.tokens}),
                                   .q = queries(),
                                   .k = key_rows(),
                                   .v = key_rows(),
                                   .lengths = lengths_of(trial_.lengths),
                                   .causal = trial_.lengths.empty(),
                                   .scale = 1};
    backend_->attention_forward(forward);
    backend_->attention_backward(
        {.dq = queries(), .dk = key_rows(), .dv = key_rows(), .dout = queries(), .forward = forward});
    tensors_.clear();
  }

  void norm() {
    const Shape whole{trial_.rows(), trial_.hidden};
    const TensorRef columns = weights(trial_.hidden), rows = weights(trial_.rows());
    backend_->norm_backward({.dx = stored(whole),
                             .dgamma = columns,
                             .dbeta = weights(trial_.hidden),
                             .dy = stored(whole),
                             .x = stored(whole),
                             .mean = rows,
                             .rstd = rows,
                             .gamma = stored({trial_.hidden})});
    tensors_.clear();
  }

  const Trial& trial_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Tensor>> tensors_;
};

// Scratch memory of a new thread, which starts all loops.
ScratchSizes taken_by(const Trial& trial) {
  ScratchSizes taken;
  std::thread([&] {
    set_thread_count(trial.threads);
    Steps(trial).run();
    taken = scratch_sizes();
  }).join();
  return taken;
}

// How much of a whole thread may be planned beside what it takes: as found, rounded up. Even parts of a weight's
// columns may fill little more than half of the room that panels have, which narrow vectors (AVX2, NEON) fill less.
double most_planned() { return instructions_in_use().name.starts_with("avx512") ? 1.6 : 1.7; }
constexpr double kMeanPlanned = 1.1;

// No block is larger than is planned for it. How much is planned, in times of what is taken.
double planned_share(const Trial& trial) {
  SCOPED_TRACE(trial.text());
  const ScratchSizes taken = taken_by(trial);
  const ScratchSizes planned = most_scratch(trial.shapes(), trial.options, true);
  for (std::size_t use = 0; use < std::size(kNames); ++use) {
    EXPECT_LE(taken[static_cast<Scratch>(use)], planned[static_cast<Scratch>(use)]) << kNames[use];
  }
  return static_cast<double>(planned.bytes()) / static_cast<double>(taken.bytes());
}

// Sanitizers make of seconds minutes.
#ifdef TERATRON_SANITIZED
constexpr int kTrials = 15;
#else
constexpr int kTrials = trials(150);
#endif

TEST(WorkingMemory, IsPlannedAsItIsTaken) {
  RandomSequence random({.seed = 1});
  double sum = 0;
  int full = 0;
  for (int i = 0; i < kTrials; ++i) {
    const Trial trial = random_trial(random);
    const double share = planned_share(trial);
    if (!trial.lengths.empty()) continue;  // sequences may be short
    if (!kSmallestBlocks) {
      EXPECT_LT(share, most_planned()) << trial.text();
    }
    sum += share;
    ++full;
  }
  if (kSmallestBlocks || kTrials < 100) return;  // which round up to a tile or a panel; too few for a mean
  EXPECT_LT(sum / full, kMeanPlanned);
}

TEST(WorkingMemory, HasTheSumsOfKeyHeadsThatQueryHeadsShare) {
  RandomSequence random({.seed = 3});
  for (int i = 0; i < kTrials / 5; ++i) {
    Trial trial = random_trial(random);
    trial.key_heads = 1;
    planned_share(trial);
  }
}

TEST(WorkingMemory, IsPlannedForTilesAsItIsTaken) {
  RandomSequence random({.seed = 4});
  for (int i = 0; i < 30; ++i) {
    const CpuOptions options{.vnni_products = random.below(2) == 0};
    const WorkShapes::Product product{.rows = drawn(random, {1, 7, 64, 65, 700}),
                                      .inputs = 32 * drawn(random, {1, 3, 12}),
                                      .outputs = drawn(random, {1, 50, 64, 300})};
    ScratchSizes taken;
    std::thread([&] {
      set_thread_count(1 + i % 3);
      const auto backend = make_cpu_backend(options);
      const Tensor x(*backend, DType::kF32, {product.rows, product.inputs}),
          y(*backend, DType::kF32, {product.rows, product.outputs}),
          weight(*backend, DType::kQ8Tile, tiles_of({product.outputs, product.inputs}));
      for (const Tensor* tensor : {&x, &weight}) backend->fill_zero(*tensor);
      backend->tile_linear_forward({{.y = y, .x = x, .weight = weight}});
      taken = scratch_sizes();
    }).join();
    const ScratchSizes planned = most_scratch({.products = {product}, .has_tiles = true}, options, true);
    for (std::size_t use = 0; use < std::size(kNames); ++use) {
      EXPECT_LE(taken[static_cast<Scratch>(use)], planned[static_cast<Scratch>(use)]) << kNames[use];
    }
    if (i % 3 != 0) continue;  // helpers may have taken all tasks
    EXPECT_LT(static_cast<double>(planned.bytes()), most_planned() * static_cast<double>(taken.bytes()));
  }
}

// A row of each text, as generation computes them.
TEST(WorkingMemory, OfRowsAloneIsPlannedAsItIsTaken) {
  RandomSequence random({.seed = 5});
  for (int i = 0; i < 40; ++i) {
    const CpuOptions options{.compute_dtype = std::array{DType::kF32, DType::kBF16, DType::kF16}[random.below(3)],
                             .bf16_products = random.below(2) == 0};
    const WorkShapes::Product product{.rows = drawn(random, {1, 4, 16, 64, 65, 300}),
                                      .inputs = drawn(random, {1, 40, 576, 1100}),
                                      .outputs = drawn(random, {1, 50, 128, 300})};
    ScratchSizes taken;
    std::thread([&] {
      set_thread_count(1 + i % 3);
      const auto backend = make_cpu_backend(options);
      const auto zeros = [&](const Shape& shape) {
        Tensor tensor(*backend, options.compute_dtype, shape);
        backend->fill_zero(tensor);
        return tensor;
      };
      const Tensor x = zeros({product.rows, product.inputs}), y = zeros({product.rows, product.outputs}),
                   weight = zeros({product.outputs, product.inputs});
      backend->linear_forward({.y = y, .x = x, .weight = weight, .rows_alone = true});
      taken = scratch_sizes();
    }).join();
    const ScratchSizes planned = most_scratch({.products = {product}}, options, true);
    for (std::size_t use = 0; use < std::size(kNames); ++use) {
      EXPECT_LE(taken[static_cast<Scratch>(use)], planned[static_cast<Scratch>(use)]) << kNames[use];
    }
  }
}

TEST(WorkingMemory, GrowsWithThreadsByWhatAHelperTakes) {
  RandomSequence random({.seed = 2});
  const Trial trial = random_trial(random);
  const std::int64_t one = cpu_working_bytes(trial.shapes(), trial.options, 1),
                     two = cpu_working_bytes(trial.shapes(), trial.options, 2);
  const ScratchSizes all = most_scratch(trial.shapes(), trial.options, true),
                     helper = most_scratch(trial.shapes(), trial.options, false);
  EXPECT_EQ(one, all.bytes());
  EXPECT_EQ(two - one, helper.bytes());
  EXPECT_EQ(helper[Scratch::kPanels], 0);
  EXPECT_GT(helper[Scratch::kTileA], 0);
  EXPECT_EQ(cpu_working_bytes(trial.shapes(), trial.options, 4) - two, 2 * helper.bytes());
}

}  // namespace
}  // namespace teratron::testing

// BERT with the head of a task: its loss is that of its outputs by the definition, its gradient is the derivative, and
// neither padding nor the layout changes anything.
#include "model/bert_task_head.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/message_of.h"
#include "model/bert.h"
#include "model/derivative_check.h"
#include "model/encoder.h"
#include "model/train_in_layout.h"

namespace teratron::testing {
namespace {

// A head, and its labels; one is a number.
struct StudiedHead {
  ModelHead head;
  std::int64_t labels;
  constexpr StudiedHead(ModelHead of, std::int64_t count = 3) : head(of), labels(count) {}  // NOLINT
  constexpr operator ModelHead() const { return head; }                                     // NOLINT
};
constexpr StudiedHead kTaskHeads[] = {{ModelHead::kClassification},
                                      {ModelHead::kClassification, 1},
                                      {ModelHead::kChoice},
                                      {ModelHead::kSpans},
                                      {ModelHead::kTokens}};
constexpr NormPlacement kTaskPlacements[] = {NormPlacement::kPre, NormPlacement::kPost};

// A small model with eight texts, and its executor.
struct TaskStudy {
  TaskStudy(StudiedHead head, NormPlacement placement, double dropout = 0.1, const ExecutorOptions& options = sizes())
      : config(config_of(head, placement, dropout)),
        model(config),
        batch(8, 7, config.vocab_size, 1, /*all_inputs=*/true),
        executor(*backend, model, options) {
    batch.add_labels(config, model.traits, 3);
    executor.allocate();
    executor.initialize(11);
  }

  static ExecutorOptions sizes() { return {.batch = 8, .tokens = 9}; }
  static ModelConfig config_of(StudiedHead head, NormPlacement placement, double dropout) {
    ModelConfig config = small_bert_config(placement);
    config.head = head;
    config.num_labels = head.labels;
    config.hidden_dropout = config.attention_dropout = dropout;
    return config;
  }

  std::size_t outputs() const {
    const std::int64_t rows = model.task->reads_tokens() ? batch.batch * batch.tokens : batch.batch;
    return static_cast<std::size_t>(rows * config.task_logits());
  }
  std::vector<float> outputs_of(const MicroBatch& micro_batch) {
    std::vector<float> values(outputs());
    task_outputs(executor, model, micro_batch, values);
    return values;
  }

  const std::unique_ptr<Backend> backend = make_reference_backend(DType::kF64);
  ModelConfig config;
  Bert model;
  RandomBatch batch;
  Executor executor;
};

void for_each_study(const std::function<void(StudiedHead, NormPlacement)>& use) {
  for (const StudiedHead head : kTaskHeads) {
    for (const NormPlacement placement : kTaskPlacements) {
      SCOPED_TRACE(fmt::format("head {} of {} labels, norms {}", static_cast<int>(head.head), head.labels,
                               static_cast<int>(placement)));
      use(head, placement);
    }
  }
}

double squared_error_of(const std::vector<float>& outputs, const RandomBatch& batch) {
  double total = 0;
  for (std::size_t label = 0; label < outputs.size(); ++label) {
    const double error = double{outputs[label]} - double{std::bit_cast<float>(batch.labels[label])};
    total += double{batch.label_weights[label]} * error * error;
  }
  return total;
}

// Sum of weight * loss by the definition: a row of outputs for each label, of spans as long as the text.
double loss_of(const std::vector<float>& outputs, const RandomBatch& batch, StudiedHead head) {
  if (head.labels == 1) return squared_error_of(outputs, batch);
  const bool of_tokens = head == ModelHead::kTokens;
  const auto& targets = of_tokens ? batch.targets : batch.labels;
  const auto& weights = of_tokens ? batch.weights : batch.label_weights;
  const std::size_t labels = targets.size(), columns = outputs.size() / labels;
  double total = 0;
  for (std::size_t label = 0; label < labels; ++label) {
    const std::size_t valid =
        head == ModelHead::kSpans ? static_cast<std::size_t>(batch.key_lengths[label / 2]) : columns;
    double sum = 0;
    for (std::size_t c = 0; c < valid; ++c) sum += std::exp(static_cast<double>(outputs[label * columns + c]));
    const auto target = static_cast<std::size_t>(targets[label]);
    total +=
        static_cast<double>(weights[label]) * (std::log(sum) - static_cast<double>(outputs[label * columns + target]));
  }
  return total;
}

TEST(BertTaskHead, LossIsThatOfTheOutputsByTheDefinition) {
  for_each_study([](StudiedHead head, NormPlacement placement) {
    TaskStudy study(head, placement, /*dropout=*/0);
    const double expected = loss_of(study.outputs_of(study.batch.whole()), study.batch, head);
    ASSERT_GT(expected, 0.1);
    const LossSums losses = study.executor.forward_backward(study.batch.whole());
    ASSERT_EQ(losses.of_kind.size(), 1U);
    EXPECT_NEAR(losses.total(), expected, 1e-6);  // outputs come as floats
    EXPECT_NEAR(study.executor.evaluate(study.batch.whole()).total(), losses.total(), 1e-12);
  });
}

TEST(BertTaskHead, OutputsAreThoseWithoutDropoutAndLeaveTrainingAsItIs) {
  for_each_study([](StudiedHead head, NormPlacement placement) {
    TaskStudy training(head, placement);
    TaskStudy evaluation(head, placement, 0,
                         {.purpose = Purpose::kEvaluation, .batch = 8, .tokens = 7, .logits_chunk = 1});
    const std::vector<double> before = losses_and_gradients(training.executor, training.batch.whole());
    MicroBatch without_labels = training.batch.whole();
    without_labels.labels = {};
    without_labels.label_weights = {};
    EXPECT_EQ(training.outputs_of(without_labels), evaluation.outputs_of(without_labels));
    EXPECT_EQ(losses_and_gradients(training.executor, training.batch.whole()), before);
    // Dropout is active in training, before the classifier too: another sample's masks are others.
    MicroBatch later = training.batch.whole();
    later.first_sample = 8;
    EXPECT_NE(losses_and_gradients(training.executor, later)[0], before[0]);
  });
}

TEST(BertTaskHead, TrainingDropsOfWhatTheClassifierReads) {
  for (const ModelHead head : {ModelHead::kClassification, ModelHead::kChoice, ModelHead::kTokens}) {
    TaskStudy study(head, NormPlacement::kPost);
    // The gradient of a weight is zero where the value that it reads was dropped of every text: of eight texts, or of
    // the tokens of two, often with a probability of 0.9, and next to never with 0.1.
    const MicroBatch texts = study.batch.part(0, head == ModelHead::kTokens ? 2 : 8);
    study.executor.forward_backward(texts);
    ModelConfig config = study.config;
    config.hidden_dropout = 0.9;
    config.attention_dropout = 0;
    Bert model(config);
    Executor executor(*study.backend, model, TaskStudy::sizes());
    executor.allocate();
    executor.initialize(11);
    executor.forward_backward(texts);
    const auto zeros = [&](const Bert& of) {
      const std::vector<double> gradient = values_of(*study.backend, of.task->linear.weight.gradient);
      return std::ranges::count(gradient, 0.0);
    };
    EXPECT_EQ(zeros(study.model), 0);
    EXPECT_GT(zeros(model), 0);
  }
}

TEST(BertTaskHead, GradientIsTheDerivativeAlongRandomDirections) {
  for_each_study([](StudiedHead head, NormPlacement placement) {
    TaskStudy study(head, placement);
    expect_gradient_is_the_derivative(study.executor, study.batch.whole());
  });
}

TEST(BertTaskHead, EveryParameterGetsAGradient) {
  for_each_study([](StudiedHead head, NormPlacement placement) {
    TaskStudy study(head, placement);
    expect_every_parameter_gets_a_gradient(study.executor, study.batch.whole(), study.config.parameters());
  });
}

// Whatever padding holds, and with its places cut off as far as no text needs them.
TEST(BertTaskHead, NeitherPaddingNorHowMuchOfItIsThereChangesAnything) {
  for_each_study([](StudiedHead head, NormPlacement placement) {
    TaskStudy study(head, placement);
    RandomBatch& batch = study.batch;
    for (std::int32_t& length : batch.key_lengths) length = std::min(length, 5);
    batch.add_labels(study.config, study.model.traits, 4);
    const std::vector<double> expected = losses_and_gradients(study.executor, batch.whole());
    for (std::size_t i = 0; i < batch.ids.size(); ++i) {
      if (static_cast<std::int32_t>(i % 7) < batch.key_lengths[i / 7]) continue;
      batch.ids[i] = (batch.ids[i] + 1) % static_cast<std::int32_t>(study.config.vocab_size);
      batch.token_types[i] = 1 - batch.token_types[i];
    }
    EXPECT_EQ(losses_and_gradients(study.executor, batch.whole()), expected);
    const auto cut = [](auto& values) {
      for (std::size_t i = values.size(); i-- > 0;) {
        if (i % 7 >= 5) values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
      }
    };
    cut(batch.ids), cut(batch.token_types), cut(batch.targets), cut(batch.weights);
    batch.tokens = 5;
    MicroBatch shorter = batch.whole();
    shorter.uncut_tokens = 7;
    const std::vector<double> actual = losses_and_gradients(study.executor, shorter);
    ASSERT_EQ(actual.size(), expected.size());
    // Equal products in sums of other lengths.
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(actual[i], expected[i], 1e-13 + 1e-12 * std::abs(expected[i])) << i;
    }
  });
}

TEST(BertTaskHead, PartsOfGroupsOfChoicesAreRefused) {
  TaskStudy study(ModelHead::kChoice, NormPlacement::kPost);
  const auto said =
      ::testing::HasSubstr("a micro-batch of 6 sequences: the model has labels for 4 sequences at a time");
  EXPECT_THAT(message_of<UserError>([&] { study.executor.forward_backward(study.batch.part(0, 6)); }), said);
  std::vector<float> outputs(6);
  EXPECT_THAT(
      message_of<UserError>([&] { task_outputs(study.executor, study.model, study.batch.part(0, 6), outputs); }), said);
  EXPECT_THAT(message_of<UserError>([&] { Executor(*study.backend, study.model, {.batch = 6, .tokens = 7}); }), said);
  EXPECT_NO_THROW(study.executor.forward_backward(study.batch.part(0, 4)));
}

TEST(BertTaskHead, EveryRankOfALayoutHasTheOutputs) {
  for_each_study([](StudiedHead head, NormPlacement placement) {
    TaskStudy alone(head, placement);
    alone.batch = RandomBatch(8, 6, alone.config.vocab_size, 1, true);  // 3 ranks share the tokens
    const std::vector<float> expected = alone.outputs_of(alone.batch.whole());
    for (const MeshShape shape :
         {MeshShape{.tensor = 3}, MeshShape{.pipeline = 2}, MeshShape{.tensor = 3, .pipeline = 2}}) {
      for (const bool sequence_parallel : {false, true}) {
        run_ranks({}, shape.ranks(), [&](Communicator& world) {
          const auto backend = make_reference_backend(DType::kF64);
          const auto mesh = std::make_shared<Mesh>(make_mesh(world, shape));
          Bert model(alone.config, mesh->coordinates().tensor);
          Executor executor(*backend, model,
                            {.batch = 8,
                             .tokens = 6,
                             .schedule = Layout{shape}.schedule_of(1),
                             .sequence_parallel = sequence_parallel && shape.tensor > 1},
                            mesh);
          executor.allocate();
          executor.initialize(11);
          std::vector<float> outputs(expected.size());
          task_outputs(executor, model, alone.batch.whole(), outputs);
          for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(outputs[i], expected[i], 1e-6) << i;
        });
      }
    }
  });
}

// Storage alone is of 16 bits: losses and outputs are near those in fp32.
TEST(BertTaskHead, SixteenBitsAreNearFp32) {
  for_each_study([](StudiedHead head, NormPlacement placement) {
    TaskStudy exact(head, placement, 0);
    const std::vector<float> expected = exact.outputs_of(exact.batch.whole());
    const auto backend = make_cpu_backend({.compute_dtype = DType::kBF16, .guard_memory = true});
    Bert model(exact.config);
    Executor executor(*backend, model, TaskStudy::sizes());
    executor.allocate();
    executor.initialize(11);
    std::vector<float> outputs(expected.size());
    task_outputs(executor, model, exact.batch.whole(), outputs);
    const double largest = *std::ranges::max_element(expected, {}, [](float value) { return std::abs(value); });
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t row = head == ModelHead::kTokens ? i / 3 : i % 7 + i / 14 * 7;  // of tokens
      const bool is_padding =
          exact.model.task->reads_tokens() && static_cast<std::int32_t>(row % 7) >= exact.batch.key_lengths[row / 7];
      if (is_padding) continue;
      EXPECT_NEAR(outputs[i], expected[i], 0.05 * std::abs(largest)) << i;
    }
    const double loss = exact.executor.forward_backward(exact.batch.whole()).total();
    EXPECT_NEAR(executor.forward_backward(exact.batch.whole()).total(), loss, 0.05 * loss);
  });
}

}  // namespace
}  // namespace teratron::testing

#include "finetune/outputs.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "eval/finite_outputs.h"
#include "model/encoder.h"
#include "tasks/task_samples.h"
#include "train/micro_batches.h"

namespace teratron {
namespace {

// Indices of all examples, the longest first.
std::vector<std::int64_t> order_of(const TaskExamples& examples) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(examples.count()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::int64_t example) { return examples.longest_of(example); });
  return order;
}

// Number of outputs of an example.
std::size_t size_of(const ModelConfig& model, const TaskExamples& examples, std::int64_t example) {
  switch (model.head) {
    case ModelHead::kClassification: return static_cast<std::size_t>(model.num_labels);
    case ModelHead::kChoice: return static_cast<std::size_t>(examples.sequences_each);
    case ModelHead::kSpans:
    case ModelHead::kTokens: return static_cast<std::size_t>(model.task_logits() * examples.length(example));
    case ModelHead::kVectors: return static_cast<std::size_t>(examples.sequences_each * model.hidden_size);
    default: break;
  }
  throw InternalError("outputs of a model without a task's head");
}

// Sums over the copies of the model: each has computed some outputs, and the rest are zero.
void sum_over(Communicator& replicas, TaskOutputValues& outputs) {
  if (replicas.size() == 1) return;
  std::vector<double> all;
  for (const std::vector<float>& one : outputs) all.insert(all.end(), one.begin(), one.end());
  replicas.all_reduce_host(all);
  std::size_t at = 0;
  for (std::vector<float>& one : outputs) {
    for (float& value : one) value = static_cast<float>(all[at++]);
  }
}

}  // namespace

TaskOutputValues outputs_of(Executor& executor, const Bert& model, const TaskExamples& examples,
                            const std::function<void(double share)>& done) {
  TaskOutputValues outputs(static_cast<std::size_t>(examples.count()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].resize(size_of(model.config, examples, static_cast<std::int64_t>(i)));
  }
  const std::int64_t each = examples.sequences_each, at_a_time = executor.options().batch / each,
                     tokens = executor.options().tokens;
  check(at_a_time > 0, "an executor that takes an example at a time");
  const std::vector<std::int64_t> order = order_of(examples);
  const TaskSamples samples(examples, tokens, SampleOrder::kSequential, 0);
  const MicroBatchCutter cutter(executor, tokens);
  SampleBatch batch = samples.make_batch(at_a_time * each);
  Communicator& replicas = *executor.mesh().data;
  std::vector<float> values;
  for (std::int64_t begin = replicas.rank() * at_a_time; begin < examples.count();
       begin += replicas.size() * at_a_time) {
    const std::int64_t count = std::min(at_a_time, examples.count() - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      samples.read({order[static_cast<std::size_t>(begin + i)] * each, each}, batch, i * each);
    }
    MicroBatch micro_batch = cutter.micro_batch(batch, 0, count * each);
    micro_batch.labels = {};  // outputs need none
    micro_batch.label_weights = {};
    const bool are_spans = model.config.head == ModelHead::kSpans;
    const bool of_tokens = are_spans || model.config.head == ModelHead::kTokens;
    const std::int64_t row = of_tokens ? model.config.task_logits() * micro_batch.tokens : std::ssize(outputs.front());
    values.resize(static_cast<std::size_t>(count * row));
    if (model.config.head == ModelHead::kVectors) {
      text_vectors(executor, model, micro_batch, model.config.vectors.pooling, values);
    } else {
      task_outputs(executor, model, micro_batch, values);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<float>& own = outputs[static_cast<std::size_t>(order[static_cast<std::size_t>(begin + i)])];
      const auto from = values.begin() + i * row;
      const auto part = are_spans ? std::ssize(own) / 2 : std::ssize(own);
      std::copy_n(from, part, own.begin());
      if (are_spans) std::copy_n(from + micro_batch.tokens, part, own.begin() + part);
    }
    if (done) done(static_cast<double>(begin + count) / static_cast<double>(examples.count()));
  }
  sum_over(replicas, outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (first_not_finite(outputs[i])) {
      throw_output_not_finite(fmt::format("the output for example {} of the set", i + 1),
                              executor.backend().compute_dtype());
    }
  }
  return outputs;
}

}  // namespace teratron

#include "model/task_outputs.h"

#include "base/error.h"
#include "nn/host_values.h"

namespace teratron {

void task_outputs(Executor& executor, const Bert& model, const MicroBatch& micro_batch, std::span<float> outputs) {
  check(model.task.has_value(), "a BERT with the head of a task");
  model.traits.check_groups(micro_batch.batch);
  const std::int64_t rows = micro_batch.batch * (model.task->reads_tokens() ? micro_batch.tokens : 1);
  check_equal(static_cast<std::int64_t>(outputs.size()), rows * model.task->logits, "outputs to fill");
  executor.forward(micro_batch, [&](const EndCall& call, TensorRef x) {
    download_floats(executor.backend(), model.task_outputs(call, x), outputs);
  });
  executor.share_from_last_stage(outputs);
}

}  // namespace teratron

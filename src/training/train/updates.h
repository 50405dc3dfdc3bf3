// The updates of a run: samples by position, losses and gradients over micro-batches, the optimizer's step. All ranks
// make the same calls and get the same numbers. A Trainer decides when to validate, save and end; the doctor's replay
// repeats updates.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "data/batch_sampler.h"
#include "executor/executor.h"
#include "optim/loss_scaler.h"
#include "train/config/config.h"
#include "train/doctor/layer_numerics.h"
#include "train/plans/pipeline_plan.h"
#include "train/run_control.h"
#include "train/sample_reader.h"
#include "train/training_task.h"

namespace teratron {

struct IterationReport {
  std::int64_t iteration = 0;                              // the update just applied, counted from 1
  std::int64_t global_batch_size = 0;                      // of this update
  std::int64_t consumed_samples = 0, consumed_tokens = 0;  // of the whole run so far; tokens with padding
  std::int64_t tokens = 0;                                 // of this update; packed samples count with their padding
  LossSums losses;           // means over the global batch, before the update, in nats, by kind
  double loss = 0;           // their sum
  double gradient_norm = 0;  // before clipping
  bool skipped = false;      // its gradients overflowed: the weights stayed as they were
  double learning_rate = 0;
  double loss_scale = 1;  // that the gradients were computed with
  double seconds = 0;
  double done_at = 0;                 // in seconds since 1970
  std::vector<LayerNumerics> layers;  // with --trace-numerics
};

// Training has computed numbers that are not finite, on all ranks alike; other settings may avoid it. With
// --trace-numerics a replay has repeated them.
class DivergedError : public UserError {
 public:
  using UserError::UserError;
};

// An update that is computed and not applied.
struct Update {
  IterationReport report;               // complete once it is applied
  Requests requests;                    // of all ranks
  std::optional<double> gradient_norm;  // times the loss scale; nothing: the loss is not finite
  bool has_samples = true;              // of this rank's copy of the model
  double began = 0;                     // monotonic_seconds()
};

class Updates {
 public:
  // Plans everything and allocates nothing. Refers to `config` and `task`; the others are Trainer's.
  Updates(const TrainConfig& config, const TrainingTask& task, Backend& backend, const std::shared_ptr<Mesh>& mesh,
          const slicing::Profile* profile);
  Updates(const Updates&) = delete;
  Updates& operator=(const Updates&) = delete;

  const TrainingTask& task() const { return task_; }
  const PipelinePlan& pipeline() const { return pipeline_; }
  // Counts samples from the run's start; asked from the resumed update on.
  const BatchSchedule& batches() const { return batches_; }
  const Executor& executor() const { return executor_; }
  Executor& executor() { return executor_; }
  SampleReader& reader() { return reader_; }
  const Mesh& mesh() const { return executor_.mesh(); }
  bool is_first_rank() const { return mesh().data->rank() == 0 && mesh().model->rank() == 0; }
  std::int64_t iteration() const { return iteration_; }  // updates done

  // Goes to the start of the run: random weights, or those of --finetune. UserError: as load_weights.
  void begin();
  // Goes to a checkpoint of the run. UserError: as load_checkpoint.
  TrainingState load(const std::filesystem::path& folder);
  // Goes to the checkpoint that a run begins at, whose batches and learning rates are `config`'s from there on.
  TrainingState resume(const std::filesystem::path& folder);

  // Computes the next update. `requests`: this rank's, asked for as late in the update as ranks still can agree on
  // them. CorpusFailure.
  Update compute(const std::function<Requests()>& requests = [] { return Requests(); });
  // Applies it, unless fp16's gradients have overflowed. DivergedError: its loss or gradient norm is not finite for
  // another reason; the weights stay as they are.
  void apply(Update& update);

  // DivergedError: `what`, a loss of the current weights, is not finite.
  [[noreturn]] void throw_weights_diverged(const std::string& what) const;

  // The part of a checkpoint's state that load() takes.
  TrainingState state() const;

 private:
  // This rank's share of the update under way.
  std::vector<MicroBatch> read_share();
  // Cuts the samples from `first` of share_ on; `range` are their positions in the run.
  MicroBatch cut_micro_batch(std::int64_t first, SampleRange range);
  void sum_over_copies(Update& update, std::span<const MicroBatch> share);
  [[noreturn]] void throw_diverged();  // the update under way
  std::int64_t applied() const { return iteration_ - skipped_; }

  const TrainConfig& config_;
  const TrainingTask& task_;
  BatchSchedule batches_;
  PipelinePlan pipeline_;
  BatchSampler sampler_;  // of the update under way
  Executor executor_;
  std::vector<Parameter*> parameters_;  // those that this rank holds
  LearningRateSchedule schedule_;
  std::optional<LossScaler> scaler_;  // fp16 only
  std::int64_t iteration_ = 0, skipped_ = 0;
  std::int64_t consumed_tokens_ = 0;  // earlier parts of the run may have had samples of another length
  SampleReader reader_;
  // This rank's samples of the largest batch, on the host. They take 12 to 24 bytes a token by their kind: 6 MiB for
  // 512 samples of 1024 tokens of a GPT. No memory plan counts them; they are allocated before plans are compared with
  // the free memory (Run::run).
  SampleBatch share_;
};

}  // namespace teratron

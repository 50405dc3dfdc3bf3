// The options of `teratron finetune`, and the training run that follows from them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "settings/step_settings.h"
#include "tasks/task.h"
#include "train/config/config.h"
#include "train/config/optimizer_settings.h"

namespace teratron {

// A row of Megatron-LM's Table 6: the size of the batch in examples, the peak learning rate, the epochs.
struct TaskHyperParameters {
  std::int64_t batch = 0;
  double learning_rate = 0;
  std::int64_t epochs = 0;
  bool operator==(const TaskHyperParameters&) const = default;
};
// Those of the model in the table (336M, 1.3B, 3.9B) whose size is nearest, as a ratio.
TaskHyperParameters paper_hyper_parameters(TaskKind task, std::int64_t model_parameters);

// The weight decay of RoBERTa's fine-tuning (arXiv 1907.11692, Table 10), whose procedure Megatron-LM's paper follows.
double paper_weight_decay(TaskKind task);

// How texts are read: the flags of `finetune` and of `eval TASK`. A 0 says: as default_reading() has it.
struct TaskReadingSettings {
  TaskReading given{.seq_length = 0};

  // Filled in, for a model of so many positions.
  TaskReading reading_for(TaskKind task, std::int64_t positions) const;
  Faults faults() const;
};
void add_task_reading_fields(FieldList& list, TaskReadingSettings& settings);

// A batch size in examples and a peak learning rate that --search tries.
struct SearchPoint {
  std::int64_t batch = 0;
  double learning_rate = 0;
  bool operator==(const SearchPoint&) const = default;
};

// A 0 that stands for the paper's value is filled in by read_finetune_config. Batch sizes count examples.
struct FinetuneConfig {
  FinetuneConfig();

  TaskKind task = TaskKind::kMnli;
  std::vector<std::filesystem::path> train_data, valid_data;  // must be given
  std::vector<std::filesystem::path> test_data;               // none: nothing is tested
  std::filesystem::path load;                                 // the weights to start from; empty: random ones
  TaskReadingSettings reading;
  std::int64_t epochs = 0;
  double warmup_fraction = 0.065;  // of all updates
  std::int64_t seeds = 1;
  bool search = false;
  std::vector<std::int64_t> search_batch_sizes;  // with search_rates: the points of --search
  std::vector<double> search_rates;
  std::vector<SearchPoint> points;  // of --search, from these; filled in by read_finetune_config
  bool weight_decay_given = false;  // else a run that goes on keeps its own
  bool ensemble = false;
  TrainConfig run;  // what the runs of all seeds share; train_config() fills in the rest

  Faults faults() const;
};

FieldList fields_of(FinetuneConfig& config);
std::string to_toml(FinetuneConfig config);

// Defaults < the shape and tokenizer of --load < --config FILE < command line, then the task's head and the paper's
// values. UserError: all faults; no weights there; weights of something else than a BERT.
FinetuneConfig read_finetune_config(std::span<const std::string> arguments);

// A model that ends in what the task needs.
void set_task_head(ModelConfig& model, TaskKind task);

// The updates in which the learning rate rises, of so many in all.
std::int64_t warmup_updates(const FinetuneConfig& config, std::int64_t updates);

// The run of seed number `index`, of examples like these: an epoch is the largest number of whole batches that they
// have, and a score is taken after each. Samples are sequences there. It saves to --save, or where there are several
// seeds or --search to seed-N in it; it goes on from a checkpoint that is there.
TrainConfig train_config(const FinetuneConfig& config, const TaskExamples& examples, std::int64_t index);

}  // namespace teratron

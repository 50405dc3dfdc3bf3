// Options of `teratron finetune`, and the training run that follows from them.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "finetune/task_reading.h"
#include "settings/step_settings.h"
#include "tasks/task.h"
#include "train/config/config.h"
#include "train/config/optimizer_settings.h"

namespace teratron {

// Row of Megatron-LM's Table 6: batch size in examples, peak learning rate, epochs.
struct TaskHyperParameters {
  std::int64_t batch = 0;
  double learning_rate = 0;
  std::int64_t epochs = 0;
  bool operator==(const TaskHyperParameters&) const = default;
};
// Row of the model in the table (336M, 1.3B, 3.9B) whose size is nearest, as a ratio.
TaskHyperParameters paper_hyper_parameters(TaskKind task, std::int64_t model_parameters);

// Weight decay of RoBERTa's fine-tuning (arXiv 1907.11692, Table 10), whose procedure Megatron-LM's paper follows.
double paper_weight_decay(TaskKind task);

// Point of --search: batch size in examples, peak learning rate.
struct SearchPoint {
  std::int64_t batch = 0;
  double learning_rate = 0;
  bool operator==(const SearchPoint&) const = default;
};

// Batch sizes count examples. read_finetune_config() replaces 0 by the paper's value.
struct FinetuneConfig {
  FinetuneConfig();

  TaskKind task = TaskKind::kMnli;
  std::vector<std::filesystem::path> train_data, valid_data;  // required
  std::vector<std::filesystem::path> test_data;               // empty: no test
  std::filesystem::path load;                                 // weights to start from; empty: random ones
  TaskReadingSettings reading;
  std::map<std::string, std::string> given_reading;  // its flags that were given; filled in by read_finetune_config()
  std::int64_t epochs = 0;
  double warmup_fraction = 0.065;  // of all updates
  std::int64_t seeds = 1;
  bool search = false;
  std::vector<std::int64_t> search_batch_sizes;  // with search_rates: the points of --search
  std::vector<double> search_rates;
  std::vector<SearchPoint> points;  // of --search; filled in by read_finetune_config()
  bool weight_decay_given = false;  // false: a resumed run keeps its own
  // The user gave no --micro-batch-size, and all pairs of an update are to be one another's negatives.
  bool micro_batch_is_batch = false;
  bool ensemble = false;
  TrainConfig run;  // settings of the runs of all seeds; train_config() fills in the rest

  Faults faults() const;
};

FieldList fields_of(FinetuneConfig& config);
std::string to_toml(FinetuneConfig config);

// Defaults < the shape and tokenizer of --load < --config FILE < command line, then the task's head and the paper's
// values. UserError: all faults; no weights there; weights of something else than a BERT.
FinetuneConfig read_finetune_config(std::span<const std::string> arguments);

// Warm-up updates of the learning rate, of so many updates in all.
std::int64_t warmup_updates(const FinetuneConfig& config, std::int64_t updates);

// Run of seed number `index` on these examples. An epoch is the largest number of whole batches; the model is scored
// after each epoch. Its samples are sequences. It saves to --save (with several seeds or --search, to seed-N in it),
// and resumes from a checkpoint there.
TrainConfig train_config(const FinetuneConfig& config, const TaskExamples& examples, std::int64_t index);

}  // namespace teratron

// The entries of MNLI and QQP.
#include "tasks/glue/pairs.h"
#include "tasks/task_entry.h"

namespace teratron {
namespace {

constexpr std::array<std::string_view, 2> kQqpLabelNames = {"not_duplicate", "duplicate"};

template <glue::Task task>
std::unique_ptr<TaskSet> open_pairs_of(std::span<const std::filesystem::path> files, const Tokenizer& tokenizer,
                                       const TaskReading& reading, bool training) {
  return glue::open_pairs(task, files, tokenizer, reading, training);
}

}  // namespace

constinit const TaskEntry kMnliTask = complete({
    .name = "mnli",
    .shape = {TaskOutputs::kLabels, std::size(glue::kMnliLabels)},
    .labels = glue::kMnliLabels,
    .seq_length = 128,
    .max_query_length = 0,
    .predictions_extension = ".tsv",
    .paper =
        {
            .batch = {128, 128, 128},
            .learning_rate = {1e-5, 1e-5, 1e-5},
            .epochs = 10,
            .weight_decay = 0.1,
            .search_rates = kRobertaSearchRates,
        },
    .open = open_pairs_of<glue::Task::kMnli>,
});

constinit const TaskEntry kQqpTask = complete({
    .name = "qqp",
    .shape = {TaskOutputs::kLabels, std::size(kQqpLabelNames)},
    .labels = kQqpLabelNames,
    .seq_length = 128,
    .max_query_length = 0,
    .predictions_extension = ".tsv",
    .paper =
        {
            .batch = {128, 128, 256},
            .learning_rate = {5e-5, 3e-5, 4e-5},
            .epochs = 12,
            .weight_decay = 0.1,
            .search_rates = kRobertaSearchRates,
        },
    .open = open_pairs_of<glue::Task::kQqp>,
});

}  // namespace teratron

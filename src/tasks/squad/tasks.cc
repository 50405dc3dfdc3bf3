// The entries of SQuAD 1.1 and 2.0.
#include "tasks/squad/samples.h"
#include "tasks/task_entry.h"

namespace teratron {
namespace {

template <squad::Version version>
std::unique_ptr<TaskSet> open_samples_of(std::span<const std::filesystem::path> files, const Tokenizer& tokenizer,
                                         const TaskReading& reading, bool training) {
  return squad::open_samples(version, files, tokenizer, reading, training);
}

}  // namespace

constinit const TaskEntry kSquad1Task = complete({
    .name = "squad1",
    .shape = {TaskOutputs::kSpans, 2},
    .labels = {},
    .seq_length = 384,
    .max_query_length = 64,
    .predictions_extension = ".json",
    .paper =
        {
            .batch = {64, 48, 48},
            .learning_rate = {3e-5, 3e-5, 1e-5},
            .epochs = 2,
            .weight_decay = 0.01,
            .search_rates = kBertSearchRates,
        },
    .open = open_samples_of<squad::Version::kSquad1>,
});

constinit const TaskEntry kSquad2Task = complete({
    .name = "squad2",
    .shape = {TaskOutputs::kSpans, 2},
    .labels = {},
    .seq_length = 384,
    .max_query_length = 64,
    .predictions_extension = ".json",
    .paper =
        {
            .batch = {48, 64, 48},
            .learning_rate = {3e-5, 3e-5, 1e-5},
            .epochs = 2,
            .weight_decay = 0.01,
            .search_rates = kBertSearchRates,
        },
    .open = open_samples_of<squad::Version::kSquad2>,
});

}  // namespace teratron

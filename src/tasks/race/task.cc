// The entry of RACE.
#include "tasks/race/choices.h"
#include "tasks/task_entry.h"

namespace teratron {

constinit const TaskEntry kRaceTask = complete({
    .name = "race",
    .shape = {TaskOutputs::kChoice, race::kOptions},
    .labels = {},
    .seq_length = 512,
    .max_query_length = 128,
    .predictions_extension = ".json",
    .paper =
        {
            .batch = {32, 16, 32},
            .learning_rate = {2e-5, 1e-5, 2e-5},
            .epochs = 3,

            .weight_decay = 0.1,
            .search_rates = kBertSearchRates,
        },
    .open = race::open_choices,
});

}  // namespace teratron

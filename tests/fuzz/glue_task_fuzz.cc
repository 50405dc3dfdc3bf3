// MNLI's and QQP's data, predictions, and their score; the first byte chooses the task.
#include "fuzz.h"
#include "tasks/glue/format.h"
#include "tasks/glue/score.h"

void teratron::fuzz::parse(std::string_view input) {
  const auto task = static_cast<glue::Task>(take_byte(input) % 2);
  const auto parts = parts_of(input, '\x1e');
  const auto data = put("a.tsv", parts.front()), predicted = put("b.tsv", parts.back());
  glue::Dataset dataset;
  try {
    dataset = glue::read_dataset(data, task);
  } catch (const UserError&) {
  }
  glue::count_labels(dataset);
  glue::score(dataset, glue::read_predictions(predicted, task));
}

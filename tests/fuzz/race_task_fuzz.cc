// RACE's data, predictions, and their score.
#include <array>

#include "fuzz.h"
#include "tasks/race/format.h"
#include "tasks/race/score.h"

void teratron::fuzz::parse(std::string_view input) {
  const auto parts = parts_of(input, '\x1e');
  const std::array files = {put("a.jsonl", parts.front())};
  const auto predicted = put("b.json", parts.back());
  race::Dataset dataset;
  try {
    dataset = race::read_dataset(files);
  } catch (const UserError&) {
  }
  race::score(dataset, race::read_predictions(predicted));
}

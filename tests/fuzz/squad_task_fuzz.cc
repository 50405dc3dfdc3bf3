// SQuAD's data, predictions, and their score; the first byte chooses the version.
#include "fuzz.h"
#include "tasks/squad/format.h"
#include "tasks/squad/score.h"

void teratron::fuzz::parse(std::string_view input) {
  const auto version = static_cast<squad::Version>(take_byte(input) % 2);
  const auto parts = parts_of(input, '\x1e');
  const auto data = put("a.json", parts.front()), predicted = put("b.json", parts.back());
  squad::Dataset dataset;
  try {
    dataset = squad::read_dataset(data, version);
  } catch (const UserError&) {
  }
  squad::score(dataset, squad::read_predictions(predicted), version);
  squad::normalized(input);
}

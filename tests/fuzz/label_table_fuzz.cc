// Tables of labels of one's own, and predictions of their rows; the first byte chooses the format.
#include <array>

#include "fuzz.h"
#include "tasks/custom/labels.h"
#include "tasks/custom/predictions.h"
#include "tasks/custom/table.h"

void teratron::fuzz::parse(std::string_view input) {
  constexpr std::array<const char*, 4> kNames = {"a.csv", "a.tsv", "a.jsonl", "a.json"};
  const unsigned choice = take_byte(input);
  const auto parts = parts_of(input, '\x1e');
  const std::array files = {put(kNames[choice % kNames.size()], parts.front())};
  const auto predicted = put("b.jsonl", parts.back());
  const custom::Columns columns{.text = "text", .pair = choice / 4 % 2 == 1 ? "pair" : "", .label = "label"};
  const custom::Table table = custom::read_table(files, columns);
  require(!table.rows.empty(), "a table has rows");
  for (const custom::Row& row : table.rows) require(!table.place(row).empty(), "a row has a place");
  try {
    const LabelSet labels = custom::labels_in(table, LabelKind::kAuto);
    const custom::LabelWords words(labels);
    for (const custom::Row& row : table.rows) words.of(row, table);
  } catch (const UserError&) {
  }
  custom::read_predictions(predicted, table.rows.size());
}

// The words of a command line, a line each.
#include "fuzz.h"
#include "options/output.h"
#include "options/reading.h"
#include "options_for_fuzzing.h"

void teratron::fuzz::parse(std::string_view input) {
  std::vector<std::string> words;
  for (const std::string_view word : parts_of(input, '\n')) words.emplace_back(word);
  Options options;
  FieldList fields = fields_of(options);
  for (const std::string& line : read_fields(fields, words)) printable(line);
  value_table(fields);
}

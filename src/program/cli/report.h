// Results of a command, for people and for scripts.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/json_string.h"
#include "console/term_list.h"
#include "options/fields.h"

namespace teratron {

// Adds the --json FILE of every subcommand.
void add_json_field(FieldList& list, std::filesystem::path& json);

// Adds --json LINES of the commands that answer text by text.
void add_json_lines_field(FieldList& list, std::filesystem::path& json);

// Adds --overwrite, for commands with valuable results. They call require_free (base/files/free_place.h) at once.
void add_overwrite_field(FieldList& list, bool& overwrite);

// Adds --color WHEN. `what`: for the help, "colours of --show".
void add_color_field(FieldList& list, Colours& color, std::string_view what);

// Writes to standard output. EnvironmentError: a failed write, as to a full disk.
void print_result(std::string_view text);

// Writes a line of JSON to the file `json`, to standard output for "-", nowhere if it is empty. EnvironmentError.
void write_json(const std::filesystem::path& json, std::string_view json_line);

// Writes JSON as write_json(), and `text` for people to standard output, or to standard error if the JSON goes to
// standard output.
void report(const std::filesystem::path& json, std::string_view text, std::string_view json_line);

// Reports beside a result in `out`. If that is "-", `text` goes to standard error.
void report_beside(const std::filesystem::path& out, const std::filesystem::path& json, std::string_view text,
                   std::string_view json_line);

// Value of nlohmann::json. Both functions take one in the place of a line of JSON.
template <class Json>
concept JsonValue = requires(const Json& value) {
  value.dump();
};
template <JsonValue Json>
void report(const std::filesystem::path& json, std::string_view text, const Json& value) {
  report(json, text, json_text(value));
}
template <JsonValue Json>
void report_beside(const std::filesystem::path& out, const std::filesystem::path& json, std::string_view text,
                   const Json& value) {
  report_beside(out, json, text, json_text(value));
}

// Adds the fault of a result and JSON that both go to standard output. `name`: the result's flag.
void add_output_faults(Faults& faults, std::string_view name, const std::filesystem::path& out,
                       const std::filesystem::path& json);

// Adds the fault of a result that cannot go to standard output, as its files need names. `name`: the result's.
void add_name_fault(Faults& faults, std::string_view name, const std::filesystem::path& out);

}  // namespace teratron

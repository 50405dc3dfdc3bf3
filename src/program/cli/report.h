// What a command has found out, for people and for scripts.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "options/fields.h"

namespace teratron {

// The --json FILE that every subcommand takes.
void add_json_field(FieldList& list, std::filesystem::path& json);

// The --overwrite of commands whose results someone may have worked for. They call require_free (base/files) at once.
void add_overwrite_field(FieldList& list, bool& overwrite);

// Writes to standard output. EnvironmentError where that fails (a full disk behind it).
void print_result(std::string_view text);

// Writes a line of JSON to the file `json`, to standard output for "-", nowhere if it is empty. EnvironmentError.
void write_json(const std::filesystem::path& json, std::string_view json_text);

// The same, and `text`, which is for people, to standard output, or to standard error where the JSON goes there.
void report(const std::filesystem::path& json, std::string_view text, std::string_view json_text);

// Where a command's result itself goes to `out`, which may be "-": `text` then goes to standard error.
void report_beside(const std::filesystem::path& out, const std::filesystem::path& json, std::string_view text,
                   std::string_view json_text);

// The fault of results (`name` is what the user calls them) and JSON that both go to standard output.
void add_output_faults(Faults& faults, std::string_view name, const std::filesystem::path& out,
                       const std::filesystem::path& json);

}  // namespace teratron

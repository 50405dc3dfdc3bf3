// teratron flags: table of other programs' flags and ours.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "options/foreign_flags.h"

namespace teratron {
namespace {

struct FlagsOptions {
  std::filesystem::path json;
};

FieldList fields_of(FlagsOptions& o) {
  FieldList list;
  add_json_field(list, o.json);
  return list;
}

// Flag as users of its program type it.
std::string spelled(const ForeignFlag& flag) {
  std::string name(flag.name);
  if (flag.program == ForeignProgram::kLlmC) return "-" + name;
  if (flag.program != ForeignProgram::kMegatron) std::ranges::replace(name, '-', '_');
  return "--" + name;
}

// Table in Markdown, which is readable on a terminal, too.
std::string table_of_flags() {
  using Row = std::array<std::string, 4>;
  std::vector<Row> rows = {{"program", "its flag", "here", ""}};
  for (const ForeignFlag& flag : foreign_flags()) {
    std::string ours = flag.ours.empty() ? "-" : std::string(flag.ours);
    std::ranges::replace(ours, '|', '/');
    rows.push_back({std::string(name_of(flag.program)), spelled(flag), ours, std::string(flag.note)});
  }
  std::array<std::size_t, 4> widths = {};
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  const auto line = [&](const Row& row) {
    std::string text = "|";
    for (std::size_t column = 0; column < row.size(); ++column) {
      text += fmt::format(" {:<{}} |", row[column], widths[column]);
    }
    return text + "\n";
  };
  std::string text = line(rows.front()) + "|";
  for (const std::size_t width : widths) text += std::string(width + 2, '-') + "|";
  text += "\n";
  for (std::size_t i = 1; i < rows.size(); ++i) text += line(rows[i]);
  return text;
}

void run(const FlagsOptions& options) {
  nlohmann::ordered_json flags = nlohmann::ordered_json::array();
  for (const ForeignFlag& flag : foreign_flags()) {
    flags.push_back({{"program", name_of(flag.program)},
                     {"its_flag", spelled(flag)},
                     {"here", flag.ours},
                     {"note", flag.note},
                     {"is_missing", flag.is_missing}});
  }
  report(options.json, table_of_flags(), nlohmann::ordered_json{{"flags", flags}});
}

}  // namespace

Command flags_command() { return make_command<FlagsOptions>("flags", "maps the flags of other programs to ours", run); }

}  // namespace teratron

#include "reproduction/paper.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "options/reading.h"
#include "options/toml_parsing.h"

namespace teratron::plan {
namespace {

std::string text_of(const toml::table& table, std::string_view key) { return table[key].value_or(std::string()); }

CellValue value_named(std::string_view name) {
  constexpr auto kNames = std::to_array<std::pair<std::string_view, CellValue>>({{"", CellValue::kOfUnit},
                                                                                 {"layer", CellValue::kLayer},
                                                                                 {"whole", CellValue::kWhole},
                                                                                 {"sliced", CellValue::kSliced},
                                                                                 {"speed-up", CellValue::kSpeedUp},
                                                                                 {"slices", CellValue::kSlices},
                                                                                 {"even", CellValue::kEven},
                                                                                 {"best even", CellValue::kBestEven}});
  const auto found = std::ranges::find(kNames, name, &std::pair<std::string_view, CellValue>::first);
  check(found != kNames.end(), "a value of data/papers");
  return found->second;
}

class PaperReader {
 public:
  explicit PaperReader(std::string_view name)
      : name_(name), file_(parse_toml(teratron::text_of(paper_files(), name), name_)) {}

  Paper read() const {
    Paper paper{.title = text_of(file_, "title"),
                .cluster = text_of(file_, "cluster"),
                .counts_recompute = file_["counts"].is_string()};
    each(file_, "constants", [&](const toml::table& one) {
      paper.constants.push_back({text_of(one, "name"), one["value"].value_or(0.0), text_of(one, "from")});
    });
    each(file_, "tables", [&](const toml::table& table) {
      each(table, "cells", [&](const toml::table& cell) { paper.cells.push_back(cell_of(table, cell)); });
    });
    each(file_, "curves", [&](const toml::table& curve) { paper.curves.push_back(curve_of(curve)); });
    return paper;
  }

 private:
  template <class Use>
  static void each(const toml::table& table, std::string_view key, const Use& use) {
    if (const toml::array* array = table[key].as_array()) {
      for (const toml::node& node : *array) use(*node.as_table());
    }
  }

  PaperCell cell_of(const toml::table& table, const toml::table& keys) const {
    const std::string cause = text_of(keys, "cause");
    PaperCell cell{.cell = {.table = text_of(table, "name"),
                            .name = text_of(keys, "name"),
                            .unit = keys["unit"].value_or(text_of(table, "unit")),
                            .source = keys["source"].value_or(text_of(table, "source")),
                            .published = keys["published"].value_or(0.0),
                            .is_fitted = keys["fitted"].value_or(false),
                            .uncounted = text_of(keys, "uncounted"),
                            .cause = file_["causes"][cause].value_or(std::string()),
                            .assumed = text_of(keys, "assumed")},
                   .is_out_of_memory = keys["published"].is_string(),
                   .beside = text_of(keys, "beside"),
                   .run = config_of({table["run"], keys["run"]})};
    cell.context = table["context"].value_or(std::int64_t{1});
    cell.updates = table["updates"].value_or(std::int64_t{0});
    cell.value = value_named(text_of(table, "value"));
    cell.number = keys["number"].value_or(std::int64_t{0});
    if (table.contains("base")) cell.base = config_of({table["base"]});
    const bool is_teratrons = keys["teratron"].value_or(true) && cell.context == 1;
    if (is_teratrons) cell.teratrons_run = config_of({table["run"], keys["run"], settings("teratron")});
    return cell;
  }

  PaperCurve curve_of(const toml::table& keys) const {
    PaperCurve curve{.curve = {.title = text_of(keys, "title"),
                               .x_axis = text_of(keys, "x_axis"),
                               .unit = text_of(keys, "unit"),
                               .published = text_of(keys, "published"),
                               .points = {}},
                     .tables = {}};
    for (const toml::node& table : *keys["of"].as_array()) curve.tables.push_back(table.value_or(std::string()));
    return curve;
  }

  using Settings = toml::node_view<const toml::node>;
  Settings settings(std::string_view name) const { return file_["settings"][name]; }

  // Adds settings; before them those that they are like. The last of equal keys counts.
  void add(Settings more, toml::table& all) const {
    if (!more.is_table()) return;
    if (const std::optional<std::string> like = more["like"].value<std::string>()) add(settings(*like), all);
    for (const auto& [key, value] : *more.as_table()) {
      if (key != "like") all.insert_or_assign(key, value);
    }
  }

  TrainConfig config_of(std::initializer_list<Settings> parts) const {
    toml::table all;
    add(settings("all"), all);
    for (const Settings& part : parts) add(part, all);
    std::ostringstream text;
    text << all;
    TrainConfig config;
    FieldList fields = fields_of(config);
    fields.add("rotary-share", &config.model.config.rotary_share, "X", "of a head's columns that turn with positions");
    FaultLines lines;
    apply_settings(fields, read_config(fields, text.str(), name_, lines), lines);
    throw_if_any(lines);
    config.model.config = config.model.model_for(0);
    return config;
  }

  const std::string name_;
  const toml::table file_;
};

}  // namespace

Paper read_paper(std::string_view name) { return PaperReader(name).read(); }

}  // namespace teratron::plan

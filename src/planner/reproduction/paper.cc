#include "reproduction/paper.h"

#include <map>
#include <sstream>

#include "options/reading.h"
#include "options/toml_parsing.h"
#include "reproduction/data_words.h"

namespace teratron::plan {
namespace {

std::string text_of(const toml::table& table, std::string_view key) { return table[key].value_or(std::string()); }

CellValue cell_value_of(const toml::table& table) {
  return value_of_word<CellValue>(table, "value",
                                  {{"", CellValue::kOfUnit},
                                   {"layer", CellValue::kLayer},
                                   {"whole", CellValue::kWhole},
                                   {"sliced", CellValue::kSliced},
                                   {"speed-up", CellValue::kSpeedUp},
                                   {"slices", CellValue::kSlices},
                                   {"even", CellValue::kEven},
                                   {"best even", CellValue::kBestEven}});
}

class PaperReader {
 public:
  explicit PaperReader(const EmbeddedFile& file) : name_(file.name), file_(parse_toml(file.text, name_)) {}

  Paper read() const {
    Paper paper{.title = text_of(file_, "title"),
                .cluster = text_of(file_, "cluster"),
                .counts_recompute = value_of_word<bool>(file_, "counts", {{"", false}, {"2104.04473", true}})};
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
    PaperCell cell{.cell = {.table = text_of(table, "name"),
                            .name = text_of(keys, "name"),
                            .unit = keys["unit"].value_or(text_of(table, "unit")),
                            .source = keys["source"].value_or(text_of(table, "source")),
                            .published = keys["published"].value_or(0.0),
                            .is_fitted = keys["fitted"].value_or(false),
                            .uncounted = text_of(keys, "uncounted"),
                            .cause = value_of_word(keys, "cause", causes_).value_or(std::string()),
                            .assumed = text_of(keys, "assumed")},
                   .is_out_of_memory = keys["published"].is_string() &&
                                       value_of_word<bool>(keys, "published", {{"out of memory", true}}),
                   .beside = text_of(keys, "beside"),
                   .run = config_of({table["run"], keys["run"]})};
    cell.context = table["context"].value_or(std::int64_t{1});
    cell.updates = table["updates"].value_or(std::int64_t{0});
    cell.value = cell_value_of(table);
    cell.number = keys["number"].value_or(std::int64_t{0});
    const bool is_teratrons = keys["teratron"].value_or(true) && cell.context == 1;
    if (is_teratrons) cell.teratrons_run = config_of({table["run"], keys["run"], file_["settings"]["teratron"]});
    if (table.contains("base")) {
      cell.base = config_of({table["base"]});
      cell.teratrons_base = config_of({table["base"], file_["settings"]["teratron"]});
    }
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
  // Settings in the table `key` of the file by their names; an empty name, for a key that is left out, has none.
  std::map<std::string_view, Settings> parts_of(std::string_view key) const {
    std::map<std::string_view, Settings> parts = {{"", Settings()}};
    if (const toml::table* table = file_[key].as_table()) {
      for (const auto& [name, part] : *table) parts.emplace(name.str(), part);
    }
    return parts;
  }

  // Adds settings; before them those that they are like. The last of equal keys counts.
  void add(Settings more, toml::table& all) const {
    if (!more.is_table()) return;
    add(value_of_word(*more.as_table(), "like", settings_), all);
    for (const auto& [key, value] : *more.as_table()) {
      if (key != "like") all.insert_or_assign(key, value);
    }
  }

  TrainConfig config_of(std::initializer_list<Settings> parts) const {
    toml::table all;
    add(file_["settings"]["all"], all);
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
  const std::map<std::string_view, Settings> settings_ = parts_of("settings"), causes_ = parts_of("causes");
};

}  // namespace

Paper read_paper(const EmbeddedFile& file) { return PaperReader(file).read(); }

Paper read_paper(std::string_view name) {
  return read_paper(EmbeddedFile{.name = name, .text = teratron::text_of(paper_files(), name)});
}

}  // namespace teratron::plan

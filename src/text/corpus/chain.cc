#include "corpus/chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

namespace teratron {
namespace {

// Calls `visit` for the settings of each stage.
template <class Settings, class Visit>
void each_of(Settings& settings, const Visit& visit) {
  std::apply([&](auto&... one) { (visit(one), ...); }, settings);
}

Faults name_faults(const std::vector<std::string>& names) {
  Faults faults;
  const std::vector<StageText> known = all_stages();
  for (auto name = names.begin(); name != names.end(); ++name) {
    const auto stage = std::ranges::find(known, *name, &StageText::name);
    if (stage == known.end()) {
      std::vector<std::string_view> all;
      for (const StageText& one : known) all.push_back(one.name);
      faults.add(Fault::of("there is no stage '{}'; there are: {}", *name, fmt::join(all, ", "), Flag{"then"}));
      continue;
    }
    const bool is_first = name == names.begin();
    faults.add_if(std::find(names.begin(), name, *name) != name, "{} is named twice, and a stage runs once", *name,
                  Flag{"then"});
    faults.add_if(!is_first && !stage->reads.empty(),
                  "{0} reads {1}, so it can only be the first stage: teratron data {0} FILE --then ...", *name,
                  stage->reads, Flag{"then"});
  }
  return faults;
}

}  // namespace

std::vector<StageText> all_stages() {
  std::vector<StageText> all;
  const StageSettings settings;
  each_of(settings, [&](const auto& stage) { all.push_back(stage.kText); });
  return all;
}

std::vector<std::string> StageChain::names() const {
  std::vector<std::string> names = {std::string(first_.name)};
  for (const std::string& word : then_) {
    for (const auto name : std::views::split(word, ',')) {
      if (!name.empty()) names.emplace_back(name.begin(), name.end());
    }
  }
  return names;
}

void StageChain::add_then_field(FieldList& list) {
  list.add("then", &then_, "STAGES", "further stages on what is left, one after another: langid,dedup");
}

void StageChain::add_stage_fields(FieldList& list) {
  each_of(settings_, [&](auto& stage) {
    const std::string group = fmt::format("Stage {}", stage.kText.name);
    list.group(group);
    stage.add_fields(list);
    for (Field& field : list) {
      if (field.group != group) continue;
      field.when_set = [this, flag = field.name, text = stage.kText] { given_.insert_or_assign(flag, text); };
    }
  });
}

Faults StageChain::faults() const {
  const std::vector<std::string> names = this->names();
  Faults faults = name_faults(names);
  for (const auto& [flag, stage] : given_) {
    if (std::ranges::find(names, stage.name) != names.end()) continue;
    faults.add(Fault::of("{} is of {}, which does not run; {}", Flag{flag}, stage.name,
                         stage.reads.empty() ? fmt::format("add --then {}", stage.name) : "leave it out"));
  }
  each_of(settings_, [&](const auto& stage) {
    if constexpr (requires { stage.faults(true); }) {
      faults.add(stage.faults(std::ranges::find(names, stage.kText.name) != names.end()));
    }
  });
  return faults;
}

std::vector<std::filesystem::path> StageChain::files_read() const {
  const std::vector<std::string> names = this->names();
  std::vector<std::filesystem::path> files;
  each_of(settings_, [&](const auto& stage) {
    if constexpr (requires { stage.files_read(); }) {
      if (std::ranges::find(names, stage.kText.name) == names.end()) return;
      const std::vector<std::filesystem::path> read = stage.files_read();
      files.insert(files.begin(), read.begin(), read.end());  // the last stage's first
    }
  });
  return files;
}

std::vector<std::unique_ptr<Stage>> StageChain::make(const StreamOptions& stream) const {
  std::vector<std::unique_ptr<Stage>> stages;
  for (const std::string& name : names()) {
    each_of(settings_, [&](const auto& stage) {
      if (stage.kText.name == name) stages.push_back(stage.make(stream));
    });
  }
  return stages;
}

}  // namespace teratron

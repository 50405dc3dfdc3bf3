// teratron report: an HTML page of one run, or of several side by side.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "html/page.h"
#include "html/run_report.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

struct RunReportOptions {
  std::vector<fs::path> runs;
  std::vector<std::string> evaluations;  // files
  fs::path output, json;
  Faults faults() const;
};

Faults RunReportOptions::faults() const {
  Faults faults;
  if (runs.size() > kMostRuns) faults.add("a page shows at most {} runs, not {}", kMostRuns, runs.size());
  add_output_faults(faults, "output", output, json);
  return faults;
}

FieldList fields_of(RunReportOptions& o) {
  FieldList list;
  list.add_positional(&o.runs, "DIR", "folder of --save of each run");
  list.add("evaluation", &o.evaluations, "FILE", "a result of eval, which --json wrote; may be given several times")
      .repeats = true;
  list.add("output", &o.output, "FILE", "the page, an HTML file").writes().alias = "out";
  add_json_field(list, o.json);
  return list;
}

RunReportOptions defaults() {
  RunReportOptions options;
  options.output = "report.html";
  return options;
}

void run(const RunReportOptions& options) {
  const std::vector<fs::path> read(options.evaluations.begin(), options.evaluations.end());
  const std::vector<fs::path> written = {options.output, options.json};
  require_separate(read, written);
  if (!is_standard_stream(options.output)) require_replaceable(options.output, "page of teratron", kPageBeginning);
  std::vector<RunRecord> runs;
  for (const fs::path& folder : options.runs) {
    RunRecord record = read_run(folder);
    const bool is_second = std::ranges::find(runs, record.folder, &RunRecord::folder) != runs.end();
    if (is_second) throw_user_error("'{}' is named twice", folder.string());
    runs.push_back(std::move(record));
  }
  name_apart(runs);
  std::vector<EvaluationResult> evaluations;
  for (const fs::path& file : read) evaluations.push_back(read_evaluation(file));
  const std::string page = run_report(runs, evaluations);
  nlohmann::ordered_json json = {{"runs", nlohmann::ordered_json::array()}, {"bytes", page.size()}};
  for (const RunRecord& record : runs) json["runs"].push_back(record.name);
  if (is_standard_stream(options.output)) {
    print_result(page);
  } else {
    write_file_atomically(options.output, page);
  }
  report_beside(options.output, options.json,
                fmt::format("{}: {}, {}\n", options.output.string(), counted(std::ssize(runs), "run"),
                            readable_bytes(page.size())),
                json);
}

}  // namespace

Command report_command() {
  return make_command<RunReportOptions>("report", "makes an HTML page of runs: curves, settings, layout, samples", run,
                                        defaults);
}

}  // namespace teratron

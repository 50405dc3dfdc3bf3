// teratron data clean, dedup and the like: a stream of documents through stages (corpus/chain.h).
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "base/host/standard_streams.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/text_format.h"
#include "cli/threads_field.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "corpus/chain.h"
#include "corpus/stream/stream_json.h"
#include "runtime/end_signals.h"

namespace teratron {
namespace {

struct StageCommandOptions {
  StreamOptions stream;
  StageChain chain;
  std::filesystem::path json;
  std::int64_t threads = 0;
  bool overwrite = false;

  Faults faults() const;
};

Faults StageCommandOptions::faults() const {
  const std::filesystem::path &out = stream.out, &dropped = stream.dropped;
  Faults faults = chain.faults();
  faults.add_if(!(stream.max_bad_share >= 0 && stream.max_bad_share <= 1), "{} is a share, from 0 to 1",
                Flag{"max-bad-share"});
  faults.add_if(is_standard_stream(dropped) && is_standard_stream(out),
                "{} and {} both go to standard output (-); name a file for one of them", Flag{"out"}, Flag{"dropped"});
  faults.add_if(!dropped.empty() && dropped == out, "{} and {} name one file, and are two", Flag{"out"},
                Flag{"dropped"});
  add_output_faults(faults, "--dropped", dropped, json);
  add_output_faults(faults, "the documents", out, json);
  return faults;
}

// The flags that the output depends on, without those of stages.
void add_reading_fields(FieldList& list, StageCommandOptions& o) {
  o.chain.add_then_field(list);
  list.add("max-bad-share", &o.stream.max_bad_share, "X", "fail if more of the documents cannot be read");
  add_text_format_fields(list, o.stream.format, o.stream.text_key);
}

FieldList fields_of(StageCommandOptions& o) {
  FieldList list;
  list.add_positional(&o.stream.files, "FILE",
                      "JSON lines and arrays have a document per object, Parquet one per row; plain text is one "
                      "document; all but Parquet may be compressed (gzip, zstd). A folder: all .jsonl, .parquet and "
                      ".txt files below, sorted. -: standard input. "
                      "extract reads WARC files, pages of HTML, and JSON lines or Parquet with HTML in them");
  list.add("out", &o.stream.out, "FILE",
           "the documents that are kept, a line of JSON each; compressed if the name ends in .zst; -: standard output")
      .writes()
      .required = true;
  add_reading_fields(list, o);
  list.add("dropped", &o.stream.dropped, "FILE",
           "the documents that are dropped, a line of JSON each, with the stage and the reason")
      .writes();
  add_overwrite_field(list, o.overwrite);
  add_threads_field(list, o.threads, "; the output is the same for any number");
  list.add("batch-bytes", &o.stream.batch_bytes, "N", "bytes of text in work at a time").between(1).role =
      FieldRole::kHiddenFlag;
  list.add("journal-seconds", &o.stream.journal_seconds, "X",
           "between two points from which a killed run can resume; 0: after each batch")
      .role = FieldRole::kHiddenFlag;
  add_json_field(list, o.json);
  o.chain.add_stage_fields(list);
  return list;
}

// The settings that must be unchanged for a run to resume, by flag.
std::map<std::string, std::string> settings_by_flag(StageCommandOptions options) {
  FieldList list;
  add_reading_fields(list, options);
  options.chain.add_stage_fields(list);
  std::map<std::string, std::string> values;
  for (const Field& field : list) values[field.display_name()] = field.value_text();
  return values;
}

std::string text_of(const StreamCounts& counts, const std::filesystem::path& out, double seconds) {
  const bool are_pieces = counts.kept > counts.documents;  // of documents that were cut
  std::string text =
      fmt::format("{}{} of {} kept in {}, {} of text from {}: {}\n", readable_integer(counts.kept),
                  are_pieces ? " pieces" : "", counted(counts.documents, "document"), readable_duration(seconds),
                  readable_bytes(static_cast<std::uint64_t>(counts.kept_bytes)),
                  readable_bytes(static_cast<std::uint64_t>(counts.text_bytes)), out.string());
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight});
  for (const StageCounts& stage : counts.stages) {
    if (stage.changed > 0) table.row({stage.name, "changed", readable_integer(stage.changed)});
    for (const auto& [reason, count] : stage.dropped) {
      table.row({stage.name, "dropped: " + reason, readable_integer(count)});
    }
  }
  text += table.text();
  if (counts.bad > 0) {
    text += fmt::format("{} left out, unreadable; the first: {}\n", counted(counts.bad, "document"), counts.first_bad);
  }
  return text;
}

void run(const StageCommandOptions& options) {
  use_threads(options.threads);
  require_free(std::array{options.stream.out, options.stream.dropped}, options.overwrite);
  const double start = monotonic_seconds();
  StreamOptions stream = options.stream;
  const std::vector<std::unique_ptr<Stage>> stages = options.chain.make(stream);
  std::atomic<double> share{0};
  std::optional<LongTask> progress;
  const auto show_progress = [&] {
    progress.emplace(std::string(options.chain.first().doing), [&] { return share.load(); });
  };
  show_progress();
  stream.progress = [&](double done) { share = done; };
  stream.settings = settings_by_flag(options);
  stream.also_read = options.chain.files_read();
  stream.report = [&](std::string_view line) {
    progress.reset();  // a terminal has one line for it
    report_to_user(line);
    show_progress();
  };
  EndSignals signals(/*says=*/false);
  if (can_resume(stages, stream)) {
    signals.listen();
    stream.end_signal = EndSignals::came;
  }
  const StreamCounts counts = run_stages(stages, stream);
  progress.reset();
  const double seconds = monotonic_seconds() - start;
  nlohmann::ordered_json json = json_of(counts, stages);
  json["seconds"] = seconds;
  json["peak_memory_bytes"] = peak_memory_bytes();
  report_beside(is_standard_stream(stream.dropped) ? stream.dropped : stream.out, options.json,
                text_of(counts, stream.out, seconds), json);
}

}  // namespace

std::vector<Command> data_stage_commands() {
  std::vector<Command> commands;
  for (const StageText& stage : all_stages()) {
    const auto options = [stage] { return StageCommandOptions{.stream = {}, .chain = StageChain(stage), .json = {}}; };
    commands.push_back(
        make_command<StageCommandOptions>(fmt::format("data {}", stage.name), stage.summary, run, options));
  }
  return commands;
}

}  // namespace teratron

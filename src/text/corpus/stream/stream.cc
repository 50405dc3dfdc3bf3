#include "corpus/stream/stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/output_lock.h"
#include "base/host/threads.h"
#include "corpus/stream/document_source.h"
#include "corpus/stream/drop_log.h"
#include "corpus/stream/journal.h"
#include "corpus/stream/line_writer.h"
#include "corpus/stream/survey.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

using Stages = std::vector<std::unique_ptr<Stage>>;

std::int64_t count_surveys(const Stages& stages) {
  return std::ranges::count_if(stages, [](const auto& stage) { return stage->needs_survey(); });
}

std::vector<std::filesystem::path> files_of(const Stages& stages, const StreamOptions& options) {
  return stages.empty() ? find_input_files(options.files) : stages.front()->find_files(options.files);
}

std::unique_ptr<DocumentSource> open_files(const Stages& stages, const StreamOptions& options,
                                           const InputPosition& from) {
  const std::vector<std::filesystem::path> files = files_of(stages, options);
  if (!stages.empty()) {
    auto own = stages.front()->open(files, options.format, options.batch_bytes, from);
    if (own != nullptr) return own;
  }
  return std::make_unique<FileSource>(files, options.format, options.text_key, options.batch_bytes, from);
}

void check_bad(const StreamCounts& counts, double max_bad_share) {
  const auto share = static_cast<double>(counts.bad) / static_cast<double>(std::max<std::int64_t>(1, counts.documents));
  if (share <= max_bad_share) return;
  throw_user_error(
      "{} of {} documents cannot be read, more than --max-bad-share {} allows; nothing was written. The "
      "first: {}",
      counts.bad, counts.documents, max_bad_share, counts.first_bad);
}

// Records that the first stage skipped: " (records: warcinfo: 1)".
std::string skipped_records(const Stages& stages) {
  std::string text;
  if (stages.empty()) return text;
  for (const Stage::Fact& fact : stages.front()->facts()) {
    const auto* count = std::get_if<std::int64_t>(&fact.value);
    if (fact.name.starts_with("records: ") && count != nullptr && *count > 0) {
      text += fmt::format("{}{}: {}", text.empty() ? " (" : ", ", fact.name, *count);
    }
  }
  return text.empty() ? text : text + ")";
}

// Called after the first pass: before that, the number of documents and their bad share are not known.
void check_read(const StreamCounts& counts, const Stages& stages, const StreamOptions& options) {
  if (counts.documents == 0) {
    throw_user_error("there are no documents in {}{}{}; nothing was written", name_of_input(options.files[0]),
                     options.files.size() > 1 ? fmt::format(" and {} more", options.files.size() - 1) : "",
                     skipped_records(stages));
  }
  check_bad(counts, options.max_bad_share);
}

void count_read(const DocumentSource::Batch& batch, StreamCounts& counts, DropLog& drops) {
  counts.documents += std::ssize(batch.documents) + std::ssize(batch.bad);
  for (const Document& document : batch.documents) counts.text_bytes += std::ssize(document.text);
  for (const BadDocument& bad : batch.bad) {
    if (counts.bad++ == 0) counts.first_bad = bad.fault;
    drops.add("read", {.reason = "bad", .detail = bad.fault}, *bad.file, bad.line, {});
  }
}

// Documents that the stage keeps. All threads work on process(); admit() and the drops are in the documents' order.
std::vector<Document> apply(Stage& stage, std::vector<Document> documents, const std::string& text_key,
                            StageCounts& counts, DropLog& drops) {
  constexpr std::int64_t kDocumentsPerTask = 4;
  counts.documents_in += std::ssize(documents);
  std::vector<StageOutput> outputs(documents.size());
  std::vector<std::string> lines(drops.is_written() ? documents.size() : 0);
  parallel_for(std::ssize(documents), kDocumentsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      if (!lines.empty()) lines[i] = json_line_of(documents[i], text_key);
      outputs[i] = stage.process(std::move(documents[i]));  // its file and line stay
      for (Document& one : outputs[i].documents) {
        if (one.changed) one.record = json_line_of(one, text_key);
      }
    }
  });
  std::vector<Document> kept;
  kept.reserve(documents.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto drop_one = [&](const Drop& drop) {
      ++counts.dropped[drop.reason];
      drops.add(stage.name(), drop, *documents[i].file, documents[i].line, lines.empty() ? "" : lines[i]);
    };
    if (outputs[i].drop) drop_one(*outputs[i].drop);
    for (Document& document : outputs[i].documents) {
      if (const std::optional<Drop> drop = stage.admit(document)) {
        drop_one(*drop);
        continue;
      }
      counts.changed += document.changed ? 1 : 0;
      document.changed = false;
      kept.push_back(std::move(document));
    }
  }
  counts.documents_out += std::ssize(kept);
  return kept;
}

// Stages [first, end), and where their documents go: the survey of stage `end`, or the output if that is null.
struct Pass {
  std::size_t first = 0, end = 0;
  std::unique_ptr<Survey> survey;
};

// The first pass reads the files and can go on from a point of the journal. Each later one reads the spool of the
// survey before it, is written to no journal, and is done again by a run that resumes.
class StreamRun {
 public:
  StreamRun(const Stages& stages, const StreamOptions& options, Journal& journal)
      : stages_(stages),
        options_(options),
        journal_(journal),
        now_(journal.begin(options.report)),
        writer_(options.out, now_.out),
        drops_(options.dropped, now_.dropped) {
    now_.counts.stages.resize(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i) now_.counts.stages[i].name = stages[i]->name();
    keep_partial(now_.counts.documents > 0);
  }

  StreamCounts run() {
    try {
      for (Pass pass = read_files(); pass.survey;) pass = read_spool(pass);
    } catch (const UserError&) {  // a resumed run would fail again
      journal_.remove();
      keep_partial(false);
      throw;
    }
    writer_.finish();
    drops_.commit();
    writer_.commit();
    journal_.remove();
    return std::move(now_.counts);
  }

 private:
  Pass read_files() {
    files_ = open_files(stages_, options_, now_.position);
    Pass pass = begin_pass(0, /*is_surveyed=*/false);
    journal_.load_state(now_, [&](std::size_t stage, std::string_view delta) {
      if (stage == pass.end && pass.survey) return pass.survey->restore_state(delta);
      stages_.at(stage)->restore_state(delta);
    });
    for (DocumentSource::Batch batch; files_->next(batch);) {
      count_read(batch, now_.counts, drops_);
      run_batch(pass, std::move(batch.documents));
      now_.position = batch.end;
      save_state_deltas(pass);
      const int signal = end_signal();
      if (signal != 0 || journal_.is_due(now_)) write_point(pass);
      if (signal != 0) end_by(signal);
      options_.progress(share_done(*files_));
    }
    check_read(now_.counts, stages_, options_);
    if (pass.survey && journal_.has_news(now_)) write_point(pass);
    return pass;
  }

  Pass read_spool(const Pass& before) {
    ++passes_done_;
    SpoolSource spool(before.survey->settle(), options_.batch_bytes);
    Pass pass = begin_pass(before.end, /*is_surveyed=*/true);
    for (DocumentSource::Batch batch; spool.next(batch);) {
      run_batch(pass, std::move(batch.documents));
      if (const int signal = end_signal(); signal != 0) end_by(signal);
      options_.progress(share_done(spool));
    }
    return pass;
  }

  // `is_surveyed`: stage `first` was, by the pass before. The first pass's spool is kept for resuming; the others are
  // made from it.
  Pass begin_pass(std::size_t first, bool is_surveyed) const {
    Pass pass{.first = first, .end = first + (is_surveyed ? 1 : 0)};
    while (pass.end < stages_.size() && !stages_[pass.end]->needs_survey()) ++pass.end;
    if (pass.end == stages_.size()) return pass;
    const Spool::Contents contents{.text_key = options_.text_key, .files = files_->files()};
    auto spool = journal_.has_files() && !is_surveyed
                     ? std::make_unique<Spool>(journal_.spool_path(), now_.spool, contents)
                     : std::make_unique<Spool>(folder_for_temporaries(options_.out), contents);
    pass.survey = std::make_unique<Survey>(*stages_[pass.end], std::move(spool));
    return pass;
  }

  void run_batch(const Pass& pass, std::vector<Document> documents) {
    for (std::size_t i = pass.first; i < pass.end; ++i) {
      documents = apply(*stages_[i], std::move(documents), options_.text_key, now_.counts.stages[i], drops_);
    }
    pass.survey ? pass.survey->add(documents) : write(documents);
    drops_.end_batch();
  }

  void write(const std::vector<Document>& documents) {
    for (const Document& document : documents) {
      writer_.write(json_line_of(document, options_.text_key));
      now_.counts.kept_bytes += std::ssize(document.text);
    }
    now_.counts.kept += std::ssize(documents);
  }

  // State goes to the disk after each batch: kept until the next point, it would grow with the run's speed.
  void save_state_deltas(const Pass& pass) {
    for (std::size_t i = 0; i < pass.end; ++i) journal_.add_state(i, stages_[i]->take_state_delta());
    if (pass.survey) journal_.add_state(pass.end, pass.survey->take_state_delta());
  }

  void write_point(const Pass& pass) {
    now_.out = writer_.point();
    now_.dropped = drops_.point();
    if (pass.survey) now_.spool = pass.survey->keep();
    journal_.write(now_);
    keep_partial(true);
  }

  int end_signal() const { return journal_.has_files() ? options_.end_signal() : 0; }

  [[noreturn]] void end_by(int signal) const {
    options_.report(
        fmt::format("stopped after document {}; run the same command again to resume", now_.counts.documents));
    throw EndedBySignal(signal);
  }

  double share_done(const DocumentSource& source) const {
    return (static_cast<double>(passes_done_) + source.share()) / static_cast<double>(1 + count_surveys(stages_));
  }

  void keep_partial(bool keeps) {
    writer_.keep_partial(keeps);
    drops_.keep_partial(keeps);
  }

  const Stages& stages_;
  const StreamOptions& options_;
  Journal& journal_;
  JournalPoint now_;  // the run's state; lengths of files as of the last point
  LineWriter writer_;
  DropLog drops_;
  std::unique_ptr<DocumentSource> files_;  // whose paths all documents point to
  std::int64_t passes_done_ = 0;
};

}  // namespace

bool can_resume(const Stages& stages, const StreamOptions& options) {
  if (AtomicFile::partial_of(options.out).empty()) return false;
  if (!options.dropped.empty() && AtomicFile::partial_of(options.dropped).empty()) return false;
  return std::ranges::all_of(files_of(stages, options), [](const std::filesystem::path& file) {
    std::error_code none;
    return !is_standard_stream(file) && std::filesystem::is_regular_file(file, none);
  });
}

StreamCounts run_stages(const Stages& stages, const StreamOptions& options) {
  check(options.batch_bytes > 0, "run_stages: batch_bytes");
  std::vector<OutputLock> locks;
  for (const std::filesystem::path& written : {options.out, options.dropped}) {
    if (!written.empty()) locks.emplace_back(written);
  }
  const bool resumes = can_resume(stages, options);
  if (!resumes && !is_standard_stream(options.out)) Journal::remove(options.out);
  Journal journal = resumes ? Journal(options, stages, files_of(stages, options)) : Journal();
  return StreamRun(stages, options, journal).run();
}

}  // namespace teratron

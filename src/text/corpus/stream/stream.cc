#include "corpus/stream/stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/output_lock.h"
#include "base/host/monotonic_clock.h"
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

// After the first pass.
void check_read(const StreamCounts& counts, const Stages& stages, const StreamOptions& options) {
  if (counts.documents == 0) {
    throw_user_error("there are no documents in {}{}{}; nothing was written", name_of_input(options.files[0]),
                     options.files.size() > 1 ? fmt::format(" and {} more", options.files.size() - 1) : "",
                     skipped_records(stages));
  }
  check_bad(counts, options.max_bad_share);
}

class StreamRun {
 public:
  // `from`: the last point of the journal.
  StreamRun(const Stages& stages, const StreamOptions& options, Journal& journal, const JournalPoint& from)
      : stages_(stages),
        options_(options),
        journal_(journal),
        from_(from),
        read_to_(from.position),
        writer_(options.out, from.out),
        drops_(options.dropped, from.dropped),
        counts_(from.counts),
        documents_at_point_(from.counts.documents) {
    counts_.stages.resize(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i) counts_.stages[i].name = stages[i]->name();
    passes_ += count_surveys(stages);
    keep_partial(counts_.documents > 0);
  }

  StreamCounts run() {
    try {
      run_passes();
    } catch (const UserError&) {  // a resumed run would fail again
      journal_.remove();
      keep_partial(false);
      throw;
    }
    writer_.finish();
    drops_.commit();
    writer_.commit();
    journal_.remove();
    return std::move(counts_);
  }

 private:
  void run_passes() {
    const std::unique_ptr<DocumentSource> files = open_files();
    DocumentSource* source = files.get();
    std::unique_ptr<DocumentSource> spool_source;
    std::unique_ptr<Survey> read;  // whose spool the source reads
    for (std::size_t first = 0; pass_ < passes_; ++pass_) {
      const bool surveys_first = pass_ > 0;  // the first stage of this pass was surveyed in the last one
      std::size_t end = first + (surveys_first ? 1 : 0);
      while (end < stages_.size() && !stages_[end]->needs_survey()) ++end;
      if (pass_ + 1 < passes_) survey_ = begin_survey(*stages_[end], files->files());
      if (pass_ == 0) recall(end);
      run_pass(*source, first, end);
      if (survey_) {
        const Spool& spool = survey_->settle();
        spool_source = std::make_unique<SpoolSource>(spool, options_.batch_bytes);
        source = spool_source.get();
        read = std::move(survey_);
      }
      first = end;
    }
  }

  std::unique_ptr<DocumentSource> open_files() const {
    const std::vector<std::filesystem::path> files = files_of(stages_, options_);
    if (!stages_.empty()) {
      auto own = stages_.front()->open(files, options_.format, options_.batch_bytes, from_.position);
      if (own != nullptr) return own;
    }
    return std::make_unique<FileSource>(files, options_.format, options_.text_key, options_.batch_bytes,
                                        from_.position);
  }

  // Only the first pass's spool is kept for resuming: the others are made from it.
  std::unique_ptr<Survey> begin_survey(Stage& stage, std::span<const std::filesystem::path> files) const {
    const Spool::Contents contents{.text_key = options_.text_key, .files = files};
    return std::make_unique<Survey>(stage,
                                    journal_.has_files() && pass_ == 0
                                        ? std::make_unique<Spool>(journal_.spool_path(), from_.spool_bytes, contents)
                                        : std::make_unique<Spool>(folder_for_temporaries(options_.out), contents));
  }

  // Restores the state of the first pass's stages, of which the surveyed one is the last.
  void recall(std::size_t surveyed) {
    journal_.load_state(from_, [&](std::size_t stage, std::string_view delta) {
      if (stage == surveyed && survey_) return survey_->restore_state(delta);
      stages_.at(stage)->restore_state(delta);
    });
  }

  void run_pass(DocumentSource& source, std::size_t first, std::size_t end) {
    for (DocumentSource::Batch batch; source.next(batch);) {
      if (pass_ == 0) count_read(batch);
      for (std::size_t stage = first; stage < end; ++stage) {
        batch.documents = apply(*stages_[stage], std::move(batch.documents), counts_.stages[stage]);
      }
      survey_ ? survey_->add(batch.documents) : write(batch.documents);
      drops_.end_batch();
      if (pass_ == 0) {
        read_to_ = batch.end;
        save_state_deltas(end);
      }
      end_batch();
      if (options_.progress)
        options_.progress((static_cast<double>(pass_) + source.share()) / static_cast<double>(passes_));
    }
    if (pass_ > 0) return;
    check_read(counts_, stages_, options_);
    if (journal_.has_files() && survey_ && has_news()) write_point();
  }

  // After a batch: writes a point of the journal if it is time (first pass only), and stops if a signal asks for it.
  void end_batch() {
    if (!journal_.has_files()) return;
    const int signal = options_.end_signal ? options_.end_signal() : 0;
    const bool is_due = has_news() && monotonic_seconds() - point_at_ >= options_.journal_seconds;
    if (pass_ == 0 && (signal != 0 || is_due)) write_point();
    if (signal == 0) return;
    report(fmt::format("stopped after document {}; run the same command again to resume", counts_.documents));
    throw EndedBySignal(signal);
  }

  // State goes to the disk after each batch: kept until the next point, it would grow with the run's speed.
  void save_state_deltas(std::size_t end) {
    for (std::size_t i = 0; i < end; ++i) journal_.add_state(i, stages_[i]->take_state_delta());
    if (survey_) journal_.add_state(end, survey_->take_state_delta());
  }

  bool has_news() const { return counts_.documents > documents_at_point_; }  // false while a resumed run skips

  void write_point() {
    JournalPoint point{.position = read_to_, .counts = counts_, .out = writer_.point(), .dropped = drops_.point()};
    if (survey_) point.spool_bytes = survey_->keep();
    journal_.write(std::move(point));
    keep_partial(true);
    point_at_ = monotonic_seconds();
    documents_at_point_ = counts_.documents;
  }

  void keep_partial(bool keeps) {
    writer_.keep_partial(keeps);
    drops_.keep_partial(keeps);
  }

  void report(std::string_view line) const {
    if (options_.report) options_.report(line);
  }

  void count_read(const DocumentSource::Batch& batch) {
    counts_.documents += std::ssize(batch.documents) + std::ssize(batch.bad);
    for (const Document& document : batch.documents) counts_.text_bytes += std::ssize(document.text);
    for (const BadDocument& bad : batch.bad) {
      if (counts_.bad++ == 0) counts_.first_bad = bad.fault;
      drops_.add("read", {.reason = "bad", .detail = bad.fault}, *bad.file, bad.line, {});
    }
    constexpr std::int64_t kEnoughToJudge = 100'000;
    if (counts_.documents >= kEnoughToJudge) check_bad(counts_, options_.max_bad_share);
  }

  std::vector<Document> apply(Stage& stage, std::vector<Document> documents, StageCounts& counts) {
    counts.documents_in += std::ssize(documents);
    std::vector<StageOutput> outputs(documents.size());
    std::vector<std::string> lines(options_.dropped.empty() ? 0 : documents.size());
    parallel_for(std::ssize(documents), kDocumentsPerTask, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        if (!lines.empty()) lines[i] = json_line_of(documents[i], options_.text_key);
        outputs[i] = stage.process(std::move(documents[i]));  // its file and line stay
        for (Document& one : outputs[i].documents) {
          if (one.changed) one.record = json_line_of(one, options_.text_key);
        }
      }
    });
    std::vector<Document> kept;
    kept.reserve(documents.size());
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const auto drop_one = [&](const Drop& drop) {
        ++counts.dropped[drop.reason];
        drops_.add(stage.name(), drop, *documents[i].file, documents[i].line, lines.empty() ? "" : lines[i]);
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

  void write(const std::vector<Document>& documents) {
    for (const Document& document : documents) {
      writer_.write(json_line_of(document, options_.text_key));
      counts_.kept_bytes += std::ssize(document.text);
    }
    counts_.kept += std::ssize(documents);
  }

  static constexpr std::int64_t kDocumentsPerTask = 4;
  const Stages& stages_;
  const StreamOptions& options_;
  Journal& journal_;
  const JournalPoint& from_;
  InputPosition read_to_;
  LineWriter writer_;
  DropLog drops_;
  StreamCounts counts_;
  double point_at_ = monotonic_seconds();  // the last point of the journal
  std::int64_t documents_at_point_;
  std::unique_ptr<Survey> survey_;  // of this pass
  std::int64_t pass_ = 0, passes_ = 1;
};

// The point to resume from, which is reported.
JournalPoint starting_point(Journal& journal, const StreamOptions& options) {
  const auto report = [&](const std::string& line) {
    if (options.report) options.report(line);
  };
  std::string why_not;
  std::optional<JournalPoint> point = journal.load(why_not);
  if (!point) {
    if (!why_not.empty()) report(fmt::format("starts over instead of resuming an earlier run: {}", why_not));
    journal.remove();
    return {};
  }
  report(fmt::format("resumes after document {} ('{}')", point->counts.documents, journal.path().string()));
  return *point;
}

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
  const JournalPoint from = starting_point(journal, options);
  return StreamRun(stages, options, journal, from).run();
}

}  // namespace teratron

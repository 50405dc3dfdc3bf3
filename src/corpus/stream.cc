#include "corpus/stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/threads.h"
#include "corpus/document_source.h"
#include "corpus/line_writer.h"

namespace teratron {
namespace {

using Stages = std::vector<std::unique_ptr<Stage>>;

// Documents that are not kept, a line each.
class DropLog {
 public:
  explicit DropLog(const std::filesystem::path& path) {
    if (!path.empty()) writer_ = std::make_unique<LineWriter>(path);
  }
  void add(std::string_view stage, const Drop& drop, const std::filesystem::path& file, std::int64_t line,
           std::string_view document) {
    if (!writer_) return;
    nlohmann::ordered_json why = {
        {"stage", stage}, {"reason", drop.reason}, {"detail", drop.detail}, {"file", file.string()}, {"line", line}};
    std::string text = why.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (!document.empty()) {
      text.pop_back();
      text += fmt::format(",\"document\":{}}}", document);
    }
    writer_->write(text);
  }
  void commit() {
    if (writer_) writer_->commit();
  }

 private:
  std::unique_ptr<LineWriter> writer_;
};

class StreamRun {
 public:
  StreamRun(const Stages& stages, const StreamOptions& options)
      : stages_(stages), options_(options), writer_(options.out), drops_(options.dropped) {
    for (const auto& stage : stages) counts_.stages.push_back({.name = std::string(stage->name())});
    passes_ += std::ranges::count_if(stages, [](const auto& stage) { return stage->needs_survey(); });
  }

  StreamCounts run() {
    // Has the files' names, which documents point to.
    std::unique_ptr<DocumentSource> files;
    if (!stages_.empty()) files = stages_.front()->open(options_.files, options_.format, options_.batch_bytes);
    if (!files) {
      files = std::make_unique<FileSource>(options_.files, options_.format, options_.text_key, options_.batch_bytes);
    }
    DocumentSource* source = files.get();
    std::unique_ptr<DocumentSource> spool_source;
    std::unique_ptr<Spool> spool;
    for (std::size_t first = 0; pass_ < passes_; ++pass_) {
      const bool surveys_first = pass_ > 0;  // the first stage of this pass has its survey behind it
      std::size_t end = first + (surveys_first ? 1 : 0);
      while (end < stages_.size() && !stages_[end]->needs_survey()) ++end;
      if (pass_ + 1 == passes_) {
        run_pass(*source, first, end, [&](std::vector<Document>& documents) { write(documents); });
      } else {
        auto next = std::make_unique<Spool>(folder_for_temporaries(options_.out), options_.text_key);
        run_pass(*source, first, end,
                 [&](std::vector<Document>& documents) { survey(*stages_[end], documents, *next); });
        next->end_writing();
        stages_[end]->settle(*next);
        spool_source = std::make_unique<SpoolSource>(*next, options_.batch_bytes);
        source = spool_source.get();
        spool = std::move(next);
      }
      first = end;
    }
    writer_.commit();
    drops_.commit();
    return std::move(counts_);
  }

 private:
  template <class Sink>
  void run_pass(DocumentSource& source, std::size_t first, std::size_t end, const Sink& sink) {
    for (DocumentSource::Batch batch; source.next(batch);) {
      if (pass_ == 0) count_read(batch);
      for (std::size_t stage = first; stage < end; ++stage) {
        batch.documents = apply(*stages_[stage], std::move(batch.documents), counts_.stages[stage]);
      }
      sink(batch.documents);
      if (options_.progress)
        options_.progress((static_cast<double>(pass_) + source.share()) / static_cast<double>(passes_));
    }
    if (pass_ == 0) check_read();
  }

  void count_read(const DocumentSource::Batch& batch) {
    counts_.documents += std::ssize(batch.documents) + std::ssize(batch.bad);
    for (const Document& document : batch.documents) counts_.text_bytes += std::ssize(document.text);
    for (const BadDocument& bad : batch.bad) {
      if (counts_.bad++ == 0) counts_.first_bad = bad.fault;
      drops_.add("read", {.reason = "bad", .detail = bad.fault}, *bad.file, bad.line, {});
    }
    constexpr std::int64_t kEnoughToTell = 100'000;
    if (counts_.documents >= kEnoughToTell) check_bad();
  }

  void check_bad() const {
    const auto share =
        static_cast<double>(counts_.bad) / static_cast<double>(std::max<std::int64_t>(1, counts_.documents));
    if (share <= options_.max_bad_share) return;
    throw_user_error(
        "{} of {} documents cannot be read, more than --max-bad-share {} allows; nothing was written. The "
        "first: {}",
        counts_.bad, counts_.documents, options_.max_bad_share, counts_.first_bad);
  }

  void check_read() const {
    if (counts_.documents == 0) {
      throw_user_error("there are no documents in {}{}; nothing was written", name_of_input(options_.files[0]),
                       options_.files.size() > 1 ? fmt::format(" and {} more", options_.files.size() - 1) : "");
    }
    check_bad();
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

  void survey(Stage& stage, const std::vector<Document>& documents, Spool& spool) {
    std::vector<std::vector<std::uint64_t>> measures(documents.size());
    parallel_for(std::ssize(documents), kDocumentsPerTask, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) {
        const auto i = static_cast<std::size_t>(begin);
        measures[i] = stage.measure(documents[i]);
      }
    });
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const std::int64_t number = spool.add(documents[i]);
      stage.note(number, std::move(measures[i]));
    }
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
  LineWriter writer_;
  DropLog drops_;
  StreamCounts counts_;
  std::int64_t pass_ = 0, passes_ = 1;
};

}  // namespace

StreamCounts run_stages(const Stages& stages, const StreamOptions& options) {
  check(options.batch_bytes > 0, "run_stages: batch_bytes");
  return StreamRun(stages, options).run();
}

}  // namespace teratron

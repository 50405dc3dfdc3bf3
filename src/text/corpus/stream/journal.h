// The last point of a stream that is safe on the disk; the same command, run again after a kill, resumes there. Points
// lie within input files, since one large file is the usual input. Files beside OUT:
//   OUT.partial                the output so far
//   OUT.journal                a line of JSON (position in the input, lengths of the other files, counts, checksums of
//                              state and spool), then the lines that wait for their zstd frame
//   OUT.journal-state.partial  the stages' state: URLs of `clean`, measures of a survey
//   OUT.spool.partial          the documents of the first survey
// All of them stay after a kill or a full disk, none after success or bad input.
//
// A run that resumes skips finished files and row groups unread, reads and skips the finished lines of the current
// file, and does the passes after the first survey again. A run starts over, with the reason, if a flag, the program's
// version, or the size or time of a file that is read has changed; and without a message where standard streams or
// pipes are read or written. A damaged spool or state is an error, after which the same command starts over.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/checksum.h"
#include "base/files/file.h"
#include "corpus/stream/line_writer.h"
#include "corpus/stream/stream.h"

namespace teratron {

// All that a run needs to resume after a document.
struct JournalPoint {
  InputPosition position;
  StreamCounts counts;
  LinePoint out, dropped;
  SpoolPoint spool;  // of the first survey
  std::uint64_t state_bytes = 0;
  std::string state_checksum = {};  // of so many bytes; empty: of none
};

class Journal {
 public:
  // The journal of a run that cannot resume: it has no files.
  Journal() = default;
  // The journal of a run over `files` as they are now. Reads and writes nothing yet.
  Journal(const StreamOptions& options, const std::vector<std::unique_ptr<Stage>>& stages,
          const std::vector<std::filesystem::path>& files);

  bool has_files() const { return !path_.empty(); }
  const std::filesystem::path& spool_path() const { return spool_path_; }
  // The last point that a run with the same settings and files wrote, if the files it refers to are there. Otherwise
  // the beginning, for which files of an earlier run are removed. `report` is called with a line that says so.
  JournalPoint begin(const std::function<void(std::string_view)>& report);

  // Calls `take` with each delta added before the point, in order. Later deltas are appended. UserError: they are
  // damaged.
  void load_state(const JournalPoint& point,
                  const std::function<void(std::size_t stage, std::string_view delta)>& take);
  void add_state(std::size_t stage, std::string_view delta);  // belongs to the next point
  // Whether documents were read since the last point.
  bool has_news(const JournalPoint& now) const { return has_files() && now.counts.documents > documents_; }
  // Whether `now` is to be written: there is news, and journal_seconds have passed.
  bool is_due(const JournalPoint& now) const;
  // Called when output, dropped documents and the spool are on the disk. EnvironmentError, here and in add_state: as
  // AtomicFile.
  void write(JournalPoint point);

  void remove();
  // Removes the files that an earlier run at `out` left, for a run without a journal.
  static void remove(const std::filesystem::path& out);

 private:
  // `why_not`: [out] what differs; empty if there is no journal.
  std::optional<JournalPoint> load(std::string& why_not) const;

  std::filesystem::path path_, state_path_, spool_path_, out_, dropped_;
  std::string run_;  // all that the output depends on, as JSON
  std::optional<AtomicFile> state_;
  Checksum state_sum_;                   // of the deltas so far
  double seconds_ = 0, written_at_ = 0;  // between two points; when the last one was written
  std::int64_t documents_ = 0;           // read before it
};

}  // namespace teratron

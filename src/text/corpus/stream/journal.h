// Where a stream of documents was when it was last safe on the disk, so that the same command, begun again after a
// kill, goes on from there. Beside OUT lie then: OUT.partial, the output so far; OUT.journal, a line of JSON, followed
// by the lines that wait for their zstd frame; OUT.journal-state.partial, what stages remember; OUT.spool.partial, the
// documents of a survey that is under way or done.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file.h"
#include "corpus/stream/line_writer.h"
#include "corpus/stream/stream.h"

namespace teratron {

// All that a run needs to go on behind a document.
struct JournalPoint {
  InputPosition position;
  StreamCounts counts;
  LinePoint out, dropped;
  std::uint64_t spool_bytes = 0;  // of the first survey's
  std::uint64_t state_bytes = 0;
};

class Journal {
 public:
  // Of a run over `files`, as they lie there now. Nothing is read or written yet.
  Journal(const StreamOptions& options, const std::vector<std::unique_ptr<Stage>>& stages,
          const std::vector<std::filesystem::path>& files);

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& spool_path() const { return spool_path_; }
  // The last point that a run of the same settings over the same files has written, if what it speaks of is there.
  // Else `why_not` says what is different, or is empty where there is no journal.
  std::optional<JournalPoint> load(std::string& why_not) const;

  // Gives what was added up to a point, in its order. Later news are written behind it.
  void load_state(const JournalPoint& point, const std::function<void(std::size_t stage, std::string_view news)>& take);
  void add_state(std::size_t stage, std::string_view news);  // of what belongs to the next point
  // Output, dropped documents and the spool are on the disk by then. EnvironmentError, here and in add_state: as
  // AtomicFile.
  void write(JournalPoint point);

  void remove();
  // What an earlier run at `out` has left, where this one has no journal.
  static void remove(const std::filesystem::path& out);

 private:
  std::filesystem::path path_, state_path_, spool_path_, out_, dropped_;
  std::string run_;  // what the output depends on, as JSON
  std::optional<AtomicFile> state_;
};

}  // namespace teratron

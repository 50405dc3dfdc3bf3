// Files through stages to one file, as all corpus commands work.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "corpus/stream/stage.h"

namespace teratron {

struct StreamOptions {
  std::vector<std::filesystem::path> files;  // as find_input_files takes them
  std::filesystem::path out;                 // lines of JSON (line_writer.h)
  std::filesystem::path dropped;             // a line of JSON for each dropped document, with the reason; empty: none
  TextFormat format = TextFormat::kAuto;
  std::string text_key = "text";
  double max_bad_share = 0.001;  // of all documents: more that cannot be read fail the run, when the last one is read
  std::int64_t batch_bytes = std::int64_t{8} << 20;
  std::function<void(double share)> progress = [](double) {};  // called after each batch

  // The journal (journal.h). A run resumes only if `settings` (those of the stages, by name) and `also_read` (the files
  // that stages read) are unchanged.
  std::map<std::string, std::string> settings;
  std::vector<std::filesystem::path> also_read;
  double journal_seconds = 5;  // between two points; 0: one after each batch
  // Called with a line that says whether the run resumes.
  std::function<void(std::string_view)> report = [](std::string_view) {};
  std::function<int()> end_signal = [] { return 0; };  // a signal that asks for the end, else 0; asked after each batch
};

struct StageCounts {
  std::string name;
  std::int64_t documents_in = 0, documents_out = 0;
  std::int64_t changed = 0;                     // documents out whose text the stage changed
  std::map<std::string, std::int64_t> dropped;  // by reason
};

struct StreamCounts {
  std::int64_t documents = 0, kept = 0, bad = 0;  // read (with the bad ones), written, and those that cannot be read
  std::int64_t text_bytes = 0, kept_bytes = 0;    // of the texts read and written
  std::string first_bad;                          // what is wrong with the first one
  std::vector<StageCounts> stages;
};

// Whether a killed run can be resumed: all that it reads and writes are regular files. It resumes within the first
// pass; passes after the first survey are done again.
bool can_resume(const std::vector<std::unique_ptr<Stage>>& stages, const StreamOptions& options);

// Reads documents, passes them through `stages` one after another and writes what is left, in the order of the input.
// All threads work on a batch while the next one is read.
//  - Output and dropped documents (pass by pass, in input order) are a function of the input and the stages. Threads,
//    batch_bytes and resuming change no byte. Where can_resume(), the same call resumes a run that was killed or ended
//    by a signal (EndedBySignal).
//  - The output gets its name when it is whole.
//  - Memory: a few times batch_bytes or the longest document, the stages' state, and 8 bytes a document and survey. A
//    spool lies beside `out`, or in the system's temporary folder if `out` is standard output.
// UserError: as DocumentReader; no document at all; too many bad ones; another process writes to `out` or `dropped`.
// EnvironmentError: something cannot be written.
StreamCounts run_stages(const std::vector<std::unique_ptr<Stage>>& stages, const StreamOptions& options);

}  // namespace teratron

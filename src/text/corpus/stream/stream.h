// Files through stages to one file: the way of all corpus commands.
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
  double max_bad_share = 0.001;  // of the documents read: more that cannot be read fail the whole
  std::int64_t batch_bytes = std::int64_t{8} << 20;
  std::function<void(double share)> progress;  // called after each batch, where given

  // Of the journal (journal.h). `settings`, by name, are those of the stages, and `also_read` the files that they read:
  // a run goes on only where all of them are what they were.
  std::map<std::string, std::string> settings;
  std::vector<std::filesystem::path> also_read;
  double journal_seconds = 5;                  // between two points; 0: one after each batch
  std::function<void(std::string_view)> tell;  // told whether the run goes on, in a line; where given
  std::function<int()> end_signal;             // a signal that asks for the end, else 0; asked after each batch
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

// Whether a run that is killed is gone on with by the next one: the output and the dropped documents are files, and so
// is all that is read. It goes on where the first pass was: what follows the first survey is done again.
bool can_go_on(const std::vector<std::unique_ptr<Stage>>& stages, const StreamOptions& options);

// Reads documents, passes them through `stages` one after another and writes what is left, in the order of the input.
// All threads work on a batch while the next one is read. The output is a function of the input and the stages, and
// so is the file of dropped documents (pass by pass, in the order of the input), whatever the number of threads and
// batch_bytes, and whether it was made in one run or in several: where it can_go_on(), a run that was killed or
// ended by a signal (EndedBySignal) goes on. It appears when it is whole; a run that ends before leaves nothing that
// could be taken for it. Memory: some times batch_bytes or the longest document, what stages keep, and 8 bytes a
// document for each survey; its spool lies beside `out` (in the system's temporary folder where that is standard
// output). UserError: as DocumentReader; no document at all; too many bad ones; another process writes to `out` or
// `dropped`. EnvironmentError: something cannot be written.
StreamCounts run_stages(const std::vector<std::unique_ptr<Stage>>& stages, const StreamOptions& options);

}  // namespace teratron

// teratron checkpoint reshard: a copy of a checkpoint in files of another size.
#include "checkpoint/native/reshard.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files/output_lock.h"
#include "checkpoint/native/folders.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "telemetry/checkpoint_progress.h"

namespace teratron {
namespace {

struct CheckpointReshardOptions {
  std::filesystem::path from, to, json;
  std::int64_t max_file_size = 0;

  Faults faults() const {
    Faults faults;
    add_name_fault(faults, "TO", to);
    faults.add_if(max_file_size < 0, "{} is {}; it must be at least 0 (0: no limit)", Flag{"max-file-size"},
                  max_file_size);
    return faults;
  }
};

FieldList fields_of(CheckpointReshardOptions& o) {
  FieldList list;
  list.add_positional(&o.from, "FROM", "folder that was saved to, or one checkpoint in it");
  list.add_positional(&o.to, "TO", "folder to write, with no checkpoint in it").writes();
  list.add(
      "max-file-size", &o.max_file_size, "BYTES",
      "most bytes of tensors in a file; a larger tensor has its own; 0: one file for the model, one for the optimizer");
  add_json_field(list, o.json);
  return list;
}

void run(const CheckpointReshardOptions& options) {
  const OutputLock lock(options.to);
  const ReshardReport done = [&] {
    const std::uint64_t bytes = bytes_of_folder(find_checkpoint(options.from));
    const LongTask task(fmt::format("writing {} anew", readable_bytes(bytes)),
                        share_of_checksums(2 * bytes));  // read and written
    return reshard_checkpoint(options.from, options.to, static_cast<std::uint64_t>(options.max_file_size));
  }();
  const nlohmann::ordered_json json = {{"folder", done.folder.string()},
                                       {"files", done.files},
                                       {"tensors", done.tensors},
                                       {"bytes", done.bytes},
                                       {"largest_file", done.largest_file}};
  report(options.json,
         fmt::format("'{}' written, every checksum compared on the way: {}, {}, {}, the largest file {}\n",
                     done.folder.string(), counted(done.files, "file"), counted(done.tensors, "tensor"),
                     readable_bytes(done.bytes), readable_bytes(done.largest_file)),
         json);
}

}  // namespace

Command checkpoint_reshard_command() {
  return make_command<CheckpointReshardOptions>("checkpoint reshard",
                                                "rewrites a checkpoint into files of another size", run);
}

}  // namespace teratron

// teratron checkpoint verify: compares every byte of a checkpoint with its checksums.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folders.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "telemetry/checkpoint_progress.h"

namespace teratron {
namespace {

struct CheckpointVerifyOptions {
  std::filesystem::path checkpoint, json;
};

FieldList fields_of(CheckpointVerifyOptions& o) {
  FieldList list;
  list.add_positional(&o.checkpoint, "DIR", "folder that was saved to, or one checkpoint in it");
  add_json_field(list, o.json);
  return list;
}

// Damage is reported twice: in the table, and as the error that ends the command.
void run(const CheckpointVerifyOptions& options) {
  const CheckpointVerification found = [&] {
    const std::uint64_t bytes = bytes_of_folder(find_checkpoint(options.checkpoint));
    const LongTask task(fmt::format("comparing {} with checksums", readable_bytes(bytes)), share_of_checksums(bytes));
    return verify_checkpoint(options.checkpoint);
  }();
  const nlohmann::ordered_json json = {
      {"folder", found.folder.string()}, {"intact", found.intact()}, {"files", found.files},
      {"tensors", found.tensors},        {"bytes", found.bytes},     {"faults", found.faults}};
  const std::string text =
      found.intact() ? fmt::format("'{}' is intact: {}, {}, {}\n", found.folder.string(), counted(found.files, "file"),
                                   counted(found.tensors, "tensor"), readable_bytes(found.bytes))
                     : "";
  report(options.json, text, json);
  if (!found.intact()) {
    throw_user_error("'{}' is damaged; load another checkpoint:\n  {}", found.folder.string(),
                     fmt::join(found.faults, "\n  "));
  }
}

}  // namespace

Command checkpoint_verify_command() {
  return make_command<CheckpointVerifyOptions>("checkpoint verify",
                                               "compares every byte of a checkpoint with its checksums", run);
}

}  // namespace teratron

// A folder as a disk may hold it after the power has failed, from the log of what programs did (shim/shim.cc).
//
// A file's bytes are on the disk from fsync of the file on; its name, and any rename or deletion, from fsync of the
// folder on. The rest may be there or not, in any combination: so POSIX has it. Of what was written to a file since its
// last fsync, any blocks may be missing, and be zeros where the file grew.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/philox.h"
#include "torture/calls.h"

namespace teratron::torture {

// Everything below a folder: relative paths, and "=BYTES" of a file, "-> TARGET" of a link, or "/" of a folder.
using Tree = std::map<std::string, std::string>;

Tree read_tree(const std::filesystem::path& folder);
// Makes the folder hold this and nothing else.
void write_tree(const std::filesystem::path& folder, const Tree& tree);

// A call of shim/shim.cc's log.
struct LoggedCall {
  Record record;
  std::string path, other, bytes;
};
std::vector<LoggedCall> read_log(const std::filesystem::path& log);

// Promise of a file system for names whose folder was not synced.
enum class Names {
  kAnyOrder,  // any of the changes may be lost
  kInOrder,   // of all changes, in all folders, the last ones may be lost, as where a journal holds them (ext4, xfs)
};

class Disk {
 public:
  // Takes a folder all of which is on the disk.
  explicit Disk(const std::filesystem::path& folder);
  // Does what a log says. std::runtime_error: it is cut, or of another folder.
  void replay(const std::filesystem::path& log);
  void apply(const LoggedCall& call);
  // The folder as programs see it.
  Tree seen() const;
  // One of the states in which it may be after a power failure.
  Tree after_power_failure(RandomSequence& random, Names names) const;

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  struct Change {  // of a name; no node: it is gone
    NodePtr folder;
    std::string name;
    NodePtr node;
  };
  struct NameStep {  // changes of one call, which are made together
    std::vector<Change> changes;
    bool is_on_disk = false;
  };
  using Entries = std::map<std::string, NodePtr>;
  using Folders = std::map<const Node*, Entries>;

  NodePtr find(const std::string& path) const;
  Change change(const std::string& path, NodePtr node) const;
  void open(const LoggedCall& call);
  void rename(const std::string& from, const std::string& to, bool exchanges);
  void sync(const Record& record);
  void step(std::vector<Change> changes);

  std::string folder_;
  NodePtr root_;
  Folders on_disk_at_first_, now_;
  std::vector<NameStep> steps_;
  std::map<std::uint64_t, NodePtr> open_files_;
};

}  // namespace teratron::torture

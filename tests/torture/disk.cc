#include "torture/disk.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "base/files/file.h"

namespace teratron::torture {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 4096;  // is on the disk, or not, as a whole

// A write, of one block at most, or a change of the size where there are no bytes.
struct Step {
  std::size_t offset;
  std::string bytes;
};

void apply_step(std::string& content, const Step& step) {
  const std::size_t end = step.offset + step.bytes.size();
  if (step.bytes.empty() || content.size() < end) content.resize(end);
  content.replace(step.offset, step.bytes.size(), step.bytes);
}

}  // namespace

struct Disk::Node {
  enum Kind { kFile, kFolder, kLink } kind = kFile;
  std::string content;  // a link's target
  std::string on_disk;  // a file's bytes at its last fsync
  std::vector<Step> since;

  void add(Step step) {
    apply_step(content, step);
    since.push_back(std::move(step));
  }
  void sync() {
    on_disk = content;
    since.clear();
  }
  // All, nothing, or any of what was written since the last fsync.
  std::string after_power_failure(RandomSequence& random) const {
    const std::uint64_t choice = random.below(4);
    if (choice == 0) return content;
    std::string left = on_disk;
    if (choice == 1) return left;
    for (const Step& step : since) {
      const bool stays = random.below(2) == 0, grows = random.below(2) == 0;
      if (stays) {
        apply_step(left, step);
      } else if (grows && left.size() < step.offset + step.bytes.size()) {
        left.resize(step.offset + step.bytes.size());
      }
    }
    return left;
  }
};

Tree read_tree(const fs::path& folder) {
  Tree tree;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().lexically_relative(folder).string();
    if (entry.is_symlink()) {
      tree[path] = "-> " + fs::read_symlink(entry.path()).string();
    } else {
      tree[path] = entry.is_directory() ? "/" : "=" + read_file(entry.path());
    }
  }
  return tree;
}

void write_tree(const fs::path& folder, const Tree& tree) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
  for (const auto& [path, content] : tree) {  // a folder comes before what is in it
    if (content == "/") {
      fs::create_directory(folder / path);
    } else if (content.starts_with("-> ")) {
      fs::create_symlink(content.substr(3), folder / path);
    } else {
      std::ofstream(folder / path, std::ios::binary) << content.substr(1);
    }
  }
}

std::vector<LoggedCall> read_log(const fs::path& log) {
  const std::string text = read_file(log);
  std::string_view rest = text;
  const auto take = [&](std::size_t size) {
    if (size > rest.size()) throw std::runtime_error("the log of calls is cut");
    const std::string part(rest.substr(0, size));
    rest.remove_prefix(size);
    return part;
  };
  std::vector<LoggedCall> calls;
  while (!rest.empty()) {
    LoggedCall call;
    std::memcpy(&call.record, take(sizeof call.record).data(), sizeof call.record);
    call.path = take(call.record.path_bytes);
    call.other = take(call.record.other_bytes);
    call.bytes = take(call.record.bytes);
    calls.push_back(std::move(call));
  }
  return calls;
}

Disk::Disk(const fs::path& folder) : folder_(fs::canonical(folder).string()), root_(std::make_shared<Node>()) {
  root_->kind = Node::kFolder;
  now_[root_.get()];
  for (const auto& [path, content] : read_tree(folder_)) {
    auto node = std::make_shared<Node>();
    if (content == "/") {
      node->kind = Node::kFolder;
    } else if (content.starts_with("-> ")) {
      node->kind = Node::kLink;
      node->content = content.substr(3);
    } else {
      node->content = node->on_disk = content.substr(1);
    }
    step({change(folder_ + "/" + path, node)});
  }
  steps_.clear();
  on_disk_at_first_ = now_;
}

void Disk::replay(const fs::path& log) {
  for (const LoggedCall& call : read_log(log)) apply(call);
}

Disk::NodePtr Disk::find(const std::string& path) const {
  NodePtr node = root_;
  for (const fs::path& name : fs::path(path).lexically_relative(folder_)) {
    if (name == ".") continue;
    const auto folder = now_.find(node.get());
    if (folder == now_.end()) return nullptr;
    const auto entry = folder->second.find(name.string());
    if (entry == folder->second.end()) return nullptr;
    node = entry->second;
  }
  return node;
}

Disk::Change Disk::change(const std::string& path, NodePtr node) const {
  NodePtr folder = find(fs::path(path).parent_path().string());
  if (!folder) throw std::runtime_error("the log knows no folder of " + path);
  return {std::move(folder), fs::path(path).filename().string(), std::move(node)};
}

void Disk::apply(const LoggedCall& call) {
  const auto& [record, path, other, bytes] = call;
  const auto made = [&](Node::Kind kind, std::string content) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->content = std::move(content);
    step({change(call.path, std::move(node))});
  };
  switch (record.call) {
    case Call::kOpen: return open(call);
    case Call::kWrite:
      for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t offset = record.offset + at, size = std::min(kBlock - offset % kBlock, bytes.size() - at);
        open_files_.at(record.file)->add({offset, bytes.substr(at, size)});
        at += size;
      }
      return;
    case Call::kResize: return open_files_.at(record.file)->add({record.offset, ""});
    case Call::kSync: return sync(record);
    case Call::kRename: return rename(path, other, record.flag);
    case Call::kUnlink: return step({change(path, nullptr)});
    case Call::kMakeFolder: return made(Node::kFolder, "");
    case Call::kSymlink: return made(Node::kLink, other);
  }
}

void Disk::open(const LoggedCall& call) {
  const Record& record = call.record;
  NodePtr node = record.flag ? nullptr : find(call.path);
  if (!node) {
    node = std::make_shared<Node>();
    if (!record.flag) step({change(call.path, node)});
  }
  if (record.offset == 1) node->add({0, ""});
  open_files_[record.file] = node;
}

void Disk::rename(const std::string& from, const std::string& to, bool exchanges) {
  // From or to a place that nobody watches, there is one change.
  const bool is_from = from.starts_with(folder_), is_to = to.starts_with(folder_);
  if (!is_from || !is_to) throw std::runtime_error("a rename that leaves the folder: " + from + " " + to);
  step({change(to, find(from)), change(from, exchanges ? find(to) : nullptr)});
}

void Disk::sync(const Record& record) {
  const NodePtr node = open_files_.at(record.file);
  if (node->kind != Node::kFolder) return node->sync();
  for (NameStep& step : steps_) {
    step.is_on_disk =
        step.is_on_disk || std::ranges::any_of(step.changes, [&](const Change& c) { return c.folder == node; });
  }
}

void Disk::step(std::vector<Change> changes) {
  for (const Change& one : changes) {
    Entries& names = now_[one.folder.get()];
    one.node ? void(names[one.name] = one.node) : void(names.erase(one.name));
    if (one.node && one.node->kind == Node::kFolder) now_[one.node.get()];
  }
  steps_.push_back({std::move(changes)});
}

namespace {

// Puts everything below a folder into a tree.
template <class Folders, class Node, class Content>
void list(const Folders& folders, const Node* folder, const std::string& path, const Content& content_of, Tree& tree) {
  const auto names = folders.find(folder);
  if (names == folders.end()) return;
  for (const auto& [name, node] : names->second) {
    const std::string full = path.empty() ? name : path + "/" + name;
    tree[full] = node->kind == Node::kFolder ? "/"
                 : node->kind == Node::kLink ? "-> " + node->content
                                             : "=" + content_of(*node);
    if (node->kind == Node::kFolder) list(folders, node.get(), full, content_of, tree);
  }
}

}  // namespace

Tree Disk::seen() const {
  Tree tree;
  list(
      now_, root_.get(), "", [](const Node& file) { return file.content; }, tree);
  return tree;
}

Tree Disk::after_power_failure(RandomSequence& random, Names names) const {
  // In order, all changes up to the last one on the disk are there.
  std::size_t whole = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) whole = steps_[i].is_on_disk ? i + 1 : whole;
  whole += random.below(steps_.size() - whole + 1);
  const std::uint64_t share = random.below(5);  // of four: how many of the others are there
  Folders folders = on_disk_at_first_;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const bool stays = names == Names::kInOrder ? i < whole : steps_[i].is_on_disk || random.below(4) < share;
    if (!stays) continue;
    for (const Change& one : steps_[i].changes) {
      one.node ? void(folders[one.folder.get()][one.name] = one.node) : void(folders[one.folder.get()].erase(one.name));
    }
  }
  Tree tree;
  list(
      folders, root_.get(), "", [&](const Node& file) { return file.after_power_failure(random); }, tree);
  return tree;
}

}  // namespace teratron::torture

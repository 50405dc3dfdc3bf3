#include "cluster/cluster_file.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/cache_folder.h"
#include "base/files/file.h"
#include "cluster/presets.h"
#include "options/output.h"
#include "options/reading.h"
#include "options/suggestion.h"
#include "options/toml_parsing.h"

namespace teratron {
namespace {

// Reads one table of the file. Each call reads a key; a fault of it becomes a line.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string where, const std::string& path, std::vector<std::string>& lines)
      : table_(table), where_(std::move(where)), path_(path), lines_(lines) {}

  std::string text(std::string_view key, bool needed = true) {
    const toml::node* node = take(key, needed);
    if (node == nullptr) return "";
    if (const auto value = node->value_exact<std::string>()) return from_utf8(*value);
    wrong(key, *node, "a text");
    return "";
  }
  std::int64_t integer(std::string_view key) {
    const toml::node* node = take(key, true);
    if (node == nullptr) return 0;
    if (const auto value = node->value_exact<std::int64_t>()) return *value;
    wrong(key, *node, "a whole number");
    return 0;
  }
  double number(std::string_view key, bool needed = true) {
    const toml::node* node = take(key, needed);
    if (node == nullptr) return 0;
    if (const auto value = node->is_number() ? node->value<double>() : std::nullopt) return *value;
    wrong(key, *node, "a number");
    return 0;
  }
  bool boolean(std::string_view key) {
    const toml::node* node = take(key, true);
    if (node == nullptr) return false;
    if (const auto value = node->value_exact<bool>()) return *value;
    wrong(key, *node, "true or false");
    return false;
  }
  const toml::table* table(std::string_view key) {
    const toml::node* node = take(key, true);
    if (node != nullptr && !node->is_table()) wrong(key, *node, "a table");
    return node == nullptr ? nullptr : node->as_table();
  }
  // The tables of [[key]]; none where it is absent.
  std::vector<const toml::table*> tables(std::string_view key) {
    const toml::node* node = take(key, false);
    if (node == nullptr) return {};
    std::vector<const toml::table*> tables;
    if (const toml::array* array = node->as_array()) {
      for (const toml::node& element : *array) {
        if (element.is_table()) tables.push_back(element.as_table());
      }
      if (tables.size() == array->size()) return tables;
    }
    wrong(key, *node, fmt::format("tables, each beginning with [[{}]]", key));
    return {};
  }

  // Adds a line for each key that no call has read.
  void finish() {
    for (const auto& [key, node] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      const std::string nearest = nearest_name(key.str(), known_);
      lines_.push_back(fmt::format("unknown key '{}'{} ({}:{}); {}", shortened(key.str()), where_, path_,
                                   key.source().begin.line,
                                   nearest.empty() ? fmt::format("there are {}", fmt::join(known_, ", "))
                                                   : fmt::format("did you mean '{}'?", nearest)));
    }
  }

 private:
  const toml::node* take(std::string_view key, bool needed) {
    known_.emplace_back(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr && needed) lines_.push_back(fmt::format("'{}' is missing{} ({})", key, where_, path_));
    return node;
  }
  void wrong(std::string_view key, const toml::node& node, std::string_view wanted) {
    lines_.push_back(fmt::format("'{}'{} must be {} ({}:{})", key, where_, wanted, path_, node.source().begin.line));
  }

  const toml::table& table_;
  std::string where_;
  const std::string& path_;
  std::vector<std::string>& lines_;
  std::vector<std::string> known_;
};

Cluster read_cluster(const toml::table& file, const std::string& path, std::vector<std::string>& lines) {
  Cluster cluster;
  TableReader top(file, "", path, lines);
  cluster.name = top.text("name");
  cluster.devices = top.integer("devices");
  if (const toml::table* table = top.table("device")) {
    TableReader device(*table, " in [device]", path, lines);
    cluster.device = {.name = device.text("name"),
                      .memory = device.number("memory"),
                      .peak_16 = device.number("peak_16"),
                      .peak_32 = device.number("peak_32"),
                      .memory_bandwidth = device.number("memory_bandwidth"),
                      .peak_8 = device.number("peak_8", false),
                      .watts = device.number("watts", false),
                      .backend = device.text("backend", false)};
    device.finish();
  }
  for (const toml::table* table : top.tables("link")) {
    TableReader link(*table, fmt::format(" in [[link]] {}", cluster.links.size() + 1), path, lines);
    cluster.links.push_back({.name = link.text("name"),
                             .devices = link.integer("devices"),
                             .bandwidth = link.number("bandwidth"),
                             .is_shared = link.boolean("shared"),
                             .latency = link.number("latency"),
                             .from = link.text("from", false)});
    link.finish();
  }
  for (const toml::table* table : top.tables("constant")) {
    TableReader constant(*table, fmt::format(" in [[constant]] {}", cluster.constants.size() + 1), path, lines);
    cluster.constants.push_back(
        {.name = constant.text("name"), .value = constant.number("value"), .from = constant.text("from", false)});
    constant.finish();
  }
  top.finish();
  return cluster;
}

}  // namespace

Cluster cluster_from_toml(std::string_view text, const std::filesystem::path& path) {
  FaultLines lines;
  Cluster cluster = read_cluster(parse_toml(text, path.string()), path.string(), lines);
  // A missing value would be reported once more as a 0.
  if (lines.empty()) {
    for (const std::string& fault : cluster.faults().texts())
      lines.push_back(fmt::format("{} ({})", fault, path.string()));
  }
  throw_if_any(lines);
  return cluster;
}

std::string to_toml(const Cluster& cluster) {
  std::string text = fmt::format("name = {}\ndevices = {}\n", toml_text(cluster.name), cluster.devices);
  const Device& device = cluster.device;
  text += fmt::format("\n[device]\nname = {}\nmemory = {}\npeak_16 = {}\npeak_32 = {}\nmemory_bandwidth = {}\n",
                      toml_text(device.name), toml_number(device.memory), toml_number(device.peak_16),
                      toml_number(device.peak_32), toml_number(device.memory_bandwidth));
  if (device.peak_8 > 0) text += fmt::format("peak_8 = {}\n", toml_number(device.peak_8));
  if (device.watts > 0) text += fmt::format("watts = {}\n", toml_number(device.watts));
  if (!device.backend.empty()) text += fmt::format("backend = {}\n", toml_text(device.backend));
  for (const LinkLevel& link : cluster.links) {
    text += fmt::format("\n[[link]]\nname = {}\ndevices = {}\nbandwidth = {}\nshared = {}\nlatency = {}\nfrom = {}\n",
                        toml_text(link.name), link.devices, toml_number(link.bandwidth), link.is_shared,
                        toml_number(link.latency), toml_text(link.from));
  }
  for (const Constant& constant : cluster.constants) {
    text += fmt::format("\n[[constant]]\nname = {}\nvalue = {}\nfrom = {}\n", toml_text(constant.name),
                        toml_number(constant.value), toml_text(constant.from));
  }
  return text;
}

std::filesystem::path this_machine_file() {
  const std::filesystem::path cache = user_cache_folder();
  return cache.empty() ? cache : cache / fmt::format("{}.toml", kThisMachine);
}

Cluster find_cluster(const std::string& name_or_file, std::int64_t devices) {
  if (const auto preset = find_cluster_preset(name_or_file, devices)) return *preset;
  if (name_or_file == kThisMachine) {
    const std::filesystem::path file = this_machine_file();
    if (file.empty() || !std::filesystem::exists(file)) {
      throw_user_error(
          "this machine was not measured yet; run `teratron profile --cluster {}`, with --dp N for N ranks",
          kThisMachine);
    }
    const Cluster machine = find_cluster(file.string());
    if (devices > machine.devices && machine.links.size() <= 1) {
      throw_user_error("this machine was measured with {}, not with {}; run `teratron profile --cluster {} --dp {}`",
                       counted(machine.devices, "device"), devices, kThisMachine, devices);
    }
    return devices == 0 ? machine : machine.resized(devices);
  }
  std::error_code error;  // of a name that is too long, too
  if (!is_standard_stream(name_or_file) && !std::filesystem::exists(name_or_file, error)) {
    throw_user_error("'{}' is neither a cluster file nor a cluster that is known: {}, {}",
                     printable(shortened(name_or_file)), fmt::join(cluster_preset_names(), ", "), kThisMachine);
  }
  const Cluster cluster = cluster_from_toml(read_file(name_or_file), name_or_file);
  return devices == 0 ? cluster : cluster.resized(devices);
}

}  // namespace teratron

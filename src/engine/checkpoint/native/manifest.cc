#include "checkpoint/native/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/json_fields.h"
#include "base/version.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/tensor_files.h"

namespace teratron {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::int64_t kFormatVersion = 1;
constexpr const char *kRun = "run", *kTask = "task", *kReading = "reading", *kColumns = "columns", *kBase = "base",
                     *kBaseChecksum = "base_xxh3_64";
constexpr std::int64_t kLargestCount = std::numeric_limits<std::int64_t>::max();
// More than any training does, and so few that products with the sizes of batches and sequences stay within 64 bits.
constexpr std::int64_t kMostUpdates = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMostSamples = std::int64_t{1} << 44;
constexpr std::string_view kFirstLineBegin = "{\"xxh3_64\": \"", kFirstLineEnd = "\",\n";

// JSON has no infinity and no not-a-number; they are written as text.
Json number_to_json(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

double number_from_json(const JsonFields& fields, std::string_view key) {
  if (!fields[key].is_string()) return fields.number(key);
  const std::string text = fields.string(key);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "inf" || text == "-inf") return text == "inf" ? kInfinity : -kInfinity;
  if (text == "nan" || text == "-nan") return std::copysign(std::nan(""), text == "nan" ? 1.0 : -1.0);
  fields.throw_not(key, "a number");
}

Json state_to_json(const TrainingState& state) {
  Json values = Json::object();
  for (const auto& [name, value] : state.values) values[name] = number_to_json(value);
  return {{"iteration", state.iteration},
          {"consumed_samples", state.consumed_samples},
          {"consumed_tokens", state.consumed_tokens},
          {"seed", state.seed},
          {"learning_rate", number_to_json(state.learning_rate)},
          {"counters", state.counters},
          {"values", values}};
}

TrainingState state_from_json(const Json& json, const fs::path& path) {
  const JsonFields fields(json, path);
  TrainingState state{.iteration = fields.integer("iteration", 0, kMostUpdates),
                      .consumed_samples = fields.integer("consumed_samples", 0, kMostSamples),
                      .consumed_tokens = fields.integer("consumed_tokens", 0, kLargestCount),
                      .seed = fields.unsigned_integer("seed"),
                      .learning_rate = number_from_json(fields, "learning_rate")};
  const JsonFields counters(fields.object("counters"), path), values(fields.object("values"), path);
  for (const auto& item : fields["counters"].items()) {
    state.counters[item.key()] = counters.integer(item.key(), -kLargestCount - 1, kLargestCount);
  }
  for (const auto& item : fields["values"].items()) state.values[item.key()] = number_from_json(values, item.key());
  return state;
}

using NamedRun = std::pair<std::string_view, RunKind>;
constexpr NamedRun kRunKinds[] = {
    {"train", RunKind::kTraining}, {"finetune", RunKind::kFinetuning}, {"convert", RunKind::kConversion}};

std::string_view name_of(RunKind kind) { return std::ranges::find(kRunKinds, kind, &NamedRun::second)->first; }

Json run_to_json(const RunOrigin& run) {
  Json json = {{"by", name_of(run.kind)}};
  if (!run.task.empty()) json[kTask] = run.task;
  if (!run.base.folder.empty()) {
    json[kBase] = run.base.folder.string();
    json[kBaseChecksum] = run.base.checksum;
  }
  if (!run.reading.empty()) json[kReading] = run.reading;
  return json;
}

RunOrigin run_from_json(const Json& json, const fs::path& path) {
  const JsonFields fields(json, path);
  const std::string by = fields.string("by");
  const auto found = std::ranges::find(kRunKinds, by, &NamedRun::first);
  if (found == std::end(kRunKinds)) fields.throw_not("by", "train, finetune or convert");
  RunOrigin run{.kind = found->second, .task = fields.has(kTask) ? fields.string(kTask) : ""};
  if (fields.has(kBase)) run.base = {.folder = fields.string(kBase), .checksum = fields.string(kBaseChecksum)};
  for (const char* key : {kReading, kColumns}) {  // the latter of older checkpoints, which name columns alone
    if (!fields.has(key)) continue;
    const JsonFields flags = fields.fields_of(key);
    for (const auto& item : fields.object(key).items()) run.reading[item.key()] = flags.string(item.key());
  }
  return run;
}

// Older checkpoints do not say which command wrote them. `convert` writes weights alone.
RunOrigin guess_run(const Manifest& manifest) {
  const bool has_settings = manifest.files.contains(std::string(kSettingsFile));
  if (!has_optimizer(manifest) && !has_settings && manifest.state.iteration == 0)
    return {.kind = RunKind::kConversion, .task = {}};
  return {.kind = is_task_head(manifest.model.head) ? RunKind::kFinetuning : RunKind::kTraining, .task = {}};
}

Json files_to_json(const std::map<std::string, FileRecord>& files) {
  Json json = Json::object();
  for (const auto& [name, file] : files) {
    json[name] = {
        {"bytes", file.bytes}, {"xxh3_64", file.checksum}, {"values", file.values}, {"tensors", file.tensors}};
  }
  return json;
}

FileRecord file_from_json(const Json& json, const fs::path& path) {
  const JsonFields fields(json, path);
  FileRecord file{.bytes = fields.unsigned_integer("bytes"),
                  .checksum = fields.string("xxh3_64"),
                  .values = fields.integer("values", 0, kLargestCount)};
  const JsonFields tensors(fields.object("tensors"), path);
  for (const auto& item : fields["tensors"].items()) file.tensors[item.key()] = tensors.string(item.key());
  return file;
}

// A model that the files cannot hold is found before anything of its size is planned.
void check_sizes(const Manifest& manifest, const fs::path& path) {
  constexpr std::uint64_t kFewestBytes = 2;  // of a value
  std::uint64_t values = 0;
  for (const auto& [name, file] : manifest.files) {
    std::error_code missing;
    const std::uintmax_t size = fs::file_size(path.parent_path() / name, missing);
    if (missing || size != file.bytes) return;  // damage is reported elsewhere
    values += std::min<std::uint64_t>(static_cast<std::uint64_t>(file.values), size / kFewestBytes);
  }
  const std::int64_t parameters = manifest.model.trained_parameters();
  if (std::cmp_greater_equal(values, parameters)) return;
  throw_user_error(
      "'{}' contradicts itself: its model has {} parameters, and its files have room for {}; copy the "
      "checkpoint again",
      path.string(), parameters, values);
}

std::string first_line(std::string_view rest) {
  return fmt::format("{}{}{}", kFirstLineBegin, checksum_of(rest), kFirstLineEnd);
}

void check_first_line(std::string_view text, const fs::path& path) {
  const std::string_view rest = text.substr(std::min(first_line("").size(), text.size()));
  if (text.substr(0, text.size() - rest.size()) != first_line(rest)) {
    throw DamagedCheckpoint(fmt::format("'{}' is damaged: its checksum does not match", path.string()));
  }
}

[[noreturn]] void throw_unreadable(const fs::path& path, std::string_view why) {
  throw UnreadableCheckpoint(fmt::format(
      "'{}' cannot be read: {}; check its permissions and those of its folder, since the checkpoint may be intact",
      path.string(), why));
}

void check_name(const fs::path& folder, std::int64_t iteration) {
  const std::vector<CheckpointName> names = names_of(folder);
  if (names.empty() || names.front().iteration == iteration) return;
  throw_user_error(
      "'{}' holds the checkpoint of iteration {}, so it was renamed or copied; call it '{}' again, or something that "
      "does not begin with iter_",
      folder.string(), iteration, iteration_folder({}, iteration).string());
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code error;
  const bool is = fs::exists(path, error);
  if (error == std::errc::permission_denied) throw_unreadable(root_of(path), error.message());  // its folder is closed
  if (error && error != std::errc::not_a_directory) throw_unreadable(path, error.message());
  return is;
}

void require_readable(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw_unreadable(file, std::strerror(errno));
  ::close(descriptor);
}

std::string text_of(const RunOrigin& origin) {
  const std::string task = origin.task.empty() ? "" : fmt::format(" --task {}", origin.task);
  return fmt::format("{}{}", name_of(origin.kind), task);
}

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  const nlohmann::ordered_json json = {
      {"format_version", kFormatVersion},          {"written_by", fmt::format("teratron {}", kVersion)},
      {kRun, run_to_json(manifest.run)},           {"model", model_config_to_json(manifest.model)},
      {"training", state_to_json(manifest.state)}, {"files", files_to_json(manifest.files)}};
  const std::string rest = json.dump(1).substr(2) + "\n";  // "{\n" is part of the first line
  write_file_atomically(folder / kManifestFile, first_line(rest) + rest);
}

Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifestFile;
  if (!is_there(path)) throw DamagedCheckpoint(fmt::format("'{}' is missing", path.string()));
  require_readable(path);
  const std::string text = read_file(path);
  check_first_line(text, path);
  const Json json = parse_json_object(text, path);
  const JsonFields fields(json, path);
  const std::int64_t version = fields.integer("format_version", 1, kLargestCount);
  const std::string written_by = fields.string("written_by");
  if (version > kFormatVersion) {
    throw_user_error("'{}' was written by {} in format {}; this is Teratron {}, which reads format {}: use a later one",
                     folder.string(), written_by, version, kVersion, kFormatVersion);
  }
  Manifest manifest{.written_by = written_by,
                    .model = model_config_from_json(fields.object("model"), path),
                    .state = state_from_json(fields.object("training"), path)};
  for (const auto& [name, file] : fields.object("files").items()) {
    if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.')) {
      throw_user_error("'{}' lists '{}', which is not the name of a file beside it", path.string(), name);
    }
    if (!file.is_object()) fields.throw_not("files", "an object of objects");
    manifest.files[name] = file_from_json(file, path);
  }
  check_name(folder, manifest.state.iteration);
  manifest.run = fields.has(kRun) ? run_from_json(fields.object(kRun), path) : guess_run(manifest);
  if (manifest.model.adapters.active() && manifest.run.base.folder.empty()) {
    throw_user_error("'{}' contradicts itself: its model has adapters, and it names no model that they are beside",
                     path.string());
  }
  check_sizes(manifest, path);
  return manifest;
}

}  // namespace teratron

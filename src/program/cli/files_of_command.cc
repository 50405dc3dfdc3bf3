// Checks of the files that a command reads and writes, before it runs.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "cli/command.h"
#include "data/text/content.h"
#include "data/text/input_files.h"
#include "data/text/json_scanner.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

// Paths of a field. Words are paths if they name corpora or files of documents.
Paths paths_in(const Field& field) {
  if (const auto* const* path = std::get_if<fs::path*>(&field.target)) return {**path};
  if (const auto* const* paths = std::get_if<std::vector<fs::path>*>(&field.target)) return **paths;
  const auto* const* words = std::get_if<std::vector<std::string>*>(&field.target);
  if (words == nullptr || (field.value_name != "PREFIX" && field.value_name != "SOURCE")) return {};
  return {(*words)->begin(), (*words)->end()};
}

// Whether `file` is one of a tokenizer or model.
bool is_of_model(const fs::path& file) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"vocab.json", "merges.txt", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
       "added_tokens.json", "config.json", "config.toml", "generation_config.json", "modules.json",
       "model.safetensors.index.json", "pytorch_model.bin.index.json"});
  const fs::path ending = file.extension();
  return std::ranges::find(kNames, file.filename().string()) != kNames.end() || ending == ".safetensors" ||
         ending == ".bin" || ending == ".model" || ending == ".jinja";
}

void add_folder(const fs::path& folder, bool has_model, Paths& read) {
  if (has_model) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (is_of_model(entry.path())) read.push_back(entry.path());
    }
    return;
  }
  constexpr auto kEndings =
      std::to_array<std::string_view>({".txt", ".jsonl", ".parquet", ".html", ".htm", ".xhtml", ".warc", ".tsv"});
  try {
    std::ranges::move(find_input_files(std::span(&folder, 1), kEndings), std::back_inserter(read));
  } catch (const UserError&) {  // the command reports it
  }
}

void add_read(const fs::path& named, bool has_model, Paths& read) {
  std::error_code error;
  if (is_standard_stream(named)) return read.push_back(named);
  if (fs::is_directory(named, error)) return add_folder(named, has_model, read);
  read.push_back(named);
  for (const std::string& ending : corpus_files()) {
    const fs::path file = named.string() + ending;
    if (fs::exists(file, error)) read.push_back(file);
  }
}

void add_matches(const fs::path& named, bool has_model, Paths& read) {
  if (!is_pattern(named)) return add_read(named, has_model, read);
  for (const std::string_view ending : {"", ".bin", ".idx"}) {
    try {
      for (const fs::path& match : find_matches(named.string() + std::string(ending))) {
        add_read(match, has_model, read);
      }
    } catch (const UserError&) {  // the command reports it
    }
  }
}

// UserError: standard input or another pipe is named twice, and can be read once.
void require_read_once(const Paths& read) {
  struct stat input {};
  const bool has_input = ::fstat(0, &input) == 0;
  std::set<std::pair<dev_t, ino_t>> pipes;
  int standard_inputs = 0;
  for (const fs::path& path : read) {
    struct stat status = input;
    const bool is_dash = is_standard_stream(path);
    const bool is_known = is_dash ? has_input : ::stat(path.c_str(), &status) == 0;
    const bool is_pipe = is_known && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
    standard_inputs += is_dash ? 1 : 0;
    if (standard_inputs < 2 && (!is_pipe || pipes.emplace(status.st_dev, status.st_ino).second)) continue;
    const bool is_input = is_dash || (has_input && status.st_dev == input.st_dev && status.st_ino == input.st_ino);
    throw_user_error("{} is named twice, and can be read once", is_input ? "standard input (-)" : name_of_input(path));
  }
}

// Whether a file holds one JSON value, or JSON lines if `may_be_lines`, or nothing.
bool holds_json(const fs::path& file, bool may_be_lines) {
  std::string head(kContentHead, '\0');
  FileReader reader(file);
  std::size_t size = 0;
  for (std::size_t got = 1; got > 0 && size < head.size(); size += got)
    got = reader.read(std::span(head).subspan(size));
  head.resize(size);
  if (is_blank(head)) return true;
  JsonScanner scanner;
  const std::size_t end = scanner.scan(head);
  if (scanner.is_invalid() || (size < kContentHead && !scanner.is_complete())) return false;
  const std::string_view rest = std::string_view(head).substr(end);
  return is_blank(rest) || (may_be_lines && rest.substr(rest.find_first_not_of(" \t\r\n")).starts_with('{'));
}

void require_json(const fs::path& json, bool may_be_lines) {
  require_writable(json);
  const fs::path target = json.empty() ? fs::path() : AtomicFile::target_of(json);
  std::error_code missing;
  if (target.empty() || !fs::is_regular_file(target, missing) || holds_json(target, may_be_lines)) return;
  throw_user_error("'{}' holds something else than the JSON that --json would write there; choose another name",
                   json.string());
}

}  // namespace

std::vector<std::string> corpus_files() { return {".bin", ".idx", ".teratron.json"}; }

std::vector<std::string> corpus_or_lines() { return {"", ".bin", ".idx", ".teratron.json"}; }

void require_files(const FieldList& fields) {
  Paths read, written;
  for (const Field& field : fields) {
    for (const fs::path& path : paths_in(field)) {
      if (path.empty()) continue;
      if (field.written_endings.empty()) {
        add_matches(path, field.value_name == "DIR", read);
        continue;
      }
      for (const std::string& ending : field.written_endings) {
        written.emplace_back(is_standard_stream(path) ? "-" : path.string() + ending);
      }
    }
  }
  require_read_once(read);
  std::ranges::for_each(written, require_place);
  require_separate(read, written);
  for (const Field& field : fields) {
    if (field.written_content == FileContent::kOwn) continue;
    const bool are_lines = field.written_content == FileContent::kJsonLines;
    for (const fs::path& path : paths_in(field)) require_json(path, are_lines);
  }
}

}  // namespace teratron

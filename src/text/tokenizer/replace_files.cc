#include "tokenizer/replace_files.h"

#include <algorithm>
#include <list>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {

void replace_files(const std::filesystem::path& folder, const std::vector<std::pair<std::string, std::string>>& files) {
  std::list<AtomicFile> written;
  for (const auto& [name, content] : files) {
    AtomicFile& file = written.emplace_back(folder / name);
    file.write(content);
    file.sync();
  }
  const auto remove_old = [](const std::filesystem::path& old) {
    std::error_code error;
    if (!old.empty()) std::filesystem::remove(old, error);
    if (error) throw_environment_error("cannot replace '{}': {}", old.string(), error.message());
  };
  for (const auto& [name, content] : files) remove_old(AtomicFile::target_of(folder / name));  // a link stays
  for (const std::string_view other : {"encoder.json", "vocab.bpe", "special_tokens_map.json", "added_tokens.json",
                                       "vocab.txt", "vocab.json", "merges.txt"}) {
    if (std::ranges::find(files, other, [](const auto& file) { return file.first; }) == files.end()) {
      remove_old(folder / other);
    }
  }
  sync_folder(folder);
  for (AtomicFile& file : written) file.commit();
}

}  // namespace teratron

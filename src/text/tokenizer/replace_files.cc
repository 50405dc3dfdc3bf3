#include "tokenizer/replace_files.h"

#include <list>

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
  for (const auto& [name, content] : files) {
    std::error_code error;
    const std::filesystem::path old = AtomicFile::target_of(folder / name);  // a link stays
    if (!old.empty()) std::filesystem::remove(old, error);
    if (error) throw_environment_error("cannot replace '{}': {}", old.string(), error.message());
  }
  sync_folder(folder);
  for (AtomicFile& file : written) file.commit();
}

}  // namespace teratron

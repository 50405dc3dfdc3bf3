// A tokenizer's files, written together.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace teratron {

// Writes files, by name and content, into an existing folder. All files of a tokenizer that stand there are gone before
// the first one appears, and the last one appears when all others are on the disk: files of two tokenizers never stand
// together. EnvironmentError: a full disk and the like, while the old files stand.
void replace_files(const std::filesystem::path& folder, const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace teratron

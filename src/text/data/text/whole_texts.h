// All texts of files at once, as the training of a vocabulary needs them.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file.h"
#include "data/text/content.h"

namespace teratron {

// Plain files are mapped, and each is one text. Of compressed files, pipes, JSON lines and Parquet the documents' texts
// are kept in memory.
class WholeTexts {
 public:
  // `named` as find_input_files() takes it; `json_key`: the key of the text in an object or a row. UserError: as
  // find_input_files(), DocumentReader and DocumentText.
  WholeTexts(std::span<const std::filesystem::path> named, TextFormat format, const std::string& json_key);
  WholeTexts(const WholeTexts&) = delete;
  WholeTexts& operator=(const WholeTexts&) = delete;

  // Valid as long as this object, without byte order marks.
  const std::vector<std::string_view>& texts() const { return texts_; }
  std::uint64_t bytes() const { return bytes_; }  // of all texts

 private:
  void map(const std::filesystem::path& file, TextFormat format);
  void read(const std::filesystem::path& file, TextFormat format, const std::string& json_key);
  void add(std::string_view text);

  std::deque<MappedFile> mapped_;
  std::deque<std::string> read_;
  std::vector<std::string_view> texts_;
  std::uint64_t bytes_ = 0;
};

}  // namespace teratron

#include "data/text/text_list.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

constexpr std::int64_t kListBatchBytes = std::int64_t{8} << 20;

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> read_text_list(const std::filesystem::path& file, TextFormat format, const TextKeys& keys,
                                        BlankLines blank, std::string_view format_flag) {
  DocumentReader reader(std::span(&file, 1), kListBatchBytes, format);
  reader.advise_flag(format_flag);
  reader.take_lists();
  reader.take_columns(keys.names);
  DocumentText text_of(keys, format_flag);
  std::vector<std::string> texts;
  for (DocumentBatch batch; reader.next(batch);) {
    for (const RawDocument& document : batch.documents) {
      const std::string_view text = text_of.of(document);
      if (document.line > 0) {
        texts.emplace_back(text);
        continue;
      }
      for (const std::string_view line : lines_of(text)) {
        if (blank == BlankLines::kKeep || !is_blank(line)) texts.emplace_back(line);
      }
    }
  }
  if (texts.empty()) throw_user_error("{} holds no text; write one on each line", name_of_input(file));
  return texts;
}

std::string read_plain_text(const std::filesystem::path& file, TextFormat format, std::string_view wanted) {
  DocumentReader reader(std::span(&file, 1), kListBatchBytes, format);
  reader.take_text_alone();
  DocumentText text_of("text");
  std::string text;
  for (DocumentBatch batch; reader.next(batch);) {
    for (const RawDocument& document : batch.documents) {
      if (document.line > 0) {
        const bool is_table = document.unit == DocumentUnit::kRow;
        throw_user_error("{} holds {}, and is to be {} as plain text; {}", name_of_input(file),
                         is_table ? "a Parquet table" : "JSON, an object for each document", wanted,
                         is_table ? "write its text to a file of its own" : "or take it for that with --format text");
      }
      text += text_of.of(document);
    }
  }
  return text;
}

}  // namespace teratron

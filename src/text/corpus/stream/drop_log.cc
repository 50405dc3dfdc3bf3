#include "corpus/stream/drop_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_string.h"

namespace teratron {

DropLog::DropLog(const std::filesystem::path& path, LinePoint from) {
  if (!path.empty()) writer_ = std::make_unique<LineWriter>(path, std::move(from));
}

void DropLog::add(std::string_view stage, const Drop& drop, const std::filesystem::path& file, std::int64_t line,
                  std::string_view document) {
  if (!writer_) return;
  nlohmann::ordered_json why = {
      {"stage", stage}, {"reason", drop.reason}, {"detail", drop.detail}, {"file", file.string()}, {"line", line}};
  std::string text = json_text(why);
  if (!document.empty()) {
    text.pop_back();
    text += fmt::format(",\"document\":{}}}", document);
  }
  lines_.push_back({&file, line, std::move(text)});
}

void DropLog::end_batch() {
  std::ranges::stable_sort(lines_, [](const Line& a, const Line& b) {
    return a.file == b.file ? a.line < b.line : std::less<>()(a.file, b.file);  // files are elements of one array
  });
  for (const Line& one : lines_) writer_->write(one.text);
  lines_.clear();
}

}  // namespace teratron

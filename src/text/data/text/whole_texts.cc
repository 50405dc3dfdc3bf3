#include "data/text/whole_texts.h"

#include "base/files/decompression.h"
#include "data/text/document_reader.h"
#include "data/text/document_text.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

constexpr std::int64_t kBatchBytes = 16 << 20;

bool is_mappable(const std::filesystem::path& file, TextFormat format) {
  if (is_standard_stream(file) || !std::filesystem::is_regular_file(file)) return false;
  DecompressingReader reader(file);
  if (reader.is_compressed() || format == TextFormat::kJsonLines) return false;
  return format == TextFormat::kText || recognise_content(reader.peek(kContentHead), file).kind == ContentKind::kText;
}

}  // namespace

WholeTexts::WholeTexts(std::span<const std::filesystem::path> named, TextFormat format, const std::string& json_key) {
  for (const std::filesystem::path& file : find_input_files(named)) {
    if (is_mappable(file, format)) {
      map(file, format);
    } else {
      read(file, format, json_key);
    }
  }
}

void WholeTexts::map(const std::filesystem::path& file, TextFormat format) {
  const std::string_view text = without_byte_order_mark(mapped_.emplace_back(file).text());
  require_text(text, 0, file);
  if (format == TextFormat::kAuto) require_utf8(text, file);
  add(text);
}

void WholeTexts::read(const std::filesystem::path& file, TextFormat format, const std::string& json_key) {
  DocumentReader reader(std::span(&file, 1), kBatchBytes, format);
  reader.take_columns({json_key});
  DocumentText text(json_key);
  for (DocumentBatch batch; reader.next(batch);) {
    std::size_t most = 0;
    for (const RawDocument& document : batch.documents) most += document.bytes.size();
    std::string& block = read_.emplace_back();
    block.reserve(most);  // never reallocates, so views stay valid: no text is longer than its document
    for (const RawDocument& document : batch.documents) {
      const std::size_t begin = block.size();
      block += text.of(document);
      add(std::string_view(block).substr(begin));
    }
  }
}

void WholeTexts::add(std::string_view text) {
  texts_.push_back(text);
  bytes_ += text.size();
}

}  // namespace teratron

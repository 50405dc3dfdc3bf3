// Plain text, JSON lines and JSON arrays, by any name: the first byte chooses.
#include <array>

#include "data/text/document_reader.h"
#include "data/text/document_text.h"
#include "data/text/sentence_splitter.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  constexpr std::array<std::string_view, 4> kNames = {"a", "a.jsonl", "a.txt", "a.json"};
  const unsigned choice = take_byte(input);
  const auto format = static_cast<TextFormat>(choice / 4 % 3);
  const std::array files = {put(kNames[choice % 4], input)};
  DocumentReader reader(files, 256, format, std::size_t{16} << 20);
  reader.stay_silent();
  if ((choice & 32) != 0) reader.take_lists();
  DocumentText text("text");
  DocumentBatch batch;
  while (reader.next(batch)) {
    for (const RawDocument& document : batch.documents) {
      try {
        split_sentences(text.of(document));
      } catch (const UserError&) {
      }
    }
  }
}

// Any text, encoded by a small tokenizer of either kind.
#include <algorithm>

#include "fuzz.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizers.h"

namespace teratron::fuzz {
namespace {

std::vector<std::int32_t> ids_of(const std::vector<TokenSpan>& spans) {
  std::vector<std::int32_t> ids;
  for (const TokenSpan& span : spans) ids.push_back(span.id);
  return ids;
}

Tokenizer small_word_piece() {
  WordPieceModel model;
  model.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",      "b", "##a",
                  "##b",   "hello", "##o",   "e",     "##e",    "\u4e2d", "."};
  model.pad = 0;
  model.unknown = 1;
  model.classify = 2;
  model.separate = 3;
  model.mask = 4;
  model.special = {0, 1, 2, 3, 4};
  return Tokenizer(model);
}

void encode(const Tokenizer& tokenizer, std::string_view text, bool gives_text_back) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  require(tokenizer.encode_parallel(text) == ids, "parallel encoding gives the same ids");
  require(ids_of(tokenizer.encode_with_offsets(text)) == ids, "encoding with offsets gives the same ids");
  std::vector<std::int32_t> beginning;
  tokenizer.encode_beginning_to(text, 3, beginning);
  require(beginning.size() <= ids.size() && std::equal(beginning.begin(), beginning.end(), ids.begin()),
          "the beginning's ids begin the text's");
  if (gives_text_back) require(tokenizer.decode(ids) == text, "decoding gives the text back");
  tokenizer.decode(tokenizer.encode(text, SpecialText::kToken));
  StreamDecoder decoder(tokenizer);
  for (const std::int32_t id : ids) decoder.push(id);
  decoder.finish();
}

}  // namespace

void parse(std::string_view input) {
  static const Tokenizer pieces = small_word_piece();
  encode(small_tokenizer(), input, true);
  encode(pieces, input, false);
}

}  // namespace teratron::fuzz

#include "tokenizer/tokenizer_implementation.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <system_error>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/word_piece/word_piece_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

using TokenizerModel = std::variant<BpeModel, WordPieceModel>;

struct PairNames {
  const char *vocabulary, *merges;
};
constexpr std::array<PairNames, 2> kPairs = {{{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}};
constexpr const char *kJson = "tokenizer.json", *kVocabulary = "vocab.txt";

// Does not throw if a parent folder cannot be read.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

TokenizerModel read_json(const fs::path& path) {
  const std::string file = fmt::format("'{}'", path.string());
  simdjson::dom::parser parser;
  simdjson::dom::object model;
  const simdjson::dom::object root = read_json_object(path, parser, "a tokenizer.json");
  if (root["model"].get(model)) throw_user_error("{} is not a tokenizer.json: it has no \"model\"", file);
  // Files from before 2021 name no type; then the model's members decide.
  const std::string_view type =
      text_or(model["type"], !model["merges"].error()                     ? "BPE"
                             : !model["max_input_chars_per_word"].error() ? "WordPiece"
                                                                          : "of unknown type");
  const TokenizerConfig config(path.parent_path());
  if (type == "WordPiece") return read_word_piece_json(root, file, config);
  if (type == "BPE") return read_bpe_json(root, file, config);
  throw_user_error("{} is neither BPE nor WordPiece, the kinds supported: its model is '{}'", file, type);
}

TokenizerModel read_named(const fs::path& path) {
  for (const PairNames& pair : kPairs) {
    if (path.filename() != pair.vocabulary && path.filename() != pair.merges) continue;
    return read_vocabulary_and_merges(path.parent_path() / pair.vocabulary, path.parent_path() / pair.merges);
  }
  // Also named as by Hugging Face's save_vocabulary: NAME-vocab.txt.
  if (path.filename().string().ends_with(kVocabulary)) return read_word_piece_vocabulary(path);
  return read_json(path);
}

}  // namespace

TokenizerModel read_tokenizer_model(const fs::path& path) {
  if (!is_there(path)) {
    throw_user_error("no tokenizer at '{}': there is no such file or folder; check the path", path.string());
  }
  if (!fs::is_directory(path)) return read_named(path);
  if (is_there(path / kJson)) return read_json(path / kJson);
  for (const PairNames& pair : kPairs) {
    if (!is_there(path / pair.vocabulary) && !is_there(path / pair.merges)) continue;
    return read_vocabulary_and_merges(path / pair.vocabulary, path / pair.merges);
  }
  if (is_there(path / kVocabulary)) return read_word_piece_vocabulary(path / kVocabulary);
  throw_user_error(
      "no tokenizer in '{}': byte-level BPE needs tokenizer.json, or vocab.json with merges.txt, or encoder.json with "
      "vocab.bpe; WordPiece needs tokenizer.json or vocab.txt",
      path.string());
}

}  // namespace teratron

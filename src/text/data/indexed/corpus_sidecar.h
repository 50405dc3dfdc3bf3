// PREFIX.teratron.json, beside the two files of Megatron-LM's format, which ignores it: the tokenizer that made the
// corpus, and checksums. A corpus without it, made by Megatron-LM or an older version, is accepted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace teratron {

// Equal for tokenizers that turn every text into the same ids, whatever files they were read from.
struct TokenizerIdentity {
  std::string hash;             // Tokenizer::hash
  std::int64_t vocab_size = 0;  // tokens
  std::string name;             // path it was read from, for messages
};
TokenizerIdentity identity_of(const Tokenizer& tokenizer, std::string name);

constexpr std::int64_t kChecksumBlockBytes = std::int64_t{1} << 20;

// Checksums of a file's blocks, so that a part of it can be compared without reading the rest.
struct FileBlocks {
  std::int64_t bytes = 0;                // of a block
  std::vector<std::uint32_t> checksums;  // BlockChecksums; the last block may be short
};

struct CorpusFile {
  std::int64_t bytes = 0;
  std::string checksum;                   // checksum_of
  std::optional<FileBlocks> blocks = {};  // of a .bin, if the version that wrote it had them
};

// The content of a sequence.
enum class SequenceUnit {
  kDocument,  // ended by the end-of-document token, as GPT reads it
  kSentence,  // one of several in a document, as BERT reads it: cut at the marks that end sentences
  kLine,      // as kSentence, where each line is a sentence
  // One of several in a chat: in turn words that are only read, and words to learn. The first are read, or none.
  kTurn,
  // One of four in a pair of answers: the prompt, the chosen answer, the prompt, the rejected answer.
  kPair,
};
inline bool is_sentence(SequenceUnit unit) { return unit == SequenceUnit::kSentence || unit == SequenceUnit::kLine; }

struct CorpusSidecar {
  TokenizerIdentity tokenizer;
  SequenceUnit unit = SequenceUnit::kDocument;
  std::int64_t documents = 0, sequences = 0, tokens = 0;
  CorpusFile bin, idx;
};

std::filesystem::path sidecar_path(const std::filesystem::path& prefix);
std::vector<std::filesystem::path> files_of_corpus(const std::filesystem::path& prefix);  // .bin, .idx and this one
std::string text_of(const CorpusSidecar& sidecar);                                        // the file's content

// The sidecar of the corpus at `prefix`, if it has one. UserError: a file that is no sidecar, or has an unknown
// version.
std::optional<CorpusSidecar> read_sidecar(const std::filesystem::path& prefix);

// UserError if the corpus' two files do not have the sizes in its sidecar.
void require_written_sizes(const std::filesystem::path& prefix, const CorpusSidecar& sidecar);

// UserError if the corpus' sidecar names another tokenizer than this one (read from `name`), or other sizes than those
// of the files. Reads the sidecar only; without one every tokenizer is accepted.
void require_tokenizer(const std::filesystem::path& prefix, const Tokenizer& tokenizer, std::string_view name);

// UserError if the sequences are no documents by the corpus' sidecar: nothing need end its documents then, and GPT
// would read them all as one text.
void require_whole_documents(const std::filesystem::path& prefix);
// Whether the corpus is one of chats by its sidecar.
bool holds_chats(const std::filesystem::path& prefix);
// UserError if it is not.
void require_chats(const std::filesystem::path& prefix);
// UserError if the corpus is not one of pairs of answers by its sidecar.
void require_pairs(const std::filesystem::path& prefix);

// The outcome of reading every byte of a corpus.
struct CorpusVerification {
  std::optional<CorpusSidecar> sidecar;
  std::int64_t documents = 0, tokens = 0;
  std::uint64_t bytes = 0;          // of .bin and .idx
  std::vector<std::string> faults;  // empty: intact
};

// Checks the format, every length and offset, every token against the tokenizer's vocabulary, and sizes, counts and
// checksums against the sidecar, if there is one. UserError: one of the two files cannot be read.
CorpusVerification verify_corpus(const std::filesystem::path& prefix);

}  // namespace teratron

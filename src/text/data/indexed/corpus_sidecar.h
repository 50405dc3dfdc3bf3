// What Megatron-LM's format cannot say of a corpus: which tokenizer made it, and whether its bytes are still those that
// were written. It stands in a file of its own beside the two, PREFIX.teratron.json, which Megatron-LM does not look
// at. A corpus without one, which Megatron-LM or an older version has made, is as good as any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace teratron {

// What two tokenizers have in common that turn every text into the same ids, whatever files they were read from.
struct TokenizerIdentity {
  std::string hash;             // Tokenizer::hash
  std::int64_t vocab_size = 0;  // tokens
  std::string name;             // where it was read, for people
};
TokenizerIdentity identity_of(const Tokenizer& tokenizer, std::string name);

constexpr std::int64_t kChecksumBlockBytes = std::int64_t{1} << 20;

// Checksums of a file's blocks, so that some of it can be compared without reading the rest.
struct FileBlocks {
  std::int64_t bytes = 0;                // of a block
  std::vector<std::uint32_t> checksums;  // BlockChecksums; the last block may be short
};

struct CorpusFile {
  std::int64_t bytes = 0;
  std::string checksum;                   // checksum_of
  std::optional<FileBlocks> blocks = {};  // of a .bin that a version with them has written
};

// What one sequence of the corpus is.
enum class SequenceUnit {
  kDocument,  // ended by the end-of-document token, as GPT reads it
  kSentence,  // of a document that may have several, as BERT reads it: cut at the marks that end sentences
  kLine,      // likewise, where each line was taken for a sentence
};
inline bool is_sentence(SequenceUnit unit) { return unit != SequenceUnit::kDocument; }

struct CorpusSidecar {
  TokenizerIdentity tokenizer;
  SequenceUnit unit = SequenceUnit::kDocument;
  std::int64_t documents = 0, sequences = 0, tokens = 0;
  CorpusFile bin, idx;
};

std::filesystem::path sidecar_path(const std::filesystem::path& prefix);
std::vector<std::filesystem::path> files_of_corpus(const std::filesystem::path& prefix);  // .bin, .idx and this one
std::string text_of(const CorpusSidecar& sidecar);                                        // the file's content

// Of the corpus at `prefix`, where it has one. UserError: a file that is no sidecar, or of a version that is not known.
std::optional<CorpusSidecar> read_sidecar(const std::filesystem::path& prefix);

// UserError where the corpus' two files do not have the sizes that its sidecar tells.
void require_written_sizes(const std::filesystem::path& prefix, const CorpusSidecar& sidecar);

// UserError where the corpus' sidecar names another tokenizer than this one (read from `name`), or tells the size of
// other files than those that lie there. Reads the sidecar alone; without one every tokenizer is taken.
void require_tokenizer(const std::filesystem::path& prefix, const Tokenizer& tokenizer, std::string_view name);

// UserError where the corpus' sidecar says that its sequences are sentences: nothing ends its documents then, and GPT
// would read them all as one text.
void require_whole_documents(const std::filesystem::path& prefix);

// The outcome of reading every byte of a corpus.
struct CorpusVerification {
  std::optional<CorpusSidecar> sidecar;
  std::int64_t documents = 0, tokens = 0;
  std::uint64_t bytes = 0;          // of .bin and .idx
  std::vector<std::string> faults;  // empty: intact
};

// Checks the format, every length and offset, every token against the tokenizer's vocabulary, and sizes, counts and
// checksums against the sidecar, as far as there is one. UserError: one of the two files cannot be read.
CorpusVerification verify_corpus(const std::filesystem::path& prefix);

}  // namespace teratron

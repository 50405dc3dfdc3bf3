#include "data/indexed/corpus_sidecar.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/files/random_access_file.h"
#include "base/json_fields.h"
#include "base/json_string.h"
#include "data/indexed/indexed_dataset.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "teratron corpus";
constexpr std::int64_t kVersion = 1, kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;  // of a vocabulary

constexpr std::size_t kDigits = 8;  // hexadecimal, of a block's checksum

nlohmann::ordered_json json_of(const CorpusFile& file) {
  nlohmann::ordered_json json = {{"bytes", file.bytes}, {"xxh3_64", file.checksum}};
  if (!file.blocks) return json;
  std::string digits;
  digits.reserve(file.blocks->checksums.size() * kDigits);
  for (const std::uint32_t checksum : file.blocks->checksums) digits += fmt::format("{:08x}", checksum);
  json["block_bytes"] = file.blocks->bytes;
  json["xxh3_low_32_of_blocks"] = std::move(digits);
  return json;
}

std::optional<FileBlocks> blocks_from(const JsonFields& fields, std::int64_t file_bytes) {
  constexpr std::string_view kBlockBytes = "block_bytes", kChecksums = "xxh3_low_32_of_blocks";
  if (!fields.has(kBlockBytes)) return std::nullopt;
  FileBlocks blocks{.bytes = fields.integer(kBlockBytes, 4096, std::int64_t{1} << 30), .checksums = {}};
  const std::string digits = fields.string(kChecksums);
  const std::int64_t count = file_bytes / blocks.bytes + (file_bytes % blocks.bytes > 0 ? 1 : 0);
  if (!std::cmp_equal(digits.size(), count * static_cast<std::int64_t>(kDigits)) || blocks.bytes % 8 != 0) {
    fields.throw_not(kChecksums, fmt::format("the checksums of {} blocks", count));
  }
  for (std::size_t at = 0; at < digits.size(); at += kDigits) {
    const char* const first = digits.data() + at;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(first, first + kDigits, value, 16);
    if (error != std::errc() || end != first + kDigits) fields.throw_not(kChecksums, "hexadecimal digits");
    blocks.checksums.push_back(value);
  }
  return blocks;
}

CorpusFile file_from(const nlohmann::json& json, const fs::path& path) {
  const JsonFields fields(json, path);
  const std::int64_t bytes = fields.integer("bytes", 0, kMost);
  return {.bytes = bytes, .checksum = fields.string("xxh3_64"), .blocks = blocks_from(fields, bytes)};
}

constexpr std::string_view kUnit = "sequence_unit", kDocument = "document", kSentence = "sentence", kTurn = "turn",
                           kPair = "pair";
constexpr std::string_view kSentencesBy = "sentences_by", kLines = "lines", kPunctuation = "punctuation";

// Corpora from before BERT lack the unit.
SequenceUnit unit_from(const JsonFields& fields) {
  const std::string name = fields.has(kUnit) ? fields.string(kUnit) : std::string(kDocument);
  if (name == kDocument) return SequenceUnit::kDocument;
  if (name == kTurn) return SequenceUnit::kTurn;
  if (name == kPair) return SequenceUnit::kPair;
  if (name != kSentence) fields.throw_not(kUnit, "\"document\", \"sentence\", \"turn\" or \"pair\"");
  const bool by_lines = fields.has(kSentencesBy) && fields.string(kSentencesBy) == kLines;
  return by_lines ? SequenceUnit::kLine : SequenceUnit::kSentence;
}

std::string_view name_of(SequenceUnit unit) {
  if (unit == SequenceUnit::kPair) return kPair;
  return is_sentence(unit) ? kSentence : unit == SequenceUnit::kTurn ? kTurn : kDocument;
}

std::string description_of(const TokenizerIdentity& tokenizer) {
  return fmt::format("'{}' ({}, {})", tokenizer.name, counted(tokenizer.vocab_size, "token"), tokenizer.hash);
}

std::string size_fault(const fs::path& path, const CorpusFile& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || std::cmp_equal(size, file.bytes)) return "";  // opening the corpus reports a missing file
  return fmt::format("'{}' has {} bytes, and {} when it was written", path.string(), size, file.bytes);
}

// Reads the file once; with checksums of blocks, the first difference has an offset.
std::string content_fault(const fs::path& path, const CorpusFile& file) {
  if (std::string fault = size_fault(path, file); !fault.empty()) return fault;
  const RandomAccessFile content(path);
  const std::uint64_t at_once = static_cast<std::uint64_t>(file.blocks ? file.blocks->bytes : kChecksumBlockBytes);
  Checksum checksum;
  std::string where;
  std::vector<std::byte> block;
  for (std::uint64_t at = 0; at < content.size(); at += at_once) {
    block.resize(std::min(at_once, content.size() - at));
    content.read(at, block);
    checksum.update(block);
    if (!file.blocks || !where.empty() || block_checksum_of(block) == file.blocks->checksums[at / at_once]) continue;
    where = fmt::format(" (it differs first within bytes {} to {})", at, at + block.size());
  }
  if (where.empty() && checksum.digest() == file.checksum) return "";
  return fmt::format("'{}': its checksum is not the one that it was written with{}", path.string(), where);
}

void add_counts_faults(const IndexedDataset& dataset, const CorpusSidecar& sidecar, std::vector<std::string>& faults) {
  const auto compare = [&](const char* what, std::int64_t here, std::int64_t written) {
    if (here != written) faults.push_back(fmt::format("it has {} {}, and {} when it was written", here, what, written));
  };
  compare("documents", dataset.documents(), sidecar.documents);
  compare("sequences", dataset.sequences(), sidecar.sequences);
  compare("tokens", dataset.tokens(), sidecar.tokens);
}

}  // namespace

TokenizerIdentity identity_of(const Tokenizer& tokenizer, std::string name) {
  return {.hash = tokenizer.hash(), .vocab_size = tokenizer.vocab_size(), .name = std::move(name)};
}

fs::path sidecar_path(const fs::path& prefix) { return prefix.string() + ".teratron.json"; }

std::vector<fs::path> files_of_corpus(const fs::path& prefix) {
  return {bin_path(prefix), idx_path(prefix), sidecar_path(prefix)};
}

std::string text_of(const CorpusSidecar& sidecar) {
  nlohmann::ordered_json json = {{"format", kFormat},
                                 {"version", kVersion},
                                 {"tokenizer",
                                  {{"hash", sidecar.tokenizer.hash},
                                   {"vocab_size", sidecar.tokenizer.vocab_size},
                                   {"name", sidecar.tokenizer.name}}},
                                 {kUnit, name_of(sidecar.unit)},
                                 {"documents", sidecar.documents},
                                 {"sequences", sidecar.sequences},
                                 {"tokens", sidecar.tokens},
                                 {"bin", json_of(sidecar.bin)},
                                 {"idx", json_of(sidecar.idx)}};
  if (is_sentence(sidecar.unit)) json[kSentencesBy] = sidecar.unit == SequenceUnit::kLine ? kLines : kPunctuation;
  return json_text(json, 2) + "\n";
}

std::optional<CorpusSidecar> read_sidecar(const fs::path& prefix) {
  const fs::path path = sidecar_path(prefix);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  const nlohmann::json json = parse_json_object(read_file(path), path);
  const JsonFields fields(json, path);
  if (!fields.has("format") || fields.string("format") != kFormat) {
    throw_user_error("'{}' does not describe a corpus; move it away, or tokenise the text again", path.string());
  }
  if (const std::int64_t version = fields.integer("version", 1, kMost); version != kVersion) {
    throw_user_error("'{}' has version {} of its format, only version {} is known; use a newer teratron", path.string(),
                     version, kVersion);
  }
  const JsonFields tokenizer(fields.object("tokenizer"), path);
  return CorpusSidecar{.tokenizer = {.hash = tokenizer.string("hash"),
                                     .vocab_size = tokenizer.integer("vocab_size", 1, kMost),
                                     .name = tokenizer.string("name")},
                       .unit = unit_from(fields),
                       .documents = fields.integer("documents", 0, kMost),
                       .sequences = fields.integer("sequences", 0, kMost),
                       .tokens = fields.integer("tokens", 0, kMost),
                       .bin = file_from(fields.object("bin"), path),
                       .idx = file_from(fields.object("idx"), path)};
}

void require_written_sizes(const fs::path& prefix, const CorpusSidecar& sidecar) {
  for (const auto& [path, file] :
       {std::pair(bin_path(prefix), sidecar.bin), std::pair(idx_path(prefix), sidecar.idx)}) {
    const std::string fault = size_fault(path, file);
    if (fault.empty()) continue;
    throw_user_error(
        "{}, says '{}'; copy the corpus again, or remove that file if another program has made the corpus anew", fault,
        sidecar_path(prefix).string());
  }
}

void require_tokenizer(const fs::path& prefix, const Tokenizer& tokenizer, std::string_view name) {
  const std::optional<CorpusSidecar> sidecar = read_sidecar(prefix);
  if (!sidecar) return;
  require_written_sizes(prefix, *sidecar);
  const TokenizerIdentity identity = identity_of(tokenizer, std::string(name));
  if (identity.hash == sidecar->tokenizer.hash) return;
  throw_user_error(
      "the corpus '{}' was made with the tokenizer {}, and this is another one: {}; use the corpus' own, or "
      "tokenise the text again",
      prefix.string(), description_of(sidecar->tokenizer), description_of(identity));
}

void require_whole_documents(const fs::path& prefix) {
  const std::optional<CorpusSidecar> sidecar = read_sidecar(prefix);
  if (!sidecar || sidecar->unit == SequenceUnit::kDocument) return;
  if (sidecar->unit == SequenceUnit::kTurn) {
    throw_user_error("the corpus '{}' is one of chats; train with --sft, which learns the assistant's words alone",
                     prefix.string());
  }
  if (sidecar->unit == SequenceUnit::kPair) {
    throw_user_error("the corpus '{}' is one of pairs of answers; train with --dpo, which prefers the chosen ones",
                     prefix.string());
  }
  throw_user_error(
      "the corpus '{}' is split into sentences for BERT, and nothing ends its documents; for GPT, tokenise the text "
      "again "
      "without --split-sentences",
      prefix.string());
}

bool holds_chats(const fs::path& prefix) {
  const std::optional<CorpusSidecar> sidecar = read_sidecar(prefix);
  return sidecar && sidecar->unit == SequenceUnit::kTurn;
}

void require_chats(const fs::path& prefix) {
  if (holds_chats(prefix)) return;
  throw_user_error(
      "the corpus '{}' does not say which words are to be learned; make it by 'teratron data chat', or leave out --sft "
      "to learn all of them",
      prefix.string());
}

void require_pairs(const fs::path& prefix) {
  const std::optional<CorpusSidecar> sidecar = read_sidecar(prefix);
  if (sidecar && sidecar->unit == SequenceUnit::kPair) return;
  throw_user_error(
      "the corpus '{}' has no pairs of answers, which --dpo compares; make them by 'teratron data preferences'",
      prefix.string());
}

CorpusVerification verify_corpus(const fs::path& prefix) {
  const std::vector<fs::path> files = files_of_corpus(prefix);
  if (std::error_code none; std::ranges::none_of(files, [&](const fs::path& file) { return fs::exists(file, none); })) {
    throw_user_error("'{}' is no tokenised corpus: there is neither '{}' nor '{}'; name the PREFIX of a corpus",
                     prefix.string(), files[0].string(), files[1].string());
  }
  CorpusVerification found{.sidecar = read_sidecar(prefix)};
  for (const fs::path& path : {bin_path(prefix), idx_path(prefix)}) {
    std::error_code missing;  // opening reports a missing file
    const std::uintmax_t size = fs::file_size(path, missing);
    if (!missing) found.bytes += size;
  }
  if (found.sidecar) {
    for (const auto& [path, file] :
         {std::pair(bin_path(prefix), found.sidecar->bin), std::pair(idx_path(prefix), found.sidecar->idx)}) {
      std::error_code ignored;
      if (!fs::exists(path, ignored)) continue;
      if (std::string fault = content_fault(path, file); !fault.empty()) found.faults.push_back(std::move(fault));
    }
  }
  try {
    const IndexedDataset dataset = IndexedDataset::open(prefix);
    found.documents = dataset.documents();
    found.tokens = dataset.tokens();
    if (found.sidecar) add_counts_faults(dataset, *found.sidecar, found.faults);
    dataset.check_vocabulary(found.sidecar ? found.sidecar->tokenizer.vocab_size : kMostTokens);
  } catch (const UserError& error) {
    found.faults.emplace_back(error.what());
  }
  return found;
}

}  // namespace teratron

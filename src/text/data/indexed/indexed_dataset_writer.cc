#include "data/indexed/indexed_dataset_writer.h"

#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

template <class T>
void write_value(ChecksummedFile& file, T value) {
  file.write_values(std::span<const T>(&value, 1));
}

// The new .bin must never stand beside the old .idx or sidecar.
void remove_old(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw_environment_error("cannot replace '{}': {}", path.string(), error.message());
}

// A corpus is three files, which no device, pipe or standard output holds, and which have a name.
std::filesystem::path with_room_for_files(std::filesystem::path prefix) {
  if (const std::filesystem::path name = prefix.filename(); name.empty() || name == "." || name == "..") {
    throw_user_error(
        "'{}' is no name for a corpus, which is several files, PREFIX.bin beside others; give a PREFIX: {}",
        prefix.string(), (prefix / "corpus").string());
  }
  std::error_code missing;
  if (!is_standard_stream(prefix) && !std::filesystem::is_other(prefix, missing)) return prefix;
  throw_user_error("'{}' is {}, and a corpus is several files, PREFIX.bin beside others; give a PREFIX for their names",
                   prefix.string(), is_standard_stream(prefix) ? "standard output" : "a device, a pipe or a socket");
}

}  // namespace

IndexedDatasetWriter::IndexedDatasetWriter(std::filesystem::path prefix, std::int64_t vocab_size)
    : prefix_(with_room_for_files(std::move(prefix))),
      lock_(prefix_),
      vocab_size_(vocab_size),
      token_type_(token_type_for(vocab_size)),
      token_file_(bin_path(prefix_)) {}

IndexedDatasetWriter::IndexedDatasetWriter(std::filesystem::path prefix, TokenType token_type)
    : prefix_(with_room_for_files(std::move(prefix))),
      lock_(prefix_),
      token_type_(token_type),
      token_file_(bin_path(prefix_)) {}

void IndexedDatasetWriter::add_stored_sequences(std::span<const std::int32_t> lengths) {
  lengths_.insert(lengths_.end(), lengths.begin(), lengths.end());
  tokens_ = std::accumulate(lengths.begin(), lengths.end(), tokens_);
}

void IndexedDatasetWriter::add_sequence(std::span<const std::int32_t> tokens) {
  if (tokens.size() > std::size_t{std::numeric_limits<std::int32_t>::max()}) {
    throw_user_error("a document of {} tokens is too long for the format, which allows 2147483647; split it",
                     tokens.size());
  }
  for (const std::int32_t token : tokens) {
    check(token >= 0 && token < vocab_size_, "add_sequence: a token outside the vocabulary");
  }
  if (token_type_ == TokenType::kU16) {
    narrow_.assign(tokens.begin(), tokens.end());
    write_tokens(std::span<const std::uint16_t>(narrow_));
  } else {
    write_tokens(tokens);
  }
  lengths_.push_back(static_cast<std::int32_t>(tokens.size()));
  tokens_ += static_cast<std::int64_t>(tokens.size());
}

void IndexedDatasetWriter::write_index(ChecksummedFile& file) const {
  file.write_values(std::span<const char>(kIndexMagic));
  write_value(file, kIndexVersion);
  write_value(file, static_cast<std::uint8_t>(token_type_));
  write_value(file, static_cast<std::uint64_t>(lengths_.size()));
  write_value(file, static_cast<std::uint64_t>(first_sequences_.size()));
  file.write_values(std::span<const std::int32_t>(lengths_));
  std::int64_t offset = 0;
  for (const std::int32_t length : lengths_) {
    write_value(file, offset);
    offset += length * size_of(token_type_);
  }
  file.write_values(std::span<const std::int64_t>(first_sequences_));
}

void IndexedDatasetWriter::finish(const std::optional<TokenizerIdentity>& tokenizer, SequenceUnit unit) {
  check_equal(first_sequences_.back(), sequences(), "finish: sequences that belong to a document");
  index_file_.emplace(idx_path(prefix_));
  write_index(*index_file_);
  if (tokenizer) {
    sidecar_.emplace(sidecar_path(prefix_));
    CorpusFile bin = token_file_.written();
    bin.blocks = FileBlocks{.bytes = kChecksumBlockBytes, .checksums = token_blocks_.digests()};
    sidecar_->write(text_of({.tokenizer = *tokenizer,
                             .unit = unit,
                             .documents = documents(),
                             .sequences = sequences(),
                             .tokens = tokens_,
                             .bin = std::move(bin),
                             .idx = index_file_->written()}));
    sidecar_->sync();
  }
  // A full disk fails here, while an older dataset of this name is still whole.
  index_file_->sync();
  token_file_.sync();
}

void IndexedDatasetWriter::publish() {
  remove_old(idx_path(prefix_));
  remove_old(sidecar_path(prefix_));
  sync_folder(prefix_.has_parent_path() ? prefix_.parent_path() : std::filesystem::path("."));
  token_file_.commit();
  if (sidecar_) sidecar_->commit();
  index_file_->commit();
}

}  // namespace teratron

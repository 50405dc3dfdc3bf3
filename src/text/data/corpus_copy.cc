#include "data/corpus_copy.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/files/free_place.h"
#include "data/data_path.h"
#include "data/indexed/indexed_dataset_writer.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

void require_agreement(const IndexedShard& first, const std::optional<CorpusSidecar>& first_sidecar,
                       const IndexedShard& other, const std::optional<CorpusSidecar>& sidecar) {
  const std::string a = first.prefix().string(), b = other.prefix().string();
  if (first.token_type() != other.token_type()) {
    throw_user_error("'{}' stores tokens as {}, '{}' as {}; tokenise both with one tokenizer", a,
                     name_of(first.token_type()), b, name_of(other.token_type()));
  }
  if (first_sidecar.has_value() != sidecar.has_value()) {
    throw_user_error(
        "'{}' says which tokenizer made it, '{}' does not; tokenise it again, or remove '{}' if you know that one "
        "tokenizer made both",
        sidecar ? b : a, sidecar ? a : b, sidecar_path(sidecar ? b : a).string());
  }
  if (!sidecar) return;
  if (const TokenizerIdentity& one = first_sidecar->tokenizer, &two = sidecar->tokenizer; one.hash != two.hash) {
    throw_user_error("'{}' was made with the tokenizer '{}' ({}), '{}' with '{}' ({}); tokenise both with one", a,
                     one.name, one.hash, b, two.name, two.hash);
  }
  for (const auto& [unit, content, command] :
       {std::tuple{SequenceUnit::kTurn, "chats", "data chat"},
        std::tuple{SequenceUnit::kPair, "pairs of answers", "data preferences"}}) {
    const bool is_other = sidecar->unit == unit;
    if (is_other == (first_sidecar->unit == unit)) continue;
    throw_user_error("'{}' is of {}, '{}' is not; make both by '{}', or none", is_other ? b : a, content,
                     is_other ? a : b, command);
  }
  if (is_sentence(first_sidecar->unit) != is_sentence(sidecar->unit)) {
    const bool is_split = is_sentence(sidecar->unit);
    throw_user_error("'{}' is split into sentences, '{}' is not; tokenise both with --split-sentences, or none",
                     is_split ? b : a, is_split ? a : b);
  }
}

[[noreturn]] void throw_damaged(const fs::path& file) {
  throw_user_error(
      "'{}' is damaged: its checksum is not the one that it was written with; copy the corpus again, or "
      "tokenise the text again; nothing was written",
      file.string());
}

// The .bin of a shard as stored, a block at a time. Each block that is read is compared with its checksum in the
// sidecar; with a sidecar from before blocks had checksums the whole file is compared first.
class StoredTokens {
 public:
  StoredTokens(const IndexedShard& shard, const std::optional<CorpusSidecar>& sidecar) : shard_(shard) {
    if (sidecar && sidecar->bin.blocks) blocks_ = &*sidecar->bin.blocks;
    if (blocks_ != nullptr) block_bytes_ = static_cast<std::uint64_t>(blocks_->bytes);
    if (sidecar && blocks_ == nullptr && shard_.bin_checksum() != sidecar->bin.checksum) {
      throw_damaged(bin_path(shard_.prefix()));
    }
  }

  // Reads the block of the byte `at`, unless it is loaded. Returns whether it has read.
  bool move_to(std::uint64_t at) {
    if (at >= begin_ && at < begin_ + bytes_.size()) return false;
    const std::uint64_t block = at / block_bytes_;
    begin_ = block * block_bytes_;
    bytes_.resize(std::min(block_bytes_, shard_.bin_bytes() - begin_));
    shard_.read_bytes(begin_, bytes_);
    if (blocks_ != nullptr &&
        (block >= blocks_->checksums.size() || block_checksum_of(bytes_) != blocks_->checksums[block])) {
      throw_damaged(bin_path(shard_.prefix()));
    }
    return true;
  }
  // The loaded bytes from `at` on, before `end`.
  std::span<const std::byte> from(std::uint64_t at, std::uint64_t end) const {
    return std::span(bytes_).subspan(at - begin_, std::min(end, begin_ + bytes_.size()) - at);
  }

 private:
  const IndexedShard& shard_;
  const FileBlocks* blocks_ = nullptr;
  std::uint64_t block_bytes_ = kChecksumBlockBytes;
  std::uint64_t begin_ = 0;  // offset of bytes_ in the file
  std::vector<std::byte> bytes_;
};

class DocumentCopy {
 public:
  DocumentCopy(const CopySource& source, std::span<const fs::path> outs, std::span<const std::uint8_t> parts)
      : source_(source), parts_(parts) {
    for (const fs::path& out : outs) {
      if (out.has_parent_path()) make_folders(out.parent_path());
      writers_.push_back(std::make_unique<IndexedDatasetWriter>(out, source.token_type));
    }
  }

  void run(const std::function<void(double)>& progress) {
    const auto documents = static_cast<double>(std::max<std::int64_t>(1, source_.dataset->documents()));
    for (std::size_t shard = 0; shard < source_.dataset->shards().size(); ++shard) {
      copy_shard(source_.dataset->shards()[shard], source_.sidecars[shard], [&] {
        if (progress) progress(static_cast<double>(document_) / documents);
      });
    }
  }

  std::vector<CopiedCorpus> commit(std::span<const fs::path> outs) {
    const std::optional<CorpusSidecar>& sidecar = source_.sidecars.front();
    std::vector<CopiedCorpus> copied;
    for (std::size_t i = 0; i < outs.size(); ++i) {
      IndexedDatasetWriter& writer = *writers_[i];
      if (writer.documents() == 0) {
        throw_user_error("there would be no documents in '{}'; nothing was written", outs[i].string());
      }
      copied.push_back({outs[i], writer.documents(), writer.sequences(), writer.tokens()});
      writer.finish(sidecar ? std::optional(sidecar->tokenizer) : std::nullopt,
                    sidecar ? sidecar->unit : SequenceUnit::kDocument);
    }
    for (const auto& writer : writers_) writer->publish();
    return copied;
  }

 private:
  template <class OnRead>
  void copy_shard(const IndexedShard& shard, const std::optional<CorpusSidecar>& sidecar, const OnRead& on_read) {
    StoredTokens tokens(shard, sidecar);
    for (std::int64_t document = 0; document < shard.documents(); ++document, ++document_) {
      const std::size_t part = parts_.empty() ? 0 : parts_[static_cast<std::size_t>(document_)];
      if (part >= writers_.size()) continue;
      if (copy_document(shard, document, tokens, *writers_[part])) on_read();
    }
    on_read();
  }

  // Whether the file was read.
  bool copy_document(const IndexedShard& shard, std::int64_t document, StoredTokens& tokens,
                     IndexedDatasetWriter& writer) const {
    const std::int64_t first = shard.first_sequence(document), end = shard.first_sequence(document + 1);
    const auto lengths = std::span(shard.index().lengths());
    writer.add_stored_sequences(
        lengths.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first)));
    const TokenRange range = shard.document(document);
    const auto token_bytes = static_cast<std::uint64_t>(size_of(source_.token_type));
    const std::uint64_t end_byte = static_cast<std::uint64_t>(range.end) * token_bytes;
    bool reads = false;
    for (std::uint64_t at = static_cast<std::uint64_t>(range.begin) * token_bytes; at < end_byte;) {
      reads = tokens.move_to(at) || reads;
      const std::span<const std::byte> piece = tokens.from(at, end_byte);
      writer.add_stored_bytes(piece);
      at += piece.size();
    }
    writer.end_document();
    return reads;
  }

  const CopySource& source_;
  std::span<const std::uint8_t> parts_;
  std::vector<std::unique_ptr<IndexedDatasetWriter>> writers_;
  std::int64_t document_ = 0;
};

}  // namespace

void require_other_places(const CopySource& source, std::span<const fs::path> outs) {
  std::vector<fs::path> read, written;
  for (const IndexedShard& shard : source.dataset->shards()) read.push_back(bin_path(shard.prefix()));
  for (const fs::path& out : outs) written.push_back(bin_path(out));
  require_separate(read, written);
}

CopySource open_copy_source(std::span<const std::string> words) {
  CopySource source{.dataset = open_corpus(words)};
  const std::span<const IndexedShard> shards = source.dataset->shards();
  source.token_type = shards.front().token_type();
  for (const IndexedShard& shard : shards) {
    const std::optional<CorpusSidecar>& sidecar = source.sidecars.emplace_back(read_sidecar(shard.prefix()));
    require_agreement(shards.front(), source.sidecars.front(), shard, sidecar);
    if (!sidecar) continue;
    require_written_sizes(shard.prefix(), *sidecar);
    if (shard.index().checksum() != sidecar->idx.checksum) throw_damaged(idx_path(shard.prefix()));
  }
  return source;
}

std::vector<CopiedCorpus> copy_documents(const CopySource& source, std::span<const fs::path> outs,
                                         std::span<const std::uint8_t> parts,
                                         const std::function<void(double)>& progress) {
  check(parts.empty() || std::cmp_equal(parts.size(), source.dataset->documents()), "copy_documents: parts");
  require_other_places(source, outs);
  DocumentCopy copy(source, outs, parts);
  copy.run(progress);
  return copy.commit(outs);
}

}  // namespace teratron

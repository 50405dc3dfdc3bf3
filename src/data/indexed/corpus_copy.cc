#include "data/indexed/corpus_copy.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/files/file.h"
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
  if (first_sidecar->unit != sidecar->unit) {
    const bool is_split = sidecar->unit == SequenceUnit::kSentence;
    throw_user_error("'{}' is split into sentences, '{}' is not; tokenise both with --split-sentences, or none",
                     is_split ? b : a, is_split ? a : b);
  }
}

class DocumentCopy {
 public:
  DocumentCopy(const CopySource& source, std::span<const fs::path> outs, std::span<const std::uint8_t> parts)
      : source_(source), parts_(parts) {
    for (const fs::path& out : outs) {
      if (out.has_parent_path()) make_folders(out.parent_path());
      writers_.push_back(std::make_unique<IndexedDatasetWriter>(out, source.token_type));
    }
    reads_all_ = std::ranges::all_of(parts, [&](std::uint8_t part) { return part < outs.size(); });
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
  template <class Told>
  void copy_shard(const IndexedShard& shard, const std::optional<CorpusSidecar>& sidecar, const Told& told) {
    constexpr std::int64_t kTokensInMemory = std::int64_t{8} << 20;
    Checksum checksum;
    std::int64_t released = 0;  // tokens before it are no longer in memory
    for (std::int64_t document = 0; document < shard.documents(); ++document, ++document_) {
      const TokenRange range = shard.document(document);
      if (reads_all_ && sidecar) checksum.update(shard.stored(range));
      const std::size_t part = parts_.empty() ? 0 : parts_[static_cast<std::size_t>(document_)];
      if (part < writers_.size()) copy_document(shard, document, *writers_[part]);
      if (range.end - released < kTokensInMemory) continue;
      shard.release({released, range.end});
      released = range.end;
      told();
    }
    told();
    if (!reads_all_ || !sidecar || checksum.digest() == sidecar->bin.checksum) return;
    throw_user_error(
        "'{}' is damaged: its checksum is not the one that it was written with; copy the corpus again, or "
        "tokenise the text again; nothing was written",
        bin_path(shard.prefix()).string());
  }

  static void copy_document(const IndexedShard& shard, std::int64_t document, IndexedDatasetWriter& writer) {
    const std::int64_t end = shard.first_sequence(document + 1);
    for (std::int64_t sequence = shard.first_sequence(document); sequence < end; ++sequence) {
      writer.add_stored_sequence(shard.stored(shard.sequence(sequence)));
    }
    writer.end_document();
  }

  const CopySource& source_;
  std::span<const std::uint8_t> parts_;
  std::vector<std::unique_ptr<IndexedDatasetWriter>> writers_;
  std::int64_t document_ = 0;
  bool reads_all_ = false;
};

}  // namespace

void require_other_places(const CopySource& source, std::span<const fs::path> outs) {
  std::set<fs::path> taken;
  for (const IndexedShard& shard : source.dataset->shards())
    taken.insert(fs::weakly_canonical(bin_path(shard.prefix())));
  for (const fs::path& out : outs) {
    if (taken.insert(fs::weakly_canonical(bin_path(out))).second) continue;
    throw_user_error("'{}' is read or written by this command already; choose another name for the result",
                     out.string());
  }
}

CopySource open_copy_source(std::span<const std::string> words) {
  CopySource source{.dataset = open_corpus(words)};
  const std::span<const IndexedShard> shards = source.dataset->shards();
  source.token_type = shards.front().token_type();
  for (const IndexedShard& shard : shards) {
    const std::optional<CorpusSidecar>& sidecar = source.sidecars.emplace_back(read_sidecar(shard.prefix()));
    require_agreement(shards.front(), source.sidecars.front(), shard, sidecar);
    if (sidecar) require_written_sizes(shard.prefix(), *sidecar);
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

#include "corpus/dedup/dedup_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/files/file.h"
#include "base/host/threads.h"
#include "corpus/dedup/band_index.h"
#include "corpus/dedup/minhash.h"
#include "corpus/words.h"

namespace teratron {
namespace {

constexpr double kLeastJaccard = 0.3;  // sketches of this size do not resolve less

using NgramSet = std::vector<std::uint64_t>;  // sorted, each once

NgramSet ngram_set(std::string_view text, std::int64_t count) {
  NgramSet set = shingles_of(text, count);
  std::ranges::sort(set);
  set.erase(std::ranges::unique(set).begin(), set.end());
  return set;
}

// Groups of documents, each known by its first one. Safe to use from many threads.
class DocumentGroups {
 public:
  void resize(std::int64_t documents) {
    for (std::int64_t i = std::ssize(first_); i < documents; ++i) first_.push_back(i);
  }
  bool are_together(std::int64_t a, std::int64_t b) {
    const std::lock_guard lock(mutex_);
    return find(a) == find(b);
  }
  void join(std::int64_t a, std::int64_t b) {
    const std::lock_guard lock(mutex_);
    a = find(a);
    b = find(b);
    at(std::max(a, b)) = std::min(a, b);
  }
  // Called after the last join(); first_of() then needs no lock.
  void settle() {
    for (std::int64_t i = 0; i < std::ssize(first_); ++i) at(i) = find(i);
  }
  std::int64_t first_of(std::int64_t document) const { return first_[static_cast<std::size_t>(document)]; }
  std::int64_t count_groups() const {  // of two documents and more
    std::vector<bool> has_others(first_.size());
    for (std::int64_t i = 0; i < std::ssize(first_); ++i) {
      if (first_of(i) != i) has_others[static_cast<std::size_t>(first_of(i))] = true;
    }
    return std::ranges::count(has_others, true);
  }

 private:
  std::int64_t& at(std::int64_t document) { return first_[static_cast<std::size_t>(document)]; }
  std::int64_t find(std::int64_t document) {
    while (at(document) != document) {
      at(document) = at(at(document));
      document = at(document);
    }
    return document;
  }

  std::mutex mutex_;
  std::vector<std::int64_t> first_;
};

// The sets of recently compared documents. They are reused mostly within one meeting: a pair's bands are spread over
// all parts of the index.
class SetCache {
 public:
  SetCache(const Spool& spool, std::int64_t ngram) : spool_(spool), ngram_(ngram) {}

  const NgramSet& of(std::int64_t document) {
    const auto [found, is_new] = sets_.try_emplace(document);
    if (is_new) {
      found->second = ngram_set(spool_.read(document).text, ngram_);
      elements_ += found->second.size();
    }
    return found->second;
  }
  void trim() {  // invalidates references
    if (elements_ < kMostElements) return;
    sets_.clear();
    elements_ = 0;
  }

 private:
  static constexpr std::size_t kMostElements = std::size_t{1} << 19;  // 4 MiB
  const Spool& spool_;
  std::int64_t ngram_;
  std::unordered_map<std::int64_t, NgramSet> sets_;
  std::size_t elements_ = 0;
};

class DedupStage final : public Stage {
 public:
  explicit DedupStage(DedupOptions options)
      : options_(std::move(options)), shape_(band_shape(options_.jaccard)), index_(options_.folder) {}

  std::string_view name() const override { return "dedup"; }
  bool needs_survey() const override { return true; }

  std::vector<std::uint64_t> measure(const Document& document) const override {
    return band_hashes(shingles_of(document.text, options_.ngram), shape_);
  }

  void note(std::int64_t number, const std::vector<std::uint64_t>& hashes) override {
    for (const std::uint64_t hash : hashes) index_.add(hash, number);
  }

  void settle(const Spool& spool) override {
    spool_ = &spool;
    index_.end_writing();
    groups_.resize(spool.size());
    constexpr std::int64_t kPartsPerTask = 1;
    parallel_for(BandIndex::kParts, kPartsPerTask, [&](std::int64_t begin, std::int64_t end) {
      SetCache sets(spool, options_.ngram);
      for (; begin < end; ++begin) {
        index_.for_each_meeting(begin, [&](std::span<const BandIndex::Entry> meeting) { compare(meeting, sets); });
      }
    });
    groups_.settle();
  }

  StageOutput process(Document document) const override {
    const std::int64_t first = groups_.first_of(document.number);
    if (first == document.number) return kept(std::move(document));
    return dropped("duplicate", "of " + spool_->origin(first));
  }

  std::vector<Fact> facts() const override {
    std::vector<Fact> facts = {{"ngram", options_.ngram},
                               {"jaccard", options_.jaccard},
                               {"hashes", shape_.bands * shape_.rows},
                               {"bands", shape_.bands},
                               {"groups", groups_.count_groups()}};
    for (const double similarity : {0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9}) {
      facts.push_back({fmt::format("found_at_{}", similarity), shape_.meeting_probability(similarity)});
    }
    return facts;
  }

 private:
  // Compares each document with earlier ones that are not in its group. The groups do not depend on the order of
  // comparisons, since only pairs that change nothing are skipped.
  void compare(std::span<const BandIndex::Entry> meeting, SetCache& sets) {
    std::vector<std::vector<std::int64_t>> parts;  // documents of a meeting that are in one group
    for (const BandIndex::Entry& entry : meeting) {
      const std::int64_t b = entry.document;
      std::vector<std::int64_t>* own = nullptr;
      for (std::vector<std::int64_t>& part : parts) {
        const bool is_one_group = groups_.are_together(part.front(), b) ||
                                  std::ranges::any_of(part, [&](std::int64_t a) { return are_duplicates(a, b, sets); });
        if (!is_one_group) continue;
        groups_.join(part.front(), b);
        if (own == nullptr) own = &part;
      }
      if (own == nullptr) own = &parts.emplace_back();
      own->push_back(b);
    }
  }

  bool are_duplicates(std::int64_t a, std::int64_t b, SetCache& sets) const {
    sets.trim();
    const NgramSet& first = sets.of(a);  // references stay valid when a set is added
    return jaccard(first, sets.of(b)) > options_.jaccard;
  }

  DedupOptions options_;
  BandShape shape_;
  BandIndex index_;
  DocumentGroups groups_;
  const Spool* spool_ = nullptr;
};

}  // namespace

std::unique_ptr<Stage> make_dedup_stage(DedupOptions options) {
  return std::make_unique<DedupStage>(std::move(options));
}

void DedupSettings::add_fields(FieldList& list) {
  list.add("jaccard", &options.jaccard, "X", "documents whose sets of n-grams have a higher similarity are duplicates");
  list.add("shingle", &options.ngram, "N", "length of n-grams in words").between(1, 100);
}

Faults DedupSettings::faults(bool /*runs*/) const {
  Faults faults;
  faults.add_if(!(options.jaccard >= kLeastJaccard && options.jaccard < 1), "{} is a share, from {} to below 1",
                Flag{"jaccard"}, kLeastJaccard);
  return faults;
}

std::unique_ptr<Stage> DedupSettings::make(const StreamOptions& stream) const {
  DedupOptions made = options;
  made.folder = folder_for_temporaries(stream.out);
  return make_dedup_stage(std::move(made));
}

}  // namespace teratron

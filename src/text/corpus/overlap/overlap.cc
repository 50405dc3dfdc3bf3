#include "corpus/overlap/overlap.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/host/threads.h"
#include "corpus/overlap/bloom_filter.h"
#include "corpus/stream/document_source.h"
#include "corpus/words.h"

namespace teratron {
namespace {

using Ngrams = std::vector<std::uint64_t>;

// The n-grams of the test set in order, each once, with its count and whether it was found.
class TestNgrams {
 public:
  explicit TestNgrams(Ngrams all) {
    std::ranges::sort(all);
    for (const std::uint64_t ngram : all) {
      if (distinct_.empty() || distinct_.back() != ngram) {
        distinct_.push_back(ngram);
        times_.push_back(0);
      }
      ++times_.back();
    }
    found_ = std::make_unique<std::atomic<bool>[]>(distinct_.size());
  }

  // Called from any thread.
  void look_for(std::uint64_t ngram) {
    const auto found = std::ranges::lower_bound(distinct_, ngram);
    if (found == distinct_.end() || *found != ngram) return;
    found_[static_cast<std::size_t>(found - distinct_.begin())].store(true, std::memory_order_relaxed);
  }
  void look_in(const BloomFilter& filter) {
    for (std::size_t i = 0; i < distinct_.size(); ++i) found_[i] = filter.may_have(distinct_[i]);
  }
  void count(OverlapCounts& counts) const {
    counts.distinct_ngrams = std::ssize(distinct_);
    for (std::size_t i = 0; i < distinct_.size(); ++i) {
      counts.test_ngrams += times_[i];
      if (!found_[i]) continue;
      counts.found += times_[i];
      ++counts.distinct_found;
    }
  }
  bool empty() const { return distinct_.empty(); }

 private:
  Ngrams distinct_;
  std::vector<std::int32_t> times_;
  std::unique_ptr<std::atomic<bool>[]> found_;
};

class NgramReader {
 public:
  NgramReader(const std::vector<std::filesystem::path>& files, const std::string& text_key,
              const OverlapOptions& options)
      : options_(options), source_(files, options.format, text_key, options.batch_bytes) {}

  // Gives the n-grams of the next documents, a list each; false at the end.
  bool next(std::vector<Ngrams>& ngrams) {
    if (!source_.next(batch_)) return false;
    if (!batch_.bad.empty()) throw UserError(batch_.bad.front().fault);
    ngrams.assign(batch_.documents.size(), {});
    constexpr std::int64_t kDocumentsPerTask = 8;
    parallel_for(std::ssize(ngrams), kDocumentsPerTask, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        ngrams[i] = ngrams_of(words_of(batch_.documents[i].text), options_.ngram);
      }
    });
    return true;
  }
  double share() const { return source_.share(); }

 private:
  const OverlapOptions& options_;
  FileSource source_;
  DocumentSource::Batch batch_;
};

TestNgrams read_test_set(const OverlapOptions& options, OverlapCounts& counts) {
  NgramReader reader(options.test, options.test_text_key.empty() ? options.text_key : options.test_text_key, options);
  Ngrams all;
  for (std::vector<Ngrams> batch; reader.next(batch);) {
    counts.test_documents += std::ssize(batch);
    for (const Ngrams& ngrams : batch) all.insert(all.end(), ngrams.begin(), ngrams.end());
  }
  return TestNgrams(std::move(all));
}

}  // namespace

OverlapCounts overlap(const OverlapOptions& options) {
  OverlapCounts counts;
  TestNgrams test = read_test_set(options, counts);
  if (test.empty()) throw_user_error("the test set has no words to look for; check its files");
  std::optional<BloomFilter> filter;
  if (!options.exact) filter.emplace(options.false_positives);
  NgramReader training(options.training, options.text_key, options);
  for (std::vector<Ngrams> batch; training.next(batch);) {
    counts.training_documents += std::ssize(batch);
    for (const Ngrams& ngrams : batch) {
      counts.training_ngrams += std::ssize(ngrams);
      if (filter) std::ranges::for_each(ngrams, [&](std::uint64_t ngram) { filter->add(ngram); });
    }
    if (!filter) {
      parallel_for(std::ssize(batch), 8, [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin) {
          for (const std::uint64_t ngram : batch[static_cast<std::size_t>(begin)]) test.look_for(ngram);
        }
      });
    }
    if (options.progress) options.progress(training.share());
  }
  if (counts.training_ngrams == 0) throw_user_error("the training set has no words to look in; check its files");
  if (filter) {
    test.look_in(*filter);
    counts.filter_bytes = filter->bytes();
  }
  test.count(counts);
  return counts;
}

}  // namespace teratron

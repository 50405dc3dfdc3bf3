#include "corpus/overlap/decontaminate_stage.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "corpus/stream/document_source.h"
#include "corpus/words.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

bool ends_sentence(char c) { return c == '.' || c == '!' || c == '?'; }

// The offset `count` characters before `at`, but not before `least`.
std::size_t characters_back(std::string_view text, std::size_t at, std::int64_t count, std::size_t least) {
  while (count > 0 && at > least) {
    --at;
    if (!continues_character(text[at])) --count;
  }
  return at;
}

std::size_t characters_on(std::string_view text, std::size_t at, std::int64_t count) {
  while (count > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && continues_character(text[at])) ++at;
    --count;
  }
  return at;
}

// The n-grams of the evaluation sets, and how often the training set contains each.
class EvaluationNgrams {
 public:
  explicit EvaluationNgrams(const DecontaminateOptions& options) : options_(options) {
    FileSource source(options.evaluation, options.format, options.text_key, std::int64_t{8} << 20);
    for (DocumentSource::Batch batch; source.next(batch);) {
      if (!batch.bad.empty()) throw UserError(batch.bad.front().fault);
      for (const Document& document : batch.documents) add(document.text);
    }
    if (times_.empty()) {
      throw_user_error("the evaluation sets have no text of {} words or more; check their files", options.shortest);
    }
  }

  // Counts the n-grams of a text by their hashes, with repetitions; common ones, too.
  std::vector<std::uint64_t> found_in(std::string_view text) const {
    const std::vector<Word> words = words_of(text);
    std::vector<std::uint64_t> found;
    for (std::size_t i = 0; i < words.size(); ++i) {
      for (const std::size_t length : lengths_) {
        if (i + length > words.size()) continue;
        const std::uint64_t hash = ngram_hash(std::span(words).subspan(i, length));
        if (times_.contains(hash)) found.push_back(hash);
      }
    }
    return found;
  }
  // The share of a text's longest n-grams that are in the evaluation sets.
  double share_in(std::span<const Word> words) const {
    const auto length = static_cast<std::size_t>(options_.longest);
    if (words.size() < length) return 0;
    const std::vector<std::uint64_t> ngrams = ngrams_of(words, options_.longest);
    const auto found = std::ranges::count_if(ngrams, [&](std::uint64_t one) { return times_.contains(one); });
    return static_cast<double>(found) / static_cast<double>(ngrams.size());
  }
  void count(std::uint64_t ngram) { ++times_.at(ngram); }

  // Number of words of an n-gram to cut that begins at a word, or 0.
  std::size_t to_cut_at(std::span<const Word> words) const {
    for (const std::size_t length : lengths_) {
      if (length > words.size()) continue;
      const auto found = times_.find(ngram_hash(words.first(length)));
      if (found != times_.end() && found->second < options_.frequent) return length;
    }
    return 0;
  }

  std::int64_t size() const { return std::ssize(times_); }
  std::int64_t count_frequent() const {
    return std::ranges::count_if(times_, [&](const auto& one) { return one.second >= options_.frequent; });
  }

 private:
  void add(std::string_view text) {
    const std::vector<Word> words = words_of(text);
    if (std::ssize(words) < options_.shortest) return;
    for (const std::uint64_t ngram : ngrams_of(words, options_.longest)) times_.try_emplace(ngram, 0);
    lengths_.insert(std::min(words.size(), static_cast<std::size_t>(options_.longest)));
  }

  const DecontaminateOptions& options_;
  std::unordered_map<std::uint64_t, std::int64_t> times_;  // in the training set
  std::set<std::size_t, std::greater<>> lengths_;          // of the n-grams, the longest first
};

class DecontaminateStage final : public Stage {
 public:
  explicit DecontaminateStage(DecontaminateOptions options) : options_(std::move(options)), ngrams_(options_) {}

  std::string_view name() const override { return "decontaminate"; }
  bool needs_survey() const override { return true; }
  std::vector<std::uint64_t> measure(const Document& document) const override {
    return ngrams_.found_in(document.text);
  }
  void note(std::int64_t /*number*/, const std::vector<std::uint64_t>& found) override {
    for (const std::uint64_t ngram : found) ngrams_.count(ngram);
  }

  StageOutput process(Document document) const override {
    const std::vector<Word> words = words_of(document.text);
    if (const double share = ngrams_.share_in(words); share >= options_.document_share) {
      return dropped("evaluation document", fmt::format("{:.3f} of its n-grams", share));
    }
    const auto pieces = pieces_of(document.text, words);
    if (!pieces) return kept(std::move(document));
    if (pieces->empty()) return dropped("nothing left", "");
    if (std::ssize(*pieces) > options_.most_pieces) {
      return dropped("many pieces", fmt::format("{} of {}", pieces->size(), options_.most_pieces));
    }
    if (pieces->size() > 1) {
      document.record = record_of_piece(json_line_of(document, options_.text_key), document.number);
    }
    StageOutput output;
    for (const std::string_view piece : *pieces) {
      Document& one = output.documents.emplace_back(document);
      one.text = std::string(without_leading_space(piece));
      one.changed = true;
    }
    return output;
  }

  std::vector<Fact> facts() const override {
    return {{"evaluation_ngrams", ngrams_.size()}, {"frequent_ngrams", ngrams_.count_frequent()}};
  }

 private:
  // The pieces that are left of a text; nothing: it has no n-gram to cut.
  std::optional<std::vector<std::string_view>> pieces_of(std::string_view text, std::span<const Word> words) const {
    std::vector<std::string_view> pieces;
    bool is_cut = false;
    const auto add = [&](std::string_view piece) {
      if (static_cast<std::int64_t>(count_characters(piece)) > options_.least_piece) pieces.push_back(piece);
    };
    std::size_t begin = 0;  // start of the text that is in no piece yet
    for (std::size_t i = 0; i < words.size();) {
      const std::size_t length = ngrams_.to_cut_at(words.subspan(i));
      if (length == 0) {
        ++i;
        continue;
      }
      is_cut = true;
      add(text.substr(begin, sentence_end_before(text, words[i].begin, begin) - begin));
      begin = sentence_end_after(text, words[i + length - 1].end);
      while (i < words.size() && words[i].begin < begin) ++i;
    }
    if (!is_cut) return std::nullopt;
    add(text.substr(begin));
    return pieces;
  }

  // The offset after the last end of a sentence that lies the surroundings before `at`; `least` if there is none.
  std::size_t sentence_end_before(std::string_view text, std::size_t at, std::size_t least) const {
    std::size_t end = characters_back(text, at, options_.surroundings, least);
    while (end > least && !ends_sentence(text[end])) --end;
    return end > least ? end + 1 : least;
  }
  std::size_t sentence_end_after(std::string_view text, std::size_t at) const {
    std::size_t end = characters_on(text, at, options_.surroundings);
    while (end < text.size() && !ends_sentence(text[end])) ++end;
    return std::min(end + 1, text.size());
  }

  DecontaminateOptions options_;
  EvaluationNgrams ngrams_;
};

}  // namespace

std::unique_ptr<Stage> make_decontaminate_stage(DecontaminateOptions options) {
  return std::make_unique<DecontaminateStage>(std::move(options));
}

void DecontaminateSettings::add_fields(FieldList& list) {
  list.add("evaluation", &options.evaluation, "FILE", "files of evaluation sets, in the same formats as FILE");
  list.add("cut-ngram", &options.longest, "N", "cut n-grams of N words that are in evaluation sets").between(1, 100);
  list.add("frequent", &options.frequent, "N", "keep n-grams that occur N times or more in FILE").between(1);
  list.add("document-share", &options.document_share, "X",
           "drop documents with this share of their n-grams in evaluation sets");
}

Faults DecontaminateSettings::faults(bool runs) const {
  Faults faults;
  faults.add_if(runs && options.evaluation.empty(), "decontaminate needs evaluation sets; name their files with {}",
                Flag{"evaluation"});
  faults.add_if(!(options.document_share > 0 && options.document_share <= 1), "{} is a share, above 0 and at most 1",
                Flag{"document-share"});
  return faults;
}

std::unique_ptr<Stage> DecontaminateSettings::make(const StreamOptions& stream) const {
  DecontaminateOptions made = options;
  made.format = stream.format;
  made.text_key = stream.text_key;
  made.shortest = std::min(made.shortest, made.longest);
  return make_decontaminate_stage(std::move(made));
}

}  // namespace teratron

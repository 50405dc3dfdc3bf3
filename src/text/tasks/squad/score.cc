#include "tasks/squad/score.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"
#include "tokenizer/word_piece/bert_characters.h"

namespace teratron::squad {
namespace {

utf8proc_category_t category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

// Unicode's Case_Ignorable: characters skipped in the search for a cased letter.
bool is_case_ignorable(char32_t code) {
  // Word_Break = MidLetter, MidNumLet or Single_Quote.
  constexpr std::u32string_view kWithinWords =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  switch (category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return kWithinWords.find(code) != kWithinWords.npos;
  }
}

// Unicode's Cased, for characters that are not ignorable.
bool is_cased(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT: return true;
    default: break;
  }
  // Ordinals, Roman numerals, letters in circles and squares.
  return code == 0xAA || code == 0xBA || (code >= 0x2160 && code <= 0x217F) || (code >= 0x24B6 && code <= 0x24E9) ||
         (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
         (code >= 0x1F170 && code <= 0x1F189);
}

// Whether the first of `letters` that is not ignorable is cased.
template <class Letters>
bool begins_cased(const Letters& letters) {
  const auto found = std::ranges::find_if_not(letters, is_case_ignorable);
  return found != std::ranges::end(letters) && is_cased(*found);
}

// str.lower(): Unicode's full lower case. "\u0130" becomes two characters, and a capital sigma at the end of a word the
// final one: a cased letter comes before it and none after it, ignoring marks and apostrophes.
std::u32string python_lower(std::u32string_view text) {
  constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2;
  std::u32string lower;
  lower.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kCapitalSigma && begins_cased(text.substr(0, i) | std::views::reverse) &&
        !begins_cased(text.substr(i + 1))) {
      lower.push_back(kFinalSigma);
    } else {
      for (const char32_t code : bert::to_lower(text[i])) lower.push_back(code);
    }
  }
  return lower;
}

// White space of str.split(): Unicode's, and the separators U+001C to U+001F.
bool is_python_space(char32_t code) { return class_of(code) == CharClass::kSpace || (code >= 0x1C && code <= 0x1F); }

// The class \w of patterns: letters, numbers and the underscore; no marks.
bool is_python_word(char32_t code) {
  return class_of(code) == CharClass::kLetter || class_of(code) == CharClass::kNumber || code == '_';
}

bool is_ascii_punctuation(char32_t code) {
  return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
         (code >= '{' && code <= '~');
}

std::u32string lower_without_punctuation(std::string_view text) {
  std::u32string codes;
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    text.remove_prefix(step.length);
    if (step.status == Utf8Status::kValid) codes.push_back(step.code);
  }
  codes = python_lower(codes);
  std::erase_if(codes, is_ascii_punctuation);
  return codes;
}

bool is_article(std::u32string_view word) { return word == U"a" || word == U"an" || word == U"the"; }

std::vector<std::string_view> words_of(std::string_view normalized) {
  std::vector<std::string_view> words;
  while (!normalized.empty()) {
    const std::size_t end = std::min(normalized.find(' '), normalized.size());
    words.push_back(normalized.substr(0, end));
    normalized.remove_prefix(std::min(end + 1, normalized.size()));
  }
  return words;
}

struct Points {
  double exact = 0, f1 = 0;
};

Points points_of(const std::string& prediction, const Question& question, Version version) {
  const std::string given = normalized(prediction);
  Points best;
  const auto compare = [&](const std::string& answer) {
    best.exact = std::max(best.exact, given == answer ? 1.0 : 0.0);
    best.f1 = std::max(best.f1, f1(given, answer, version));
  };
  bool has_words = false;
  for (const Answer& answer : question.answers) {
    const std::string text = normalized(answer.text);
    if (version == Version::kSquad2 && text.empty()) continue;
    has_words = true;
    compare(text);
  }
  if (!has_words) compare("");
  return best;
}

void add(Scores& scores, const Points& points, bool predicted) {
  ++scores.questions;
  if (!predicted) ++scores.without_prediction;
  scores.exact_match += points.exact;
  scores.f1 += points.f1;
}

void make_shares(Scores& scores) {
  if (scores.questions == 0) return;
  scores.exact_match *= 100.0 / static_cast<double>(scores.questions);
  scores.f1 *= 100.0 / static_cast<double>(scores.questions);
}

}  // namespace

std::string normalized(std::string_view answer) {
  const std::u32string codes = lower_without_punctuation(answer);
  std::string text;
  bool is_parted = false;  // a space comes before the next character
  const auto append = [&](char32_t code) {
    if (is_parted && !text.empty()) text += ' ';
    is_parted = false;
    append_utf8(code, text);
  };
  for (std::size_t i = 0; i < codes.size();) {
    if (is_python_word(codes[i])) {
      std::size_t end = i;
      while (end < codes.size() && is_python_word(codes[end])) ++end;
      if (is_article(std::u32string_view(codes).substr(i, end - i))) {
        is_parted = true;
      } else {
        for (; i < end; ++i) append(codes[i]);
      }
      i = end;
    } else if (is_python_space(codes[i])) {
      is_parted = true;
      ++i;
    } else {
      append(codes[i++]);
    }
  }
  return text;
}

double f1(std::string_view prediction, std::string_view answer, Version version) {
  std::vector<std::string_view> given = words_of(prediction), right = words_of(answer);
  if (given.empty() && right.empty()) return version == Version::kSquad2 ? 1 : 0;
  std::ranges::sort(given);
  std::ranges::sort(right);
  std::vector<std::string_view> common;
  std::ranges::set_intersection(given, right, std::back_inserter(common));
  if (common.empty()) return 0;
  const auto same = static_cast<double>(common.size());
  const double precision = same / static_cast<double>(given.size()), recall = same / static_cast<double>(right.size());
  return 2 * precision * recall / (precision + recall);
}

ScoresByAnswer score(const Dataset& dataset, const std::map<std::string, std::string>& predictions, Version version) {
  ScoresByAnswer scores;
  for (const Question& question : dataset.questions) {
    if (!question.is_labelled) {
      throw_user_error("the question '{}' has no answers in the data, so it cannot be scored; use a labelled set",
                       question.id);
    }
    const auto found = predictions.find(question.id);
    const bool predicted = found != predictions.end();
    const Points points = predicted ? points_of(found->second, question, version) : Points{};
    add(scores.all, points, predicted);
    add(question.answers.empty() ? scores.without_answer : scores.with_answer, points, predicted);
  }
  for (Scores* each : {&scores.all, &scores.with_answer, &scores.without_answer}) make_shares(*each);
  return scores;
}

}  // namespace teratron::squad

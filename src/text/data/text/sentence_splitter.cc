#include "data/text/sentence_splitter.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"
#include "data/text/text_list.h"
#include "tokenizer/unicode.h"

namespace teratron {
namespace {

using Words = std::span<const std::string_view>;

// Abbreviations after which a sentence continues, whatever follows.
constexpr auto kGoesOn = std::to_array<std::string_view>(
    {"Mr",   "Mrs",  "Ms",   "Mx",  "Dr",  "Drs",  "Prof", "Messrs", "Mme",    "Mlle", "Rev",  "Hon", "Gov", "Sen",
     "Rep",  "Reps", "Sens", "Gen", "Col", "Maj",  "Capt", "Cpt",    "Cmdr",   "Lt",   "Sgt",  "Cpl", "Pvt", "Adm",
     "Brig", "Supt", "Insp", "Det", "Amb", "Pres", "Fr",   "Mt",     "Ft",     "vs",   "Vs",   "cf",  "Cf",  "viz",
     "e.g",  "E.g",  "i.e",  "I.e", "eg",  "ie",   "ca",   "approx", "Approx", "resp", "incl", "esp", "nr"});

// Abbreviations that may precede a number.
constexpr auto kBeforeNumber = std::to_array<std::string_view>(
    {"No",   "no",  "Nos", "nos", "Fig",  "fig",  "Figs", "figs", "Vol",  "vol", "Vols", "vols",
     "p",    "pp",  "Pp",  "Art", "art",  "Arts", "Sec",  "sec",  "Sect", "Ch",  "ch",   "Chap",
     "chap", "Eq",  "eq",  "Eqs", "eqs",  "Op",   "op",   "Pt",   "pt",   "Ver", "ver",  "ed",
     "Tab",  "tab", "Ref", "ref", "Refs", "refs", "Bk",   "Para", "para"});

// Abbreviations that may end a sentence.
constexpr auto kMayEnd = std::to_array<std::string_view>(
    {"Inc",   "Ltd",  "Co",   "Corp", "Bros", "LLC",  "Jr",    "Sr",  "Esq",  "etc",  "al",    "St",   "Ste",
     "Ave",   "Blvd", "Rd",   "Dept", "dept", "Univ", "Assn",  "Est", "est",  "Mfg",  "Ed",    "Eds",  "eds",
     "trans", "Jan",  "Feb",  "Mar",  "Apr",  "Jun",  "Jul",   "Aug", "Sep",  "Sept", "Oct",   "Nov",  "Dec",
     "Mon",   "Tue",  "Tues", "Wed",  "Thu",  "Thur", "Thurs", "Fri", "Sat",  "Sun",  "Calif", "Conn", "Fla",
     "Ill",   "Mass", "Mich", "Minn", "Mo",   "Okla", "Ore",   "Pa",  "Penn", "Tenn", "Tex",   "Va",   "Vt",
     "Wash",  "Wis",  "Ala",  "Ariz", "Ark",  "Colo", "Del",   "Ga",  "Ind",  "Kan",  "Ky",    "Md",   "Mont",
     "Neb",   "Nev",  "Ph",   "Phil", "Ft",   "ft",   "lb",    "lbs", "oz",   "km",   "cm",    "mm",   "kg",
     "hr",    "hrs",  "min",  "sq",   "cu",   "mph",  "rpm",   "max", "Bldg", "Sq",   "Mts",   "Bd"});

constexpr auto kBeginsSentence = std::to_array<std::string_view>(
    {"The",       "This",    "That",    "These",   "Those",  "There", "Then",   "Thus",    "They",    "He",
     "She",       "It",      "We",      "You",     "I",      "A",     "An",     "In",      "On",      "At",
     "As",        "But",     "And",     "Or",      "If",     "When",  "While",  "After",   "Before",  "However",
     "Although",  "Though",  "Since",   "Because", "For",    "From",  "With",   "Without", "What",    "Who",
     "Where",     "Why",     "How",     "Which",   "His",    "Her",   "Its",    "Their",   "Our",     "My",
     "Your",      "Some",    "Many",    "Most",    "Much",   "All",   "Any",    "Not",     "One",     "Two",
     "Three",     "So",      "Such",    "Also",    "During", "By",    "To",     "Under",   "Until",   "Yet",
     "Now",       "Here",    "Another", "Both",    "Each",   "Every", "Few",    "Only",    "Once",    "Later",
     "Meanwhile", "Instead", "Finally", "First",   "Today",  "Nor",   "Other",  "Others",  "Despite", "According",
     "Several",   "Still",   "Even",    "Just",    "Let",    "Is",    "Are",    "Was",     "Were",    "Do",
     "Does",      "Did",     "Can",     "Will",    "Would",  "Could", "Should", "Perhaps", "Maybe",   "Well"});

bool is_in(Words words, std::string_view word) { return std::ranges::find(words, word) != words.end(); }
bool is_one_of(std::string_view characters, char c) { return characters.find(c) != characters.npos; }

// Lower-case letters but for Georgian ones, which begin sentences, too.
bool is_small(char32_t code) {
  const bool is_georgian = code >= 0x10D0 && code < 0x1100;
  return !is_georgian && utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_LL;
}

// The text without surrounding white space.
std::string_view without_spaces(std::string_view text) {
  const auto is_space = [](std::string_view rest) {
    const Utf8Step step = decode_utf8(rest);
    return step.status == Utf8Status::kValid && class_of(step.code) == CharClass::kSpace;
  };
  while (!text.empty() && is_space(text)) text.remove_prefix(decode_utf8(text).length);
  while (!text.empty()) {
    const std::size_t last = last_character(text);
    if (!is_space(text.substr(last)) || last + decode_utf8(text.substr(last)).length != text.size()) break;
    text = text.substr(0, last);
  }
  return text;
}

constexpr std::string_view kEllipsis = "\u2026";
constexpr std::array<std::string_view, 4> kClosing = {"\u201D", "\u2019", "\u00BB", "\u203A"};
constexpr std::array<std::string_view, 9> kOpening = {"\u201C", "\u2018", "\u00AB", "\u2039", "``",
                                                      "\u201E", "\u201A", "\u00BB", "\u203A"};

// Quotes whose closing mark opens in other languages, or follows a space, as in French.
struct QuotePair {
  std::string_view opening, closing;
  bool has_space = false;
};
constexpr auto kQuotePairs = std::to_array<QuotePair>({{"\u201E", "\u201C"},
                                                       {"\u201A", "\u2018"},
                                                       {"\u00BB", "\u00AB"},
                                                       {"\u203A", "\u2039"},
                                                       {"\u00AB", "\u00BB", true},
                                                       {"\u2039", "\u203A", true}});
constexpr std::size_t kLongestQuote = 4096;  // bytes searched for the opening mark

// Ends of sentences in scripts without white space between words, and marks that open or continue a sentence there.
constexpr std::array<std::string_view, 14> kWideClosing = {"\u300D", "\u300F", "\uFF09", "\u3011", "\u3009",
                                                           "\u300B", "\u3015", "\uFF3D", "\uFF5D", "\u3017",
                                                           "\u3019", "\u301B", "\u301E", "\uFF63"};
constexpr std::array<std::string_view, 6> kWideOpening = {"\u300C", "\u300E", "\u3010", "\uFF08", "\u300A", "\u201C"};
constexpr std::array<std::string_view, 10> kWideGoingOn = {"\u3001", "\uFF0C", "\uFF1B", "\uFF1A", "\uFF64",
                                                           "\u060C", "\u061B", "\u055D", "\uFE50", "\uFE51"};

// Whether a character is an ideograph or kana.
bool is_ideograph(char32_t code) {
  return (code >= 0x3040 && code < 0x3130) || (code >= 0x3400 && code < 0x4DC0) || (code >= 0x4E00 && code < 0xA000) ||
         (code >= 0xF900 && code < 0xFB00) || (code >= 0x20000 && code < 0x32400);
}
bool is_any_digit(char32_t code) { return (code >= '0' && code <= '9') || (code >= 0xFF10 && code <= 0xFF19); }

constexpr std::size_t kLongestNote = 64;  // bytes

class SentenceScanner {
 public:
  explicit SentenceScanner(std::string_view text) : text_(text) {}

  std::vector<std::string_view> run() {
    begin_sentence(0);
    for (std::size_t at = begin_; at < text_.size();) {
      const bool is_ascii = static_cast<unsigned char>(text_[at]) < 0x80;
      if (text_[at] == '\n') {
        const std::size_t next = behind_space(at);
        if (is_blank_line(at, next)) end_sentence(at);
        at = next;
      } else if (const std::size_t after_stops = behind_stops(at); after_stops > at) {
        at = pass_stops(at, after_stops);
      } else if (const std::size_t wide = is_ascii ? at : behind_terminals(at); wide > at) {
        at = pass_terminals(wide);
      } else {
        ++at;
      }
    }
    end_sentence(text_.size());
    return std::move(sentences_);
  }

 private:
  // Ends the sentence after the stops in [stop, after_stops), if they do. Returns where to read on.
  std::size_t pass_stops(std::size_t stop, std::size_t after_stops) {
    std::size_t end = behind_closing(after_stops), next = behind_space(end);
    if (next == end) end = behind_wide_closing(end), next = behind_space(end);
    const bool ends = next > end ? next == text_.size() || is_blank_line(end, next) || is_end(stop, after_stops, next)
                                 : is_end_between_ideographs(stop, after_stops, end);
    if (ends) end_sentence(end);
    return next;
  }
  // Ends the sentence after marks of other scripts.
  std::size_t pass_terminals(std::size_t after_stops) {
    const std::size_t end = behind_wide_closing(after_stops), next = behind_space(end);
    if (next == text_.size() || is_blank_line(end, next) || !goes_on_at(next)) end_sentence(end);
    return next;
  }

  char char_at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  // Bytes of the white space character at `i`; 0 if there is none.
  std::size_t space_at(std::size_t i) const {
    if (i == text_.size()) return 0;
    const Utf8Step step = decode_utf8(text_.substr(i));
    return step.status == Utf8Status::kValid && class_of(step.code) == CharClass::kSpace ? step.length : 0;
  }
  std::size_t behind_space(std::size_t i) const {
    while (const std::size_t length = space_at(i)) i += length;
    return i;
  }
  bool is_blank_line(std::size_t begin, std::size_t end) const {
    return std::ranges::count(text_.substr(begin, end - begin), '\n') > 1;
  }
  // The offset after the last of the adjacent stops from `i` on.
  std::size_t behind_stops(std::size_t i) const {
    while (true) {
      if (is_one_of(".?!", char_at(i)) && i < text_.size()) {
        ++i;
      } else if (text_.substr(i).starts_with(kEllipsis)) {
        i += kEllipsis.size();
      } else {
        return i;
      }
    }
  }
  char32_t code_at(std::size_t i) const {
    if (i >= text_.size()) return 0;
    const Utf8Step step = decode_utf8(text_.substr(i));
    return step.status == Utf8Status::kValid ? step.code : 0;
  }
  char32_t code_before(std::size_t i) const {
    if (i == begin_) return 0;
    std::size_t begin = i - 1;
    while (begin > begin_ && continues_character(text_[begin])) --begin;
    return code_at(begin);
  }
  // The offset after the marks from `i` on that end sentences in other scripts, with the stops among them; `i` if the
  // first is no such mark.
  std::size_t behind_terminals(std::size_t i) const {
    const Utf8Step first = decode_utf8(text_.substr(i));
    if (first.status != Utf8Status::kValid || !is_sentence_terminal(first.code)) return i;
    constexpr char32_t kWideStop = 0xFF0E;  // in numbers, too
    if (first.code == kWideStop && is_any_digit(code_before(i)) && is_any_digit(code_at(i + first.length))) return i;
    std::size_t at = i + first.length;
    while (at < text_.size()) {
      const Utf8Step step = decode_utf8(text_.substr(at));
      const bool is_terminal = step.status == Utf8Status::kValid && is_sentence_terminal(step.code);
      const std::size_t next = is_terminal ? at + step.length : behind_stops(at);
      if (next == at) break;
      at = next;
    }
    return at;
  }
  std::size_t behind_wide_closing(std::size_t i) const {
    while (true) {
      const std::size_t after_stops = behind_marks(behind_closing(i), "", kWideClosing);
      if (after_stops == i) return i;
      i = after_stops;
    }
  }
  // Whether the text at `i` belongs to the sentence before it: a comma or another mark that continues or ends it.
  bool goes_on_at(std::size_t i) const {
    const std::string_view rest = text_.substr(i);
    if (is_one_of(",;:)]}.?!", rest.front()) || rest.starts_with(kEllipsis)) return true;
    return std::ranges::any_of(kWideGoingOn, [&](std::string_view mark) { return rest.starts_with(mark); }) ||
           is_sentence_terminal(code_at(i));
  }
  // Whether stops in [stop, after_stops), closed up to `end` and without white space, end a sentence. They do between
  // ideographs or kana, except three dots, which are as often inside one.
  bool is_end_between_ideographs(std::size_t stop, std::size_t after_stops, std::size_t end) const {
    const std::string_view rest = text_.substr(end);
    const bool opens = std::ranges::any_of(kWideOpening, [&](std::string_view mark) { return rest.starts_with(mark); });
    if (!is_ideograph(code_before(stop)) || (!opens && !is_ideograph(code_at(end)))) return false;
    const std::string_view stops = text_.substr(stop, after_stops - stop);
    const bool is_dots = stops.find_first_of("?!") == stops.npos;
    constexpr std::size_t kTwoEllipses = 6;  // bytes, of either form
    return !is_dots || stops.size() == 1 || stops.size() >= kTwoEllipses;
  }
  template <std::size_t N>
  std::size_t behind_marks(std::size_t i, std::string_view single,
                           const std::array<std::string_view, N>& longer) const {
    while (i < text_.size()) {
      const std::string_view rest = text_.substr(i);
      const auto found = std::ranges::find_if(longer, [&](std::string_view mark) { return rest.starts_with(mark); });
      if (found != longer.end()) {
        i += found->size();
      } else if (is_one_of(single, rest.front())) {
        ++i;
      } else {
        break;
      }
    }
    return i;
  }
  std::size_t behind_closing(std::size_t i) const {
    const std::size_t begin = i;
    while (true) {
      i = behind_marks(i, "\"')]}*_", kClosing);
      std::size_t after_stops = behind_note(i);
      if (after_stops == i) after_stops = behind_quote(begin, i);
      if (after_stops == i) return i;
      i = after_stops;
    }
  }
  // The offset after the mark at `i` that closes the quote opened at `begin`.
  std::size_t behind_quote(std::size_t begin, std::size_t i) const {
    const std::string_view rest = text_.substr(i);
    for (const QuotePair& pair : kQuotePairs) {
      std::size_t space = 0;
      if (pair.has_space) {
        const char32_t code = code_at(i);
        space = code == ' ' || code == 0x00A0 || code == 0x202F ? space_at(i) : 0;
        if (space == 0) continue;  // a mark without a space before it closes anyway
      }
      if (!rest.substr(space).starts_with(pair.closing)) continue;
      const std::size_t first = begin - std::min(begin, kLongestQuote);
      const std::string_view before = text_.substr(first, begin - first);
      const std::size_t opened = before.rfind(pair.opening), closed = before.rfind(pair.closing);
      if (opened != before.npos && (closed == before.npos || closed < opened)) return i + space + pair.closing.size();
    }
    return i;
  }
  // "[1]", "[citation needed]": words in brackets.
  std::size_t behind_note(std::size_t i) const {
    if (char_at(i) != '[') return i;
    bool is_behind_word = false;
    for (std::size_t at = i + 1; at < i + kLongestNote; ++at) {
      const char c = char_at(at);
      if (c == ']' && is_behind_word) return at + 1;
      const bool is_word = is_ascii_letter(c) || is_ascii_digit(c);
      if (!is_word && !(is_behind_word && is_one_of(" \n", c))) return i;
      is_behind_word = is_word;
    }
    return i;
  }
  std::size_t behind_opening(std::size_t i) const { return behind_marks(i, "\"'([{*_", kOpening); }

  // The offset of the next text if white space follows the stops in [stop, after_stops).
  bool is_end(std::size_t stop, std::size_t after_stops, std::size_t next) const {
    if (is_one_of(",;:)]}.?!", char_at(next)) || text_.substr(next).starts_with(kEllipsis)) return false;
    const std::size_t word = behind_opening(next);
    const Utf8Step step = word < text_.size() ? decode_utf8(text_.substr(word)) : Utf8Step{};
    if (step.status == Utf8Status::kValid && is_small(step.code)) return false;
    return text_.substr(stop, after_stops - stop) != "." || !goes_on_behind(word_before(stop), word);
  }

  // Letters, digits and stops before a stop; empty if more than a bracket, a quote or a dash precedes them, as in
  // "don't" or "caf\u00E9s".
  std::string_view word_before(std::size_t stop) const {
    std::size_t begin = stop;
    while (begin > begin_ &&
           (is_ascii_letter(text_[begin - 1]) || is_ascii_digit(text_[begin - 1]) || text_[begin - 1] == '.')) {
      --begin;
    }
    const std::string_view word = text_.substr(begin, stop - begin), before = text_.substr(begin_, begin - begin_);
    if (before.empty() || is_one_of(" \t\n\r\v\f([{\"-*_", before.back())) return word;
    if (before.back() == '\'') return before.size() > 1 && is_ascii_letter(before[before.size() - 2]) ? "" : word;
    constexpr std::array<std::string_view, 6> kBefore = {"\u201C", "\u2018", "\u00AB", "\u2013", "\u2014", "\u00A0"};
    return std::ranges::any_of(kBefore, [&](std::string_view mark) { return before.ends_with(mark); }) ? word : "";
  }

  // Whether the sentence continues after this word and a single stop, where the next word begins at `next`.
  bool goes_on_behind(std::string_view word, std::size_t next) const {
    if (word.empty()) return false;
    const bool is_letter_alone = word.size() == 1 && is_ascii_letter(word.front());
    const bool is_number = std::ranges::all_of(word, [](char c) { return is_ascii_digit(c) || c == '.'; });
    const bool is_first = word.data() == text_.data() + first_word_;
    if (is_first && (is_number || is_letter_alone)) return true;
    if (is_in(kGoesOn, word)) return true;
    if (is_in(kBeforeNumber, word) && is_ascii_digit(char_at(next))) return true;
    return (is_letter_alone || has_stops(word) || is_in(kMayEnd, word)) && !begins_sentence(next);
  }
  // "U.S", "Ph.D": one to three letters between stops.
  static bool has_stops(std::string_view word) {
    std::size_t letters = 0, parts = 1;
    for (const char c : word) {
      if (c == '.' ? letters == 0 : !is_ascii_letter(c) || letters == 3) return false;
      parts += c == '.' ? 1 : 0;
      letters = c == '.' ? 0 : letters + 1;
    }
    return parts > 1 && letters > 0;
  }
  bool begins_sentence(std::size_t i) const {
    std::size_t end = i;
    while (is_ascii_letter(char_at(end))) ++end;
    return char_at(end) != '.' && is_in(kBeginsSentence, text_.substr(i, end - i));
  }

  void begin_sentence(std::size_t i) {
    begin_ = behind_space(i);
    first_word_ = behind_opening(begin_);
  }
  void end_sentence(std::size_t end) {
    std::size_t trimmed = end;
    for (std::size_t i = end; i > begin_; trimmed = i) {
      do {
        --i;
      } while (i > begin_ && continues_character(text_[i]));
      if (i + space_at(i) != trimmed) break;
    }
    if (trimmed > begin_) sentences_.push_back(text_.substr(begin_, trimmed - begin_));
    begin_sentence(end);
  }

  std::string_view text_;
  std::size_t begin_ = 0, first_word_ = 0;  // of the current sentence
  std::vector<std::string_view> sentences_;
};

}  // namespace

std::vector<std::string_view> split_sentences(std::string_view text) { return SentenceScanner(text).run(); }

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (const std::string_view whole : lines_of(text)) {
    if (const std::string_view line = without_spaces(whole); !line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace teratron

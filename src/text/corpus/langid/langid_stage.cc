#include "corpus/langid/langid_stage.h"

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"

namespace teratron {
namespace {

// The code as CLD2 writes it, ignoring case; empty if CLD2 has no such language.
std::string as_cld2_writes(const std::string& code) {
  for (int i = 0; i < CLD2::NUM_LANGUAGES; ++i) {
    const std::string known = CLD2::LanguageCode(static_cast<CLD2::Language>(i));
    if (equals_ignoring_case(code, known) && is_language_code(known)) return known;
  }
  return {};
}

// CLD2's code for a language: some of its codes are older than those of ISO 639 and BCP 47.
std::string known_code(const std::string& code) {
  constexpr auto kOtherCodes =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"he", "iw"},
                                                                    {"jv", "jw"},
                                                                    {"fil", "tl"},
                                                                    {"yi-hebr", "yi"},
                                                                    {"nb", "no"},
                                                                    {"zh-cn", "zh"},
                                                                    {"zh-sg", "zh"},
                                                                    {"zh-hans", "zh"},
                                                                    {"zh-hans-cn", "zh"},
                                                                    {"zh-tw", "zh-Hant"},
                                                                    {"zh-hk", "zh-Hant"},
                                                                    {"zh-mo", "zh-Hant"},
                                                                    {"zh-hant-tw", "zh-Hant"},
                                                                    {"zh-hant-hk", "zh-Hant"}});
  std::string small = ascii_lower(code);
  std::ranges::replace(small, '_', '-');
  if (std::string found = as_cld2_writes(small); !found.empty()) return found;
  for (const auto& [other, known] : kOtherCodes) {
    if (small == other) return as_cld2_writes(std::string(known));
  }
  const std::size_t region = small.find('-');  // en-US, pt_BR
  return region == small.npos || small.starts_with("zh") ? std::string() : known_code(small.substr(0, region));
}

// Codes that begin alike, or those of the language if `code` is its name.
std::string advice_for(const std::string& code) {
  std::string codes;
  int listed = 0;
  for (int i = 0; i < CLD2::NUM_LANGUAGES && listed < 8; ++i) {
    const auto language = static_cast<CLD2::Language>(i);
    const std::string known = CLD2::LanguageCode(language), name = CLD2::LanguageName(language);
    const bool is_near = !code.empty() && is_language_code(known) &&
                         (ascii_lower(known[0]) == ascii_lower(code[0]) && known.size() <= 3);
    if (equals_ignoring_case(code, name)) return fmt::format("{} is {}", name, known);
    if (!is_near) continue;
    codes += fmt::format("{}{}", listed++ == 0 ? "" : ", ", known);
  }
  return codes.empty() ? "give a code such as en, de or zh" : "near it are " + codes;
}

class LangidStage final : public Stage {
 public:
  LangidStage(const std::string& code, bool keep_unsure) : code_(known_code(code)), keeps_unsure_(keep_unsure) {
    if (code_.empty()) {
      throw_user_error("'{}' is not a language that CLD2 knows; {}, or another of its codes (--language)", code,
                       advice_for(code));
    }
  }

  std::string_view name() const override { return "langid"; }

  StageOutput process(Document document) const override {
    const DetectedLanguage found = detect_language(document.text);
    const std::string detail = fmt::format("{}, {} %", found.code, found.percent);
    if (found.code != code_) return dropped("language", detail);
    if (!found.is_reliable && !keeps_unsure_) return dropped("unsure", detail);
    return kept(std::move(document));
  }

  std::vector<Fact> facts() const override { return {{"language", code_}}; }

 private:
  std::string code_;
  bool keeps_unsure_;
};

}  // namespace

DetectedLanguage detect_language(std::string_view text) {
  const auto length = static_cast<int>(std::min<std::size_t>(text.size(), std::numeric_limits<int>::max()));
  CLD2::Language languages[3];
  int percents[3], text_bytes = 0;
  double scores[3];
  bool is_reliable = false;
  const CLD2::CLDHints no_hints = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  constexpr bool kIsPlainText = true;
  CLD2::ExtDetectLanguageSummary(text.data(), length, kIsPlainText, &no_hints, 0, languages, percents, scores, nullptr,
                                 &text_bytes, &is_reliable);
  return {
      .code = CLD2::LanguageCode(languages[0]), .percent = percents[0], .is_reliable = is_reliable, .score = scores[0]};
}

bool is_language_code(const std::string& code) {
  const CLD2::Language language = CLD2::GetLanguageFromName(code.c_str());
  return language != CLD2::UNKNOWN_LANGUAGE && code == CLD2::LanguageCode(language);
}

std::unique_ptr<Stage> make_langid_stage(const std::string& code, bool keep_unsure) {
  return std::make_unique<LangidStage>(code, keep_unsure);
}

}  // namespace teratron

#include "corpus/langid_stage.h"

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

class LangidStage final : public Stage {
 public:
  LangidStage(std::string code, bool keep_unsure) : code_(std::move(code)), keeps_unsure_(keep_unsure) {
    if (!is_language_code(code_)) {
      throw_user_error("'{}' is not a language that CLD2 knows; give a code such as en, de or zh (--language)", code_);
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

std::unique_ptr<Stage> make_langid_stage(std::string code, bool keep_unsure) {
  return std::make_unique<LangidStage>(std::move(code), keep_unsure);
}

}  // namespace teratron

// The text that BPE encodes: in NFC where the model asks for it; for SentencePiece with spaces in the place of "▁", its
// sign for them, which it does not distinguish from spaces; and without bytes outside of UTF-8 that the vocabulary
// lacks.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"

namespace teratron {

class BpeNormalizer {
 public:
  explicit BpeNormalizer(const BpeModel& model);

  // A changed part of the text.
  struct Change {
    std::size_t begin = 0, end = 0;            // bytes of the result
    std::size_t text_begin = 0, text_end = 0;  // bytes of the text
  };
  // Returns the text itself if nothing changes; otherwise `result`, which it overwrites. Appends the changes to
  // `changes` unless it is null.
  std::string_view normalize(std::string_view text, std::string& result, std::vector<Change>* changes) const;

 private:
  // The first part at or after `from` that changes, as bytes of the text; it begins at the text's end if there is none.
  Change next_change(std::string_view text, std::size_t from) const;
  Change next_composition(std::string_view text, std::size_t from) const;
  void append_changed(std::string_view part, std::string& result) const;

  bool has_spaces_, nfc_;
  std::array<bool, 256> is_dropped_{};
  bool drops_ = false;
};

}  // namespace teratron

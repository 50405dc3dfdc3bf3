// Texts that end a generation, matched in bytes, whatever the cuts of tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace teratron {

class StopTexts {
 public:
  // `texts`: none is empty.
  explicit StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  // Takes more bytes and returns those that belong to no stop text. The possible beginning of one is held back. The
  // stop text that ends first counts, the longest if several end there. After it nothing is returned.
  std::string push(std::string_view bytes);
  // Bytes held back at the end of a text that was not stopped.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::size_t beginning_of_one() const;

  std::vector<std::string> texts_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace teratron

// Texts that end a generation. They are matched in bytes, so that it does not matter how tokens cut the text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace teratron {

class StopTexts {
 public:
  // None is empty.
  explicit StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  // Takes what follows, and returns what surely does not belong to a stop text: what may be the beginning of one is
  // held back until it is known. The stop text that ends first counts; where several end there, the longest. From then
  // on nothing is returned.
  std::string push(std::string_view bytes);
  // What was held back, at the end of a text that was not stopped.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::size_t beginning_of_one() const;

  std::vector<std::string> texts_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace teratron

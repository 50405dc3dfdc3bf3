// A JSON array of documents, cut into its elements as its bytes come.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace teratron {

// Looks for brackets, commas and quotes alone. Whether an element is valid JSON is for its reader to tell; one that is
// not may take others with it.
class ArrayElements {
 public:
  // `text`: what scan() has left of the text before, with more bytes behind it. Calls back with where each element that
  // is whole begins and ends in `text`; line ends within become spaces, so that it is one line. Returns where what is
  // left begins. UserError without the file's name: something stands before or behind the array.
  std::size_t scan(std::string& text, const std::function<void(std::size_t begin, std::size_t end)>& element);

  // Whether the text may end here: an array, or several of them one behind another, are closed.
  bool may_end() const { return !is_open_; }

 private:
  std::size_t open_array(std::string_view text, std::size_t at);
  std::size_t skip_string(std::string_view text, std::size_t at);

  bool is_open_ = false, in_string_ = false, is_escaped_ = false;
  bool has_comma_ = false;   // an element has to follow
  std::size_t depth_ = 0;    // within the element at hand
  std::size_t scanned_ = 0;  // bytes of what is left that were looked at
};

}  // namespace teratron

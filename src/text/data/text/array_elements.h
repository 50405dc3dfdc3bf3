// Cuts a JSON array of documents into its elements as its bytes come.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace teratron {

// Finds elements by brackets, commas and quotes only. Their reader validates them; an invalid one may take others with
// it.
class ArrayElements {
 public:
  // `text`: the rest that the last scan() left, and more bytes. Calls back with the begin and end of each whole element
  // in `text`; line ends inside become spaces, so that it is one line. `is_last`: no more bytes follow. Returns the
  // offset of the rest. UserError without the file's name: text before or after the array.
  std::size_t scan(std::string& text, bool is_last,
                   const std::function<void(std::size_t begin, std::size_t end)>& element);

  // Whether the text may end here: an array, or several consecutive ones, are closed.
  bool may_end() const { return !is_open_; }

 private:
  std::size_t open_array(std::string_view text, bool is_last, std::size_t at);
  std::size_t skip_string(std::string_view text, std::size_t at);

  bool is_open_ = false, in_string_ = false, is_escaped_ = false;
  bool has_comma_ = false;   // an element has to follow
  std::size_t depth_ = 0;    // in the current element
  std::size_t scanned_ = 0;  // scanned bytes of the rest
};

}  // namespace teratron

// The values of a page, one after another, by their encoding. A value is its bytes in the PLAIN encoding: numbers
// little-endian, a boolean as 0 or 1, byte arrays without their length.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "parquet/file/byte_reader.h"
#include "parquet/file/footer.h"
#include "parquet/file/page_header.h"

namespace teratron::parquet {

// Values of a column's dictionary. It refers to the page's bytes.
class Dictionary {
 public:
  Dictionary() = default;
  // Damaged: the page has fewer values. Unsupported: of booleans.
  Dictionary(std::string_view page, std::int32_t values, const SchemaElement& element);

  std::string_view operator[](std::uint32_t number) const {
    if (number >= count_) throw_missing(number);
    if (width_ > 0) return page_.substr(number * width_, width_);
    const std::string_view value = page_.substr(begins_[number]);
    return value.substr(kLengthBytes, number_at<std::uint32_t>(value));
  }
  // Bytes of memory beside the page, not more than the page's.
  std::size_t bytes() const { return begins_.capacity() * sizeof(std::uint32_t); }

 private:
  static constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
  [[noreturn]] void throw_missing(std::uint32_t number) const;

  std::string_view page_;
  std::size_t width_ = 0, count_ = 0;
  std::vector<std::uint32_t> begins_;  // of byte arrays, with their length
};

class PageValues {
 public:
  virtual ~PageValues() = default;
  // The next value, valid until the next call and as long as the page and the dictionary. Damaged: there is none.
  virtual std::string_view next() = 0;
};

// Values of `bytes`, a page without its levels. Unsupported: an encoding that the type does not have.
std::unique_ptr<PageValues> make_page_values(Encoding encoding, std::string_view bytes, const SchemaElement& element,
                                             const Dictionary& dictionary);

// Bytes of a value of a fixed size; 0 for byte arrays, and for booleans, which are bits.
std::size_t width_of(const SchemaElement& element);

}  // namespace teratron::parquet

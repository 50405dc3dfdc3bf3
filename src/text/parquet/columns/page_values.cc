#include "parquet/columns/page_values.h"

#include <array>
#include <cstring>
#include <string>

#include "parquet/columns/bit_runs.h"
#include "parquet/columns/delta.h"

namespace teratron::parquet {
namespace {

constexpr std::array<std::string_view, 2> kBooleans = {std::string_view("\0", 1), std::string_view("\1", 1)};

// A byte array with its length before it.
std::string_view take_byte_array(ByteReader& bytes) { return bytes.take(bytes.number<std::uint32_t>()); }

class PlainValues final : public PageValues {
 public:
  PlainValues(std::string_view bytes, std::size_t width) : bytes_(bytes), width_(width) {}
  std::string_view next() override { return width_ > 0 ? bytes_.take(width_) : take_byte_array(bytes_); }

 private:
  ByteReader bytes_;
  std::size_t width_;
};

class PlainBooleans final : public PageValues {
 public:
  explicit PlainBooleans(std::string_view bytes) : bytes_(bytes) {}
  std::string_view next() override { return kBooleans[packed_bits(bytes_, bit_++, 1)]; }

 private:
  std::string_view bytes_;
  std::uint64_t bit_ = 0;
};

class RunBooleans final : public PageValues {
 public:
  explicit RunBooleans(std::string_view bytes) {
    ByteReader reader(bytes);
    runs_ = BitRuns(take_byte_array(reader), 1);
  }
  std::string_view next() override { return kBooleans[runs_.next() & 1]; }

 private:
  BitRuns runs_;
};

class DictionaryValues final : public PageValues {
 public:
  // A page of nulls alone may have no bytes.
  DictionaryValues(std::string_view bytes, const Dictionary& dictionary)
      : runs_(bytes.empty() ? bytes : bytes.substr(1), bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0])),
        dictionary_(dictionary) {}
  std::string_view next() override { return dictionary_[runs_.next()]; }

 private:
  BitRuns runs_;
  const Dictionary& dictionary_;
};

class DeltaNumbers final : public PageValues {
 public:
  DeltaNumbers(std::string_view bytes, std::size_t width) : integers_(bytes), width_(width) {}
  std::string_view next() override {
    const std::int64_t value = integers_.next();
    std::memcpy(value_.data(), &value, sizeof value);
    return {value_.data(), width_};
  }

 private:
  DeltaIntegers integers_;
  std::size_t width_;
  std::array<char, sizeof(std::int64_t)> value_{};
};

std::size_t length_of(std::int64_t length) {
  if (length < 0) throw_damaged("a value has {} bytes", length);
  return static_cast<std::size_t>(length);
}

class DeltaLengthValues final : public PageValues {
 public:
  explicit DeltaLengthValues(std::string_view bytes) : lengths_(bytes), values_(bytes.substr(lengths_.size())) {}
  std::string_view next() override { return values_.take(length_of(static_cast<std::int32_t>(lengths_.next()))); }

 private:
  DeltaIntegers lengths_;
  ByteReader values_;
};

class DeltaByteArrays final : public PageValues {
 public:
  DeltaByteArrays(std::string_view bytes, std::size_t width)
      : prefixes_(bytes), suffixes_(bytes.substr(prefixes_.size())), width_(width) {}
  std::string_view next() override {
    const std::size_t prefix = length_of(static_cast<std::int32_t>(prefixes_.next()));
    if (prefix > value_.size()) throw_damaged("a value begins with more than the one before it");
    value_.resize(prefix);
    value_ += suffixes_.next();
    if (width_ > 0 && value_.size() != width_)
      throw_damaged("a value has {} bytes in place of {}", value_.size(), width_);
    return value_;
  }

 private:
  DeltaIntegers prefixes_;
  DeltaLengthValues suffixes_;
  std::size_t width_;
  std::string value_;
};

// The first bytes of all values, then the second ones, and so on.
class SplitValues final : public PageValues {
 public:
  SplitValues(std::string_view bytes, std::size_t width) : bytes_(bytes), value_(width, '\0') {
    if (bytes.size() % width != 0) throw_damaged("a page has {} bytes of values of {}", bytes.size(), width);
  }
  std::string_view next() override {
    const std::size_t count = bytes_.size() / value_.size();
    if (at_ == count) throw_damaged("a page has fewer values than it says");
    for (std::size_t i = 0; i < value_.size(); ++i) value_[i] = bytes_[i * count + at_];
    ++at_;
    return value_;
  }

 private:
  std::string_view bytes_;
  std::string value_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t width_of(const SchemaElement& element) {
  switch (*element.type) {
    case PhysicalType::kInt32:
    case PhysicalType::kFloat: return 4;
    case PhysicalType::kInt64:
    case PhysicalType::kDouble: return 8;
    case PhysicalType::kInt96: return 12;
    case PhysicalType::kFixedByteArray: return static_cast<std::size_t>(element.length);
    default: return 0;
  }
}

Dictionary::Dictionary(std::string_view page, std::int32_t values, const SchemaElement& element)
    : page_(page), width_(width_of(element)), count_(static_cast<std::size_t>(values)) {
  if (element.type == PhysicalType::kBoolean) throw_unsupported("dictionaries of booleans");
  const std::size_t least = width_ > 0 ? width_ : kLengthBytes;
  if (page.size() / least < count_) throw_damaged("a dictionary has fewer values than it says");
  if (width_ > 0) return;
  begins_.reserve(count_);
  ByteReader reader(page);
  for (std::size_t i = 0; i < count_; ++i) {
    begins_.push_back(static_cast<std::uint32_t>(reader.position()));
    take_byte_array(reader);
  }
}

void Dictionary::throw_missing(std::uint32_t number) const {
  throw_damaged("a page refers to value {} of a dictionary of {}", number, count_);
}

std::unique_ptr<PageValues> make_page_values(Encoding encoding, std::string_view bytes, const SchemaElement& element,
                                             const Dictionary& dictionary) {
  const PhysicalType type = *element.type;
  const std::size_t width = width_of(element);
  const bool is_integer = type == PhysicalType::kInt32 || type == PhysicalType::kInt64;
  const bool is_bytes = type == PhysicalType::kByteArray;
  const bool is_boolean = type == PhysicalType::kBoolean;
  switch (encoding) {
    case Encoding::kPlain:
      if (is_boolean) return std::make_unique<PlainBooleans>(bytes);
      return std::make_unique<PlainValues>(bytes, width);
    case Encoding::kPlainDictionary:
    case Encoding::kDictionary: return std::make_unique<DictionaryValues>(bytes, dictionary);
    case Encoding::kRuns:
      if (is_boolean) return std::make_unique<RunBooleans>(bytes);
      break;
    case Encoding::kDeltaBinaryPacked:
      if (is_integer) return std::make_unique<DeltaNumbers>(bytes, width);
      break;
    case Encoding::kDeltaLengthByteArray:
      if (is_bytes) return std::make_unique<DeltaLengthValues>(bytes);
      break;
    case Encoding::kDeltaByteArray:
      if (is_bytes || type == PhysicalType::kFixedByteArray) return std::make_unique<DeltaByteArrays>(bytes, width);
      break;
    case Encoding::kByteStreamSplit:
      if (width > 0) return std::make_unique<SplitValues>(bytes, width);
      break;
    default: break;
  }
  throw_unsupported("values of the physical type {} in the encoding {}", static_cast<int>(type),
                    static_cast<int>(encoding));
}

}  // namespace teratron::parquet

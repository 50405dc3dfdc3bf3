#include "checkpoint/safetensors/safetensors_header.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace teratron {
namespace {

using Json = nlohmann::json;

struct FormatType {
  std::string_view name;
  std::int64_t bytes;
  std::optional<DType> dtype;
};

constexpr std::array<FormatType, 16> kFormatTypes = {{
    {"F64", 8, DType::kF64},
    {"F32", 4, DType::kF32},
    {"BF16", 2, DType::kBF16},
    {"F16", 2, DType::kF16},
    {"I64", 8, DType::kI64},
    {"I32", 4, DType::kI32},
    {"U16", 2, DType::kU16},
    {"U8", 1, DType::kU8},
    {"BOOL", 1, {}},
    {"I8", 1, {}},
    {"F8_E5M2", 1, {}},
    {"F8_E4M3", 1, {}},
    {"I16", 2, {}},
    {"U32", 4, {}},
    {"U64", 8, {}},
    {"C64", 8, {}},
}};

const FormatType* find_type(std::string_view name) {
  for (const FormatType& type : kFormatTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

// Takes the parser's events; its state is the pair (state_, key_).
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(const std::filesystem::path& path, SafetensorsHeader& header) : path_(path), header_(header) {}

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a truth value"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override { unexpected(text); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kShape && (state_ != State::kOffsets || offsets_ == 2)) unexpected("a number");
    constexpr number_unsigned_t kLargest = std::numeric_limits<std::int64_t>::max();
    if (value > kLargest) fault("tensor '{}' has {} in its '{}'", tensor_name(), value, key_);
    if (state_ == State::kShape) {
      tensor().shape.push_back(static_cast<std::int64_t>(value));
    } else {
      (offsets_++ == 0 ? tensor().begin : tensor().end) = value;
    }
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::kMetadata) {
      header_.metadata[key_] = value;
    } else if (state_ == State::kTensor && key_ == "dtype") {
      const FormatType* type = find_type(value);
      if (type == nullptr) fault("tensor '{}' has the unknown dtype '{}'", tensor_name(), value);
      tensor().dtype_name = value;
      tensor().dtype = type->dtype;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::kStart) {
      state_ = State::kTop;
    } else if (state_ == State::kTop && key_ == "__metadata__") {
      state_ = State::kMetadata;
      fields_.clear();
    } else if (state_ == State::kTop) {
      state_ = State::kTensor;
      fields_.clear();
      offsets_ = 0;
      header_.tensors.emplace_back().name = key_;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (state_ == State::kTensor && name != "dtype" && name != "shape" && name != "data_offsets") {
      fault("tensor '{}' has the unknown field '{}'", tensor_name(), name);
    }
    if (!(state_ == State::kTop ? names_ : fields_).insert(name).second) fault("'{}' is given twice", name);
    key_ = name;
    return true;
  }

  bool end_object() override {
    if (state_ == State::kTensor && (fields_.size() != 3 || offsets_ != 2)) {
      fault("tensor '{}' lacks one of dtype, shape, and data_offsets [begin, end]", tensor_name());
    }
    state_ = state_ == State::kTop ? State::kEnd : State::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::kTensor || key_ == "dtype") unexpected("a list");
    state_ = key_ == "shape" ? State::kShape : State::kOffsets;
    return true;
  }

  bool end_array() override {
    state_ = State::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    fault("its header is not valid JSON at byte {}", position);
  }

 private:
  enum class State { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  template <class... Args>
  [[noreturn]] void fault(fmt::format_string<Args...> format, Args&&... args) const {
    throw_safetensors_error(path_, format, std::forward<Args>(args)...);
  }
  [[noreturn]] void unexpected(std::string_view what) const {
    fault("its header has {} where none belongs (near '{}')", what, key_);
  }
  SafetensorsEntry& tensor() { return header_.tensors.back(); }
  const std::string& tensor_name() const { return header_.tensors.back().name; }

  const std::filesystem::path& path_;
  SafetensorsHeader& header_;
  State state_ = State::kStart;
  std::string key_;
  int offsets_ = 0;                         // read of the current tensor
  std::unordered_set<std::string> names_;   // of the whole header
  std::unordered_set<std::string> fields_;  // of the current tensor or of the metadata
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, const std::filesystem::path& path) {
  if (!json.starts_with('{')) throw_safetensors_error(path, "its header does not begin with '{{'");
  SafetensorsHeader header;
  HeaderReader reader(path, header);
  Json::sax_parse(json.begin(), json.end(), &reader);
  return header;
}

std::string_view safetensors_name(DType dtype) {
  for (const FormatType& type : kFormatTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return "";
}

std::int64_t safetensors_element_size(std::string_view dtype_name) {
  const FormatType* type = find_type(dtype_name);
  return type == nullptr ? 0 : type->bytes;
}

}  // namespace teratron

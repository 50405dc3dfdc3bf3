#include "jinja/values/printing.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "jinja/values/byte_budget.h"
#include "jinja/values/python_text.h"

namespace teratron::jinja {
namespace {

std::string joined_repr(const Values& items) {
  std::string out;
  for (const Value& item : items) {
    append(out, out.empty() ? "" : ", ");
    append(out, repr(item));
  }
  return out;
}

std::string repr_of_sequence(const Sequence& sequence) {
  switch (sequence.kind) {
    case Sequence::Kind::kList: return "[" + joined_repr(sequence.items) + "]";
    case Sequence::Kind::kTuple: return "(" + joined_repr(sequence.items) + (sequence.items.size() == 1 ? ",)" : ")");
    case Sequence::Kind::kView: return sequence.name + "([" + joined_repr(sequence.items) + "])";
    default: fail("a {} is written, which is not supported", sequence.name);
  }
}

std::string repr_of_dictionary(const Dictionary& dictionary) {
  std::string out;
  for (const auto& [key, item] : dictionary.items) {
    append(out, out.empty() ? "{" : ", ");
    append(out, repr(key) + ": ");
    append(out, repr(item));
  }
  return out.empty() ? "{}" : out + "}";
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonForm& form) : form_(form) {}

  std::string write(const Value& value) {
    write_value(value);
    return std::move(out_);
  }

 private:
  void write_value(const Value& value) {
    if (out_.size() > kMostBytes) fail("tojson makes a text of more than {} bytes", kMostBytes);
    if (const std::optional<std::string> word = word_of(value)) {
      out_ += *word;
    } else if (const Text* text = value.text()) {
      write_text(text->bytes);
    } else if (const Dictionary* dictionary = value.dictionary()) {
      write_dictionary(*dictionary);
    } else if (const Sequence* sequence = value.sequence(); sequence != nullptr && is_list(*sequence)) {
      write_items('[', ']', sequence->items.size(), [&](std::size_t i) { write_value(sequence->items[i]); });
    } else {
      fail("Object of type {} is not JSON serializable", type_name(value));
    }
  }

  static bool is_list(const Sequence& sequence) {
    return sequence.kind == Sequence::Kind::kList || sequence.kind == Sequence::Kind::kTuple;
  }

  static std::optional<std::string> word_of(const Value& value) {
    if (value.is_none()) return "null";
    if (const bool* flag = value.get<bool>()) return *flag ? "true" : "false";
    if (const double* number = value.get<double>()) {
      if (std::isnan(*number)) return "NaN";
      return std::isinf(*number) ? *number > 0 ? "Infinity" : "-Infinity" : written(*number);
    }
    if (value.is_integer()) return std::to_string(value.integer());
    return std::nullopt;
  }

  template <typename WriteItem>
  void write_items(char open, char close, std::size_t count, const WriteItem& write_item) {
    out_ += open;
    ++depth_;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += form_.between;
      write_line_end();
      write_item(i);
    }
    --depth_;
    if (count > 0) write_line_end();
    out_ += close;
  }

  void write_line_end() {
    if (!form_.indent) return;
    out_ += '\n';
    for (int i = 0; i < depth_; ++i) append(out_, *form_.indent);
  }

  void write_dictionary(const Dictionary& dictionary) {
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dictionary.items) items.push_back(&item);
    if (form_.sort_keys) {
      std::ranges::stable_sort(items, [](const auto* a, const auto* b) { return less(a->first, b->first); });
    }
    write_items('{', '}', items.size(), [&](std::size_t i) {
      const Value& key = items[i]->first;
      const std::optional<std::string> word = word_of(key);
      if (!word && key.text() == nullptr) fail("keys must be str, int, float, bool or None, not {}", type_name(key));
      write_text(word ? *word : key.text()->bytes);
      out_ += form_.after_key;
      write_value(items[i]->second);
    });
  }

  void write_text(std::string_view text) {
    out_ += '"';
    while (!text.empty()) {
      const Utf8Step step = decode_utf8(text);
      write_character(step.code, text.substr(0, step.length));
      text.remove_prefix(step.length);
    }
    out_ += '"';
  }

  void write_character(char32_t code, std::string_view bytes) {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    const std::size_t at = code < 0x80 ? kEscaped.find(static_cast<char>(code)) : std::string_view::npos;
    if (at != std::string_view::npos) {
      (out_ += '\\') += kLetters[at];
    } else if (code < 0x20 || (form_.ascii && code > 0x7E)) {
      if (code < 0x10000) {
        out_ += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
      } else {  // two surrogates
        const std::uint32_t rest = static_cast<std::uint32_t>(code) - 0x10000;
        out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
      }
    } else {
      out_ += bytes;
    }
  }

  const JsonForm& form_;
  int depth_ = 0;
  std::string out_;
};

}  // namespace

std::string text_of(const Value& value) {
  if (value.is_undefined()) return "";
  const Text* text = value.text();
  if (text == nullptr) return repr(value);
  spend(text->bytes.size());
  return text->bytes;
}

void append_text_of(const Value& value, std::string& out) {
  const Text* text = value.text();
  if (text != nullptr) return append(out, text->bytes);
  append(out, text_of(value));
}

std::string repr(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (const bool* flag = value.get<bool>()) return *flag ? "True" : "False";
  if (const double* number = value.get<double>()) return written(*number);
  if (value.is_integer()) return std::to_string(value.integer());
  if (const Text* text = value.text()) {
    if (text->safe) fail("a list that has text from the filter safe is written, which is not supported");
    return repr_of_text(text->bytes);
  }
  if (const Sequence* sequence = value.sequence()) return repr_of_sequence(*sequence);
  if (const Dictionary* dictionary = value.dictionary()) return repr_of_dictionary(*dictionary);
  fail("a {} is written, which is not supported", type_name(value));
}

std::string to_json(const Value& value, const JsonForm& form) { return JsonWriter(form).write(value); }

}  // namespace teratron::jinja

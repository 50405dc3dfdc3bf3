#include "serve/text/chat_template.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace minja {
namespace {

// White space of Python's str.strip().
bool is_white(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// str.strip(), which takes characters away. minja's own takes bytes, and knows four kinds of white space.
std::string strip_characters(std::string_view text, std::string_view characters, bool left, bool right) {
  std::u32string set;
  for (; !characters.empty(); characters.remove_prefix(teratron::decode_utf8(characters).length)) {
    set += teratron::decode_utf8(characters).code;
  }
  const auto goes = [&](char32_t c) { return set.empty() ? is_white(c) : set.find(c) != std::u32string::npos; };
  std::size_t begin = text.size(), end = 0;  // of what stays
  for (std::size_t at = 0; at < text.size();) {
    const teratron::Utf8Step step = teratron::decode_utf8(text.substr(at));
    if (step.status != teratron::Utf8Status::kValid || !goes(step.code)) {
      begin = std::min(begin, at);
      end = at + step.length;
    }
    at += step.length;
  }
  if (begin == text.size() && (left || right)) return "";
  if (!left) begin = 0;
  if (!right) end = text.size();
  return std::string(text.substr(begin, end - begin));
}

// These match the calls in minja's methods better than its function of this name, which takes constants. A version that
// calls otherwise does not need them.
[[maybe_unused]] std::string strip(std::string& text, std::string& characters, bool left, bool right) {
  return strip_characters(text, characters, left, right);
}
[[maybe_unused]] std::string strip(std::string& text, std::string& characters) {
  return strip(text, characters, true, true);
}

}  // namespace
}  // namespace minja

#include <minja/minja.hpp>

namespace teratron {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Line ends are as Jinja reads them.
std::string with_newlines(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

// Bytes of the longest comment, name or white space.
std::size_t longest_piece(std::string_view text) {
  const auto kind = [](char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0               ? 1
           : c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0 ? 2
                                                                          : 0;
  };
  std::size_t longest = 0, length = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    length = i > 0 && kind(text[i]) != 0 && kind(text[i]) == kind(text[i - 1]) ? length + 1 : 1;
    longest = std::max(longest, length);
  }
  for (std::size_t begin = text.find("{#"); begin != std::string_view::npos; begin = text.find("{#", begin + 1)) {
    longest = std::max(longest, std::min(text.find("#}", begin), text.size()) - begin);
  }
  return longest;
}

// minja adds where in the template it was, with the line, to a message.
std::string first_line(std::string_view message) {
  message = message.substr(0, message.find('\n'));
  while (message.ends_with(':') || message.ends_with(' ')) message.remove_suffix(1);
  return std::string(message);
}

std::string formatted(const std::string& format, ChatTemplate::Time now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 256> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format.c_str(), &local)};
}

std::string text_argument(const minja::ArgumentsValue& arguments, const char* function) {
  if (arguments.args.size() != 1 || !arguments.args[0].is_string()) {
    throw std::runtime_error(std::string(function) + " takes a string");
  }
  return arguments.args[0].get<std::string>();
}

// Empties a context at last: a macro in it holds it, and neither would go. Those of loops, where no template that we
// know defines a macro, are out of reach.
struct EmptiedContext {
  std::shared_ptr<minja::Context> context;
  ~EmptiedContext() {
    for (const minja::Value& key : context->keys()) context->set(key, minja::Value());
  }
};

}  // namespace

struct ChatTemplate::Insides {
  std::shared_ptr<minja::TemplateNode> root;
  std::map<std::string, std::string> specials;
};

ChatTemplate::ChatTemplate(const ChatTemplateFile& file) {
  // The parser's regular expressions recurse with each character of a comment, a name or white space.
  constexpr std::size_t kMostBytes = 1 << 18, kLongestPiece = 4096;
  const std::string name = file.path.string();
  if (file.text.size() > kMostBytes || longest_piece(file.text) > kLongestPiece) {
    throw_user_error(
        "the chat template of '{}' is too long: it has {} bytes, and a comment, name or white space of {}; {} and {} "
        "are the most",
        name, file.text.size(), longest_piece(file.text), kMostBytes, kLongestPiece);
  }
  if (!is_utf8(file.text)) throw_user_error("the chat template of '{}' is not UTF-8; save it so", name);
  try {
    insides_.reset(new Insides{
        .root = minja::Parser::parse(with_newlines(file.text),
                                     {.trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false}),
        .specials = file.specials});
  } catch (const std::exception& error) {
    throw_user_error("the chat template of '{}' cannot be read: {}; give a simpler one by --chat-template", name,
                     first_line(error.what()));
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const OrderedJson& messages, bool begins_answer, Time now) const {
  OrderedJson values = {{"messages", messages}, {"add_generation_prompt", begins_answer}};
  for (const auto& [key, text] : insides_->specials) values[key] = text;
  const auto context = minja::Context::make(minja::Value(values));
  const EmptiedContext emptied{context};
  std::optional<std::string> refusal;
  using Context = std::shared_ptr<minja::Context>;
  context->set("raise_exception",
               minja::Value::callable([&](const Context&, minja::ArgumentsValue& arguments) -> minja::Value {
                 refusal = text_argument(arguments, "raise_exception");
                 throw std::runtime_error(*refusal);
               }));
  context->set("strftime_now",
               minja::Value::callable([&](const Context&, minja::ArgumentsValue& arguments) -> minja::Value {
                 return formatted(text_argument(arguments, "strftime_now"), now);
               }));
  context->set("trim", minja::Value::callable([](const Context&, minja::ArgumentsValue& arguments) -> minja::Value {
                 if (arguments.args.size() == 1 && arguments.args[0].is_null()) return arguments.args[0];
                 return minja::strip_characters(text_argument(arguments, "trim"), "", true, true);
               }));
  try {
    return insides_->root->render(context);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw ChatTemplateError(refusal ? "the model's chat template says: " + *refusal
                                    : "the model's chat template failed: " + first_line(error.what()));
  }
}

std::string ChatTemplate::after_answer() const {
  const std::string answer = "answer";
  try {
    const std::string text =
        render({{{"role", "user"}, {"content", "a"}}, {{"role", "assistant"}, {"content", answer}}}, false);
    const std::size_t at = text.rfind(answer);
    return at == std::string::npos ? "" : text.substr(at + answer.size());
  } catch (const ChatTemplateError&) {
    return "";
  }
}

}  // namespace teratron

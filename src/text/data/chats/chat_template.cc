#include "data/chats/chat_template.h"

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

// Characters that no text has (Unicode, section 23.7), around what {% generation %} blocks write.
constexpr std::string_view kBegin = "\xEF\xB7\x90", kEnd = "\xEF\xB7\x91";
constexpr const char* kMarking = "teratron_marked";

// The template with a filter, whose blocks are read alike, in place of its {% generation %} blocks. Empty: it has none.
std::string with_marking(std::string_view text) {
  std::string marking;
  while (!text.empty()) {
    std::size_t at = std::min(text.find("{%"), text.size());
    at = std::min(text.find_first_not_of("{%-+ \t\r\n", at), text.size());
    marking += text.substr(0, at);
    text.remove_prefix(at);
    for (const auto& [word, filter] : {std::pair<std::string_view, std::string>("generation", "filter teratron_marked"),
                                       {"endgeneration", "endfilter"}}) {
      const std::string_view rest = text.substr(std::min(word.size(), text.size()));
      if (!text.starts_with(word) || rest.empty() || std::string_view("-+% \t\r\n").find(rest[0]) == rest.npos)
        continue;
      marking += filter;
      text = rest;
      break;
    }
  }
  return marking.find(kMarking) == std::string::npos ? "" : marking;
}

ChatText without_marks(std::string_view marked) {
  ChatText chat;
  while (true) {
    const std::size_t begin = marked.find(kBegin);
    chat.text += marked.substr(0, begin);
    if (begin == std::string_view::npos) return chat;
    marked.remove_prefix(begin + kBegin.size());
    const std::size_t end = marked.find(kEnd);
    if (end == std::string_view::npos || marked.substr(0, end).find(kBegin) != std::string_view::npos) {
      throw ChatTemplateError("the model's chat template has a {% generation %} block within another or cuts one");
    }
    chat.answers.push_back({chat.text.size(), chat.text.size() + end});
    chat.text += marked.substr(0, end);
    marked.remove_prefix(end + kEnd.size());
  }
}

std::shared_ptr<minja::TemplateNode> parse(const std::string& text) {
  return minja::Parser::parse(text, {.trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false});
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
  std::shared_ptr<minja::TemplateNode> root, marking;  // marking: nullptr without {% generation %} blocks
  std::map<std::string, std::string> specials;

  std::string render(minja::TemplateNode& node, const OrderedJson& messages, bool begins_answer, Time now) const;
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
    const std::string text = with_newlines(file.text), marking = with_marking(text);
    insides_.reset(new Insides{
        .root = parse(text), .marking = marking.empty() ? nullptr : parse(marking), .specials = file.specials});
  } catch (const std::exception& error) {
    throw_user_error("the chat template of '{}' cannot be read: {}; give a simpler one by --chat-template", name,
                     first_line(error.what()));
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const OrderedJson& messages, bool begins_answer, Time now) const {
  return insides_->render(*insides_->root, messages, begins_answer, now);
}

bool ChatTemplate::marks_answers() const { return insides_->marking != nullptr; }

ChatText ChatTemplate::render_with_answers(const OrderedJson& messages, Time now) const {
  check(marks_answers(), "a template without {% generation %}");
  const std::string written = messages.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  if (written.find(kBegin) != std::string::npos || written.find(kEnd) != std::string::npos) {
    throw ChatTemplateError("a message has U+FDD0 or U+FDD1, which stand for no character; remove them");
  }
  return without_marks(insides_->render(*insides_->marking, messages, false, now));
}

std::string ChatTemplate::Insides::render(minja::TemplateNode& node, const OrderedJson& messages, bool begins_answer,
                                          Time now) const {
  OrderedJson values = {{"messages", messages}, {"add_generation_prompt", begins_answer}};
  for (const auto& [key, text] : specials) values[key] = text;
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
  if (&node == marking.get()) {
    context->set(kMarking, minja::Value::callable([](const Context&, minja::ArgumentsValue& arguments) -> minja::Value {
                   return std::string(kBegin) + text_argument(arguments, kMarking) + std::string(kEnd);
                 }));
  }
  try {
    return node.render(context);
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

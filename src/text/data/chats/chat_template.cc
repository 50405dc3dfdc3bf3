#include "data/chats/chat_template.h"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_string.h"
#include "jinja/template.h"

namespace teratron {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A template's own word on a conversation, by raise_exception.
struct Refusal : std::runtime_error {
  using runtime_error::runtime_error;
};

std::string formatted(const std::string& format, ChatTemplate::Time now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 256> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format.c_str(), &local)};
}

std::string text_argument(const jinja::Arguments& arguments, const char* function) {
  const bool is_one = arguments.positional.size() == 1 && arguments.named.empty();
  const jinja::Text* text = is_one ? arguments.positional[0].text() : nullptr;
  if (text == nullptr) jinja::fail("{} takes a string", function);
  return text->bytes;
}

// Characters that no text has (Unicode, section 23.7), around what {% generation %} blocks write.
constexpr std::string_view kBegin = "\xEF\xB7\x90", kEnd = "\xEF\xB7\x91";
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

}  // namespace

OrderedJson messages_for_template(const OrderedJson& messages) {
  OrderedJson all = OrderedJson::array();
  for (const OrderedJson& message : messages) {
    const OrderedJson* thought = nullptr;
    for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
      if (thought == nullptr && message.contains(name) && !message.at(name).is_null()) thought = &message.at(name);
    }
    OrderedJson plain = OrderedJson::object();
    if (thought != nullptr) plain["thinking"] = *thought;
    for (const auto& [name, value] : message.items()) {
      if (!value.is_null()) plain[name] = value;
    }
    if (thought != nullptr) plain["reasoning_content"] = *thought;
    all.push_back(std::move(plain));
  }
  return all;
}

struct ChatTemplate::Insides {
  jinja::Template form;
  std::map<std::string, std::string> specials;

  std::string render(const OrderedJson& messages, bool begins_answer, Time now,
                     std::pair<std::string, std::string> marks) const;
};

ChatTemplate::ChatTemplate(const ChatTemplateFile& file) {
  constexpr std::size_t kMostBytes = 1 << 18;
  const std::string name = file.path.string();
  if (file.text.size() > kMostBytes) {
    throw_user_error("the chat template of '{}' is too long: it has {} bytes, and {} are the most", name,
                     file.text.size(), kMostBytes);
  }
  try {
    insides_.reset(new Insides{.form = jinja::Template(file.text), .specials = file.specials});
  } catch (const jinja::Error& error) {
    throw_user_error("the chat template of '{}' cannot be read: {}; give a simpler one by --chat-template", name,
                     error.what());
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const OrderedJson& messages, bool begins_answer, Time now) const {
  return insides_->render(messages, begins_answer, now, {});
}

bool ChatTemplate::marks_answers() const { return insides_->form.has_generation(); }

ChatText ChatTemplate::render_with_answers(const OrderedJson& messages, Time now) const {
  check(marks_answers(), "a template without {% generation %}");
  const std::string written = json_text(messages);
  if (written.find(kBegin) != std::string::npos || written.find(kEnd) != std::string::npos) {
    throw ChatTemplateError("a message has U+FDD0 or U+FDD1, which stand for no character; remove them");
  }
  return without_marks(insides_->render(messages, false, now, {std::string(kBegin), std::string(kEnd)}));
}

std::string ChatTemplate::Insides::render(const OrderedJson& messages, bool begins_answer, Time now,
                                          std::pair<std::string, std::string> marks) const {
  OrderedJson values = {{"messages", messages_for_template(messages)},
                        {"tools", nullptr},
                        {"documents", nullptr},
                        {"add_generation_prompt", begins_answer}};
  for (const auto& [key, text] : specials) values[key] = text;
  const jinja::Context context{
      .variables = values,
      .functions = {{"raise_exception",
                     [](jinja::Arguments& arguments) -> jinja::Value {
                       throw Refusal(text_argument(arguments, "raise_exception"));
                     }},
                    {"strftime_now",
                     [now](jinja::Arguments& arguments) {
                       return jinja::Value::text(formatted(text_argument(arguments, "strftime_now"), now));
                     }}},
      .marks = std::move(marks)};
  try {
    return form.render(context);
  } catch (const Refusal& refusal) {
    throw ChatTemplateError(std::string("the model's chat template says: ") + refusal.what());
  } catch (const jinja::Error& error) {
    throw ChatTemplateError(std::string("the model's chat template failed: ") + error.what());
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

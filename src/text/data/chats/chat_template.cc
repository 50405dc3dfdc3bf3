#include "data/chats/chat_template.h"

#include <ctime>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json_string.h"
#include "data/chats/tool_calls.h"
#include "jinja/template.h"

namespace teratron {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kToolCalls = "tool_calls";

// A template's own word on a conversation, by raise_exception.
struct Refusal : std::runtime_error {
  using runtime_error::runtime_error;
};

std::string formatted(const std::string& format, ChatTemplate::Time now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  const std::string ended = format.c_str() + std::string(".");  // strftime returns 0 for a text that has no room
  constexpr std::size_t kMost = 1 << 16;
  for (std::string text(256, '\0'); text.size() <= kMost; text.resize(2 * text.size())) {
    const std::size_t length = std::strftime(text.data(), text.size(), ended.c_str(), &local);
    if (length > 0) return text.substr(0, length - 1);
  }
  jinja::fail("strftime_now writes a date of more than {} bytes", kMost);
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

// Messages whose calls of tools have objects as arguments.
OrderedJson with_objects(OrderedJson messages) {
  for (OrderedJson& message : messages) {
    if (message.contains(kToolCalls)) message[kToolCalls] = with_object_arguments(std::move(message[kToolCalls]));
  }
  return messages;
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
  struct Form {
    explicit Form(std::string source) : text(std::move(source)), form(text) {}
    std::string text;
    jinja::Template form;

    // Refuses what the template would leave out without a word: it names nothing that is called so.
    void require_place(const OrderedJson& given, const char* name) const {
      if (given.is_null() || text.find(name) != std::string::npos) return;
      throw ChatTemplateError(std::string("the model's chat template writes no ") + name +
                              ", and would leave them out");
    }
  };
  Form form;
  std::optional<Form> tools_form;  // of conversations with tools
  std::string why_no_tools_form;   // it is there and cannot be read
  std::map<std::string, std::string> specials;

  const Form& form_for(const TemplateExtras& extras) const;
  std::string render(const OrderedJson& messages, bool begins_answer, const TemplateExtras& extras, Time now,
                     const std::pair<std::string, std::string>& marks) const;
  std::string render_plain(const OrderedJson& messages, bool begins_answer, const TemplateExtras& extras, Time now,
                           const std::pair<std::string, std::string>& marks) const;
};

ChatTemplate::ChatTemplate(const ChatTemplateFile& file) {
  constexpr std::size_t kMostBytes = 1 << 18;
  const std::string name = file.path.string();
  const auto read = [&](const std::string& text) {
    if (text.size() > kMostBytes) {
      throw_user_error("the chat template of '{}' is too long: it has {} bytes, and {} are the most", name, text.size(),
                       kMostBytes);
    }
    try {
      return Insides::Form(text);
    } catch (const jinja::Error& error) {
      throw_user_error("the chat template of '{}' cannot be read: {}; give a simpler one by --chat-template", name,
                       error.what());
    }
  };
  auto insides = std::unique_ptr<Insides>(
      new Insides{.form = read(file.text), .tools_form = {}, .why_no_tools_form = {}, .specials = file.specials});
  if (!file.tools_text.empty()) {
    try {
      insides->tools_form.emplace(read(file.tools_text));
    } catch (const UserError& error) {
      insides->why_no_tools_form = error.what();
    }
  }
  insides_ = std::move(insides);
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const OrderedJson& messages, bool begins_answer, const TemplateExtras& extras,
                                 Time now) const {
  return insides_->render(messages, begins_answer, extras, now, {});
}

bool ChatTemplate::marks_answers(const TemplateExtras& extras) const {
  return insides_->form_for(extras).form.has_generation();
}

ChatText ChatTemplate::render_with_answers(const OrderedJson& messages, const TemplateExtras& extras, Time now) const {
  check(marks_answers(extras), "a template without {% generation %}");
  for (const OrderedJson* json : {&messages, &extras.tools, &extras.documents}) {
    const std::string written = json_text(*json);
    if (written.find(kBegin) != std::string::npos || written.find(kEnd) != std::string::npos) {
      throw ChatTemplateError("a message has U+FDD0 or U+FDD1, which stand for no character; remove them");
    }
  }
  ChatText chat =
      without_marks(insides_->render(messages, false, extras, now, {std::string(kBegin), std::string(kEnd)}));
  if (chat.text == render(messages, false, extras, now)) return chat;
  throw ChatTemplateError(
      "the model's chat template changes what its {% generation %} blocks write, so it is unknown where");
}

auto ChatTemplate::Insides::form_for(const TemplateExtras& extras) const -> const Form& {
  if (extras.tools.is_null()) return form;
  if (!why_no_tools_form.empty()) throw ChatTemplateError(why_no_tools_form);
  return tools_form ? *tools_form : form;
}

// A template that puts arguments together as texts fails with objects; it gets what was given.
std::string ChatTemplate::Insides::render(const OrderedJson& messages, bool begins_answer, const TemplateExtras& extras,
                                          Time now, const std::pair<std::string, std::string>& marks) const {
  const OrderedJson given = messages_for_template(messages), objects = with_objects(given);
  const Form& own = form_for(extras);
  own.require_place(extras.tools, "tools");
  own.require_place(extras.documents, "documents");
  for (const OrderedJson& message : given) own.require_place(message.value(kToolCalls, OrderedJson()), kToolCalls);
  try {
    return render_plain(objects, begins_answer, extras, now, marks);
  } catch (const jinja::Error& error) {
    const std::string why = std::string("the model's chat template failed: ") + error.what();
    if (objects == given) throw ChatTemplateError(why);
    try {
      return render_plain(given, begins_answer, extras, now, marks);
    } catch (const jinja::Error&) {
      throw ChatTemplateError(why);
    }
  }
}

// jinja::Error passes through.
std::string ChatTemplate::Insides::render_plain(const OrderedJson& messages, bool begins_answer,
                                                const TemplateExtras& extras, Time now,
                                                const std::pair<std::string, std::string>& marks) const {
  OrderedJson values = {{"messages", messages},
                        {"tools", extras.tools},
                        {"documents", extras.documents},
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
      .marks = marks};
  try {
    return form_for(extras).form.render(context);
  } catch (const Refusal& refusal) {
    throw ChatTemplateError(std::string("the model's chat template says: ") + refusal.what());
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

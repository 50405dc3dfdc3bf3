#include "serve/text/text_model.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "base/json_string.h"
#include "serve/api_error.h"
#include "serve/text/chat_answer.h"
#include "serve/text/completion_answer.h"

namespace teratron {
namespace {

const std::pair<std::string, std::string> kNotCached = {"Cache-Control", "no-cache"};

AnswerHead new_head(const char* kind, const std::string& model) {
  std::random_device random;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = fmt::format("{}-{:08x}{:08x}", kind, random(), random()),
          .model = model,
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

std::string event_of(std::string_view data) { return fmt::format("data: {}\n\n", data); }

// Events of a request. Its destructor cancels the texts that are not finished: no answer is written any more.
struct Lease {
  TextEngine& engine;
  const std::shared_ptr<TextEvents> events;
  ~Lease() { engine.cancel(events); }
};

// Makes an answer while its events come, until the client has gone.
template <class Answer>
struct AnswerWriter {
  CompletionRequest request;
  Tokenizer tokenizer;
  AnswerHead head;
  std::shared_ptr<const Lease> lease;

  // The whole answer. ApiError: its texts fail.
  HttpAnswer whole(const std::function<bool()>& is_open) const {
    Answer answer(request, tokenizer, head);
    if (!grow(answer, is_open, [&](const nlohmann::ordered_json&) { return is_open(); })) {
      throw client_gone();
    }
    return {.body = json_text(answer.whole()), .headers = {kNotCached}};
  }

  // Writes a stream. An error is its last part.
  void operator()(HttpStream& client) const {
    const auto is_open = [&] { return client.is_open(); };
    const auto write = [&](const nlohmann::ordered_json& part) { return client.write(event_of(json_text(part))); };
    Answer answer(request, tokenizer, head);
    try {
      if (!grow(answer, is_open, write)) return;
    } catch (const ApiError& error) {
      client.write(event_of(error.answer().body));
      return;
    }
    if (request.includes_usage) write(answer.usage_part());
    client.write(event_of("[DONE]"));
  }

 private:
  // Adds events until the answer is finished. False: the client has gone, as `is_open` or take(part) says.
  bool grow(Answer& answer, const auto& is_open, const auto& take) const {
    while (!answer.is_finished()) {
      const std::optional<TextEvent> event = lease->events->pop(kLookSeconds);
      if (!event && !is_open()) return false;
      if (!event) continue;
      if (!event->failure.empty()) throw ApiError(lease->engine.is_stopped() ? 503 : 500, event->failure);
      if (!std::ranges::all_of(answer.add(*event), take)) return false;
    }
    return true;
  }
};

}  // namespace

TextModel::TextModel(std::string name, LanguageModel& model, Tokenizer tokenizer, std::size_t most_texts,
                     std::int64_t prompt_tokens_a_step, std::vector<std::int32_t> ends, ChatRules chat)
    : name_(std::move(name)),
      tokenizer_(std::move(tokenizer)),
      chat_(std::move(chat)),
      limits_{.positions = model.options().cache_tokens > 0 ? model.options().cache_tokens
                                                            : model.config().max_position_embeddings,
              .texts = most_texts,
              .ends = std::move(ends)},
      engine_(model, tokenizer_, most_texts, prompt_tokens_a_step) {}

HttpAnswer TextModel::completions(const nlohmann::json& json, const HttpRequest& request) {
  return answer<CompletionAnswer>(read_completion_request(json, tokenizer_, limits_), request, "cmpl");
}

HttpAnswer TextModel::chats(const nlohmann::json& json, const HttpRequest& request) {
  return answer<ChatAnswer>(read_chat_request(json, request.body, tokenizer_, chat_, limits_), request, "chatcmpl");
}

template <class Answer>
HttpAnswer TextModel::answer(CompletionRequest request, const HttpRequest& asked, const char* kind) {
  std::shared_ptr<TextEvents> events = engine_.submit(request.jobs(limits_));
  if (!events && engine_.is_stopped()) throw ApiError(503, "the server ends");
  if (!events) {
    throw ApiError(429,
                   fmt::format("{} texts are in progress or wait, the most that this server takes; try again soon",
                               engine_.counts().in_flight),
                   "", "rate_limit_exceeded");
  }
  AnswerWriter<Answer> writer{std::move(request), tokenizer_, new_head(kind, name_),
                              std::shared_ptr<const Lease>(new Lease{engine_, std::move(events)})};
  if (!writer.request.stream) return writer.whole(asked.is_open);
  return {.type = "text/event-stream", .headers = {kNotCached}, .stream = std::move(writer)};
}

HttpAnswer TextModel::embeddings(const nlohmann::json&, const HttpRequest&) {
  throw ApiError(400, fmt::format("the model '{}' continues texts and makes no vectors of them; serve a BERT", name_),
                 "model", "model_not_supported");
}

std::vector<Metric> TextModel::metrics() const {
  const EngineCounts counts = engine_.counts();
  return {{"teratron_texts_in_flight", "texts in progress or waiting", false, counts.in_flight},
          {"teratron_texts_finished_total", "texts that reached their end", true, counts.finished},
          {"teratron_texts_cancelled_total", "texts whose client went away", true, counts.cancelled},
          {"teratron_requests_refused_total", "requests refused because too many texts were in flight", true,
           counts.refused},
          {"teratron_prompt_tokens_total", "tokens of prompts taken", true, counts.prompt_tokens},
          {"teratron_prompt_tokens_computed_total", "tokens of prompts computed", true, counts.prompts.computed},
          {"teratron_prompt_tokens_reused_total", "tokens of prompts copied from the caches of other texts", true,
           counts.prompts.reused},
          {"teratron_new_tokens_total", "tokens made", true, counts.new_tokens}};
}

}  // namespace teratron

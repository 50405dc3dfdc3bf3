// TextModel: serves a model that continues texts.
#pragma once

#include "serve/served_model.h"
#include "serve/text/chat_request.h"

namespace teratron {

class TextModel : public ServedModel {
 public:
  // `most_texts`, `prompt_tokens_a_step`: as TextEngine. `ends`: tokens that end a text (end_tokens_of).
  TextModel(std::string name, LanguageModel& model, Tokenizer tokenizer, std::size_t most_texts,
            std::int64_t prompt_tokens_a_step, std::vector<std::int32_t> ends, ChatRules chat);

  HttpAnswer completions(const nlohmann::json& json, const HttpRequest& request) override;
  HttpAnswer chats(const nlohmann::json& json, const HttpRequest& request) override;
  HttpAnswer embeddings(const nlohmann::json& json, const HttpRequest& request) override;
  std::vector<Metric> metrics() const override;
  void run() override { engine_.run(); }
  void stop() override { engine_.stop(); }

 private:
  template <class Answer>
  HttpAnswer answer(CompletionRequest request, const HttpRequest& asked, const char* kind);

  const std::string name_;
  const Tokenizer tokenizer_;
  const ChatRules chat_;
  const CompletionLimits limits_;
  TextEngine engine_;
};

}  // namespace teratron

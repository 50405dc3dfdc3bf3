// Generation for many connections: their requests go to one Generator on each rank of the model. The first rank's
// engine takes them; the others make the calls that it makes.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "eval/generation/stop_texts.h"
#include "serve/text/text_calls.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

// Event of one of a request's texts.
struct TextEvent {
  std::size_t text = 0;
  std::vector<GeneratedToken> prompt;   // scores of its prompt; empty: another event
  std::optional<GeneratedToken> token;  // new
  std::int64_t reused = 0;  // tokens of its prompt from other texts' caches, with its first token or its end
  std::string bytes;        // that join the text for good, before any stop text
  std::optional<GenerationEnd> end;
  std::string failure;  // why no text of the request goes on
};

// Events of a request's texts, from the engine to the connection.
class TextEvents {
 public:
  explicit TextEvents(std::int64_t number) : number_(number) {}

  std::int64_t number() const { return number_; }  // of the request
  void push(TextEvent event);
  std::optional<TextEvent> pop(double seconds);  // waits so long at most

 private:
  const std::int64_t number_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<TextEvent> events_;
};

struct EngineCounts {
  std::int64_t in_flight = 0, finished = 0, cancelled = 0, refused = 0, prompt_tokens = 0, new_tokens = 0;
  PromptCounts prompts;
};

class TextEngine {
 public:
  // `most_texts`: in progress or waiting at a time. The model and the tokenizer outlive it.
  TextEngine(LanguageModel& model, Tokenizer tokenizer, std::size_t most_texts, std::int64_t prompt_tokens_a_step);

  // Takes all texts of a request, or none: nullptr, where they are too many at present or the engine has stopped.
  std::shared_ptr<TextEvents> submit(std::vector<TextJob> jobs);
  void cancel(const std::shared_ptr<TextEvents>& events);  // the request's texts that are not finished

  // Computes on every rank of the model until stop() is called on the first. LostRank and other errors that are not of
  // a text end it, too; clients of texts in progress get the reason.
  void run();
  void stop();

  bool is_stopped() const;  // then it takes no requests any more

  EngineCounts counts() const;

 private:
  // Text in progress, known to run()'s thread alone.
  struct Text {
    std::shared_ptr<TextEvents> events;  // null on ranks but the first
    std::int64_t request = 0;
    std::size_t index = 0;
    StopTexts stop;
    std::int64_t reused = 0;  // not sent yet
  };

  void serve();
  TextCalls take_calls(bool is_idle);
  bool step();
  void begin(TextCalls::Arrival& arrival);
  void cancel_request(std::int64_t number);
  void send(const Text& text, TextEvent event) const;
  void leave(std::int64_t id, bool is_cancelled);
  void fail_all(const std::string& why);
  bool add_token(std::int64_t id, const GeneratedToken& token);

  const Tokenizer tokenizer_;
  const std::size_t most_texts_;
  Communicator& ranks_;  // of the model
  Generator generator_;
  std::map<std::int64_t, Text> texts_;  // by the generator's numbers

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable called_;
  TextCalls calls_;                                           // not taken yet; calls_.stops: none follows
  std::map<std::int64_t, std::shared_ptr<TextEvents>> came_;  // of its arrivals
  std::int64_t next_request_ = 0;
  EngineCounts counts_;
};

}  // namespace teratron

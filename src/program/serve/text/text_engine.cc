#include "serve/text/text_engine.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace teratron {

void TextEvents::push(TextEvent event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  came_.notify_one();
}

std::optional<TextEvent> TextEvents::pop(double seconds) {
  std::unique_lock lock(mutex_);
  came_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !events_.empty(); });
  if (events_.empty()) return std::nullopt;
  TextEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

TextEngine::TextEngine(LanguageModel& model, Tokenizer tokenizer, std::size_t most_texts,
                       std::int64_t prompt_tokens_a_step)
    : tokenizer_(std::move(tokenizer)),
      most_texts_(most_texts),
      ranks_(*model.mesh().model),
      generator_(
          model, {.queue = most_texts, .prompt_tokens_a_step = prompt_tokens_a_step},
          {.prompt = [this](std::int64_t id,
                            std::vector<GeneratedToken> tokens) { send(texts_.at(id), {.prompt = std::move(tokens)}); },
           .token = [this](std::int64_t id, const GeneratedToken& token) { return add_token(id, token); },
           .finished =
               [this](std::int64_t id, GenerationEnd end, std::int64_t) {
                 Text& text = texts_.at(id);
                 send(text, {.reused = text.reused, .bytes = text.stop.finish(), .end = end});
                 leave(id, false);
               },
           .read = [this](std::int64_t id, std::int64_t reused) { texts_.at(id).reused = reused; }}) {}

std::shared_ptr<TextEvents> TextEngine::submit(std::vector<TextJob> jobs) {
  const std::lock_guard lock(mutex_);
  const auto in_flight = static_cast<std::size_t>(counts_.in_flight);
  if (calls_.stops || jobs.size() > most_texts_ - std::min(most_texts_, in_flight)) {
    ++counts_.refused;
    return nullptr;
  }
  counts_.in_flight += std::ssize(jobs);
  auto events = std::make_shared<TextEvents>(next_request_++);
  came_.emplace(events->number(), events);
  calls_.arrivals.push_back({.number = events->number(), .jobs = std::move(jobs)});
  called_.notify_one();
  return events;
}

void TextEngine::cancel(const std::shared_ptr<TextEvents>& events) {
  const std::lock_guard lock(mutex_);
  calls_.cancelled.push_back(events->number());
  called_.notify_one();
}

void TextEngine::stop() {
  const std::lock_guard lock(mutex_);
  calls_.stops = true;
  called_.notify_one();
}

bool TextEngine::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return calls_.stops;
}

EngineCounts TextEngine::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void TextEngine::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    stop();
    fail_all(error.what());
    throw;
  }
  fail_all("the server ends");
}

void TextEngine::serve() {
  for (bool is_idle = true;;) {
    TextCalls calls = share_calls(ranks_, ranks_.rank() == 0 ? take_calls(is_idle) : TextCalls());
    if (calls.stops) return;
    for (TextCalls::Arrival& arrival : calls.arrivals) begin(arrival);
    for (const std::int64_t number : calls.cancelled) cancel_request(number);
    is_idle = !step();
    const std::lock_guard lock(mutex_);
    counts_.prompts = generator_.prompt_counts();
  }
}

bool TextEngine::step() {
  try {
    return generator_.step();
  } catch (const UserError& error) {  // of one text, but the batch is computed together; every rank finds it
    fail_all(error.what());
    return false;
  }
}

TextCalls TextEngine::take_calls(bool is_idle) {
  std::unique_lock lock(mutex_);
  const auto is_called = [&] { return calls_.stops || !calls_.arrivals.empty() || !calls_.cancelled.empty(); };
  if (is_idle) called_.wait(lock, is_called);
  return std::exchange(calls_, {.stops = calls_.stops});
}

void TextEngine::begin(TextCalls::Arrival& arrival) {
  std::shared_ptr<TextEvents> events;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = came_.extract(arrival.number)) events = found.mapped();
  }
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < arrival.jobs.size(); ++i) {
    TextJob& job = arrival.jobs[i];
    tokens += std::ssize(job.request.text.prompt);
    const std::int64_t id = *generator_.submit(std::move(job.request));  // in_flight bounds its queue
    texts_.emplace(
        id,
        Text{.events = events, .request = arrival.number, .index = i, .stop = StopTexts(std::move(job.stop_texts))});
  }
  const std::lock_guard lock(mutex_);
  counts_.prompt_tokens += tokens;
}

void TextEngine::cancel_request(std::int64_t number) {
  std::vector<std::int64_t> ids;
  for (const auto& [id, text] : texts_) {
    if (text.request == number) ids.push_back(id);
  }
  for (const std::int64_t id : ids) {
    generator_.cancel(id);
    leave(id, true);
  }
}

void TextEngine::send(const Text& text, TextEvent event) const {
  if (!text.events) return;
  event.text = text.index;
  text.events->push(std::move(event));
}

void TextEngine::leave(std::int64_t id, bool is_cancelled) {
  texts_.erase(id);
  const std::lock_guard lock(mutex_);
  --counts_.in_flight;
  ++(is_cancelled ? counts_.cancelled : counts_.finished);
}

// Requests that no call has sent to the other ranks fail, too, so all ranks forget the same texts.
void TextEngine::fail_all(const std::string& why) {
  generator_.cancel_all();
  for (const auto& [id, text] : texts_) send(text, {.failure = why});
  std::map<std::int64_t, std::shared_ptr<TextEvents>> came;
  {
    const std::lock_guard lock(mutex_);
    came.swap(came_);
    calls_.arrivals.clear();
    counts_.in_flight = 0;
  }
  for (const auto& [number, events] : came) events->push({.failure = why});
  texts_.clear();
}

bool TextEngine::add_token(std::int64_t id, const GeneratedToken& token) {
  Text& text = texts_.at(id);
  std::string bytes = text.stop.push(tokenizer_.bytes_of(token.chosen.token));
  send(text, {.token = token, .reused = std::exchange(text.reused, 0), .bytes = std::move(bytes)});
  const std::lock_guard lock(mutex_);
  ++counts_.new_tokens;
  return !text.stop.stopped();
}

}  // namespace teratron

#include "serve/text/text_engine.h"

#include <algorithm>
#include <chrono>

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
      generator_(model, {.queue = most_texts, .prompt_tokens_a_step = prompt_tokens_a_step},
                 {.prompt =
                      [this](std::int64_t id, std::vector<GeneratedToken> tokens) {
                        const Text& text = texts_.at(id);
                        text.events->push({.text = text.index, .prompt = std::move(tokens)});
                      },
                  .token = [this](std::int64_t id, const GeneratedToken& token) { return add_token(id, token); },
                  .finished =
                      [this](std::int64_t id, GenerationEnd end, std::int64_t) {
                        Text& text = texts_.at(id);
                        text.events->push({.text = text.index, .bytes = text.stop.finish(), .end = end});
                        leave(id, false);
                      }}) {}

std::shared_ptr<TextEvents> TextEngine::submit(std::vector<TextJob> jobs) {
  const std::lock_guard lock(mutex_);
  const auto in_flight = static_cast<std::size_t>(counts_.in_flight);
  if (is_stopped_ || jobs.size() > most_texts_ - std::min(most_texts_, in_flight)) {
    ++counts_.refused;
    return nullptr;
  }
  counts_.in_flight += std::ssize(jobs);
  auto events = std::make_shared<TextEvents>();
  arrivals_.push_back({.events = events, .jobs = std::move(jobs)});
  called_.notify_one();
  return events;
}

void TextEngine::cancel(const std::shared_ptr<TextEvents>& events) {
  const std::lock_guard lock(mutex_);
  cancelled_.push_back(events);
  called_.notify_one();
}

void TextEngine::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  called_.notify_one();
}

EngineCounts TextEngine::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void TextEngine::run() {
  bool is_idle = true;
  while (take_calls(is_idle)) is_idle = !step();
  fail_all("the server ends");
}

bool TextEngine::step() {
  try {
    return generator_.step();
  } catch (const std::exception& error) {  // of one text, but the batch is computed together
    fail_all(error.what());
    return false;
  }
}

bool TextEngine::take_calls(bool is_idle) {
  std::vector<Arrival> arrivals;
  std::vector<std::shared_ptr<TextEvents>> cancelled;
  {
    std::unique_lock lock(mutex_);
    if (is_idle) called_.wait(lock, [&] { return is_stopped_ || !arrivals_.empty() || !cancelled_.empty(); });
    if (is_stopped_) return false;
    arrivals.swap(arrivals_);
    cancelled.swap(cancelled_);
  }
  for (Arrival& arrival : arrivals) begin(arrival);
  for (const std::shared_ptr<TextEvents>& events : cancelled) {
    std::vector<std::int64_t> ids;
    for (const auto& [id, text] : texts_) {
      if (text.events == events) ids.push_back(id);
    }
    for (const std::int64_t id : ids) {
      generator_.cancel(id);
      leave(id, true);
    }
  }
  return true;
}

void TextEngine::begin(Arrival& arrival) {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < arrival.jobs.size(); ++i) {
    TextJob& job = arrival.jobs[i];
    tokens += std::ssize(job.request.text.prompt);
    const std::int64_t id = *generator_.submit(std::move(job.request));  // in_flight bounds its queue
    texts_.emplace(id, Text{.events = arrival.events, .index = i, .stop = StopTexts(std::move(job.stop_texts))});
  }
  const std::lock_guard lock(mutex_);
  counts_.prompt_tokens += tokens;
}

void TextEngine::leave(std::int64_t id, bool is_cancelled) {
  texts_.erase(id);
  const std::lock_guard lock(mutex_);
  --counts_.in_flight;
  ++(is_cancelled ? counts_.cancelled : counts_.finished);
}

void TextEngine::fail_all(const std::string& why) {
  generator_.cancel_all();
  for (const auto& [id, text] : texts_) text.events->push({.text = text.index, .failure = why});
  std::vector<Arrival> arrivals;
  {
    const std::lock_guard lock(mutex_);
    arrivals.swap(arrivals_);
    counts_.in_flight = 0;
  }
  for (const Arrival& arrival : arrivals) arrival.events->push({.failure = why});
  texts_.clear();
}

bool TextEngine::add_token(std::int64_t id, const GeneratedToken& token) {
  Text& text = texts_.at(id);
  std::string bytes = text.stop.push(tokenizer_.bytes_of(token.chosen.token));
  text.events->push({.text = text.index, .token = token, .bytes = std::move(bytes)});
  const std::lock_guard lock(mutex_);
  ++counts_.new_tokens;
  return !text.stop.stopped();
}

}  // namespace teratron

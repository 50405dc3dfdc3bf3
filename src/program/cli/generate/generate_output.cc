#include "cli/generate/generate_output.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/host/monotonic_clock.h"
#include "base/host/standard_streams.h"
#include "base/json_string.h"
#include "cli/report.h"
#include "console/long_task.h"

namespace teratron {
namespace {

// Seconds before progress is shown, and between its lines on a terminal and elsewhere.
constexpr double kPatienceSeconds = 2, kLiveSeconds = 0.2, kLineSeconds = 10;

std::string_view name_of(GenerationEnd end) {
  switch (end) {
    case GenerationEnd::kEndToken: return "end_of_text";
    case GenerationEnd::kStopped: return "stop";
    case GenerationEnd::kLength: break;
  }
  return "length";
}

}  // namespace

GenerateOutput::GenerateOutput(const GenerateOptions& options, const Tokenizer& tokenizer,
                               std::span<const GeneratePrompt> prompts, std::span<const GenerationRequest> requests,
                               bool shows)
    : options_(options),
      tokenizer_(tokenizer),
      prompts_(prompts),
      requests_(requests),
      shows_(shows),
      line_(stderr, shows ? terminal_columns(stderr) : 0),
      start_(monotonic_seconds()),
      next_progress_(start_ + kPatienceSeconds) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    texts_.push_back({.stop = StopTexts(options.stop_texts), .decoder = StreamDecoder(tokenizer)});
  }
  if (shows && !options.json.empty() && !is_standard_stream(options.json)) file_.emplace(options.json);
  if (is_single()) show(prompts.front().text);
}

GenerateOutput::~GenerateOutput() {
  if (!is_single() || texts_.front().is_finished) return;
  try {
    show("\n");
  } catch (const std::exception&) {  // the reader has ended
  }
}

GenerationEvents GenerateOutput::events() {
  return {.prompt =
              [this](std::size_t request, std::span<const double> values) {
                texts_[request].prompt_log_probabilities.assign(values.begin(), values.end());
              },
          .token = [this](std::size_t request, std::int32_t token,
                          double log_probability) { return add_token(request, token, log_probability); },
          .finished = [this](std::size_t request, GenerationEnd end,
                             std::int64_t moves) { end_text(request, end, moves); }};
}

bool GenerateOutput::add_token(std::size_t request, std::int32_t token, double log_probability) {
  Text& text = texts_[request];
  const std::string kept = text.stop.push(tokenizer_.bytes_of(token));
  emit(text, text.decoder.push_bytes(kept));
  ++tokens_;
  ++tokens_done_;
  text.tokens.push_back(token);
  text.log_probabilities.push_back(log_probability);
  show_progress();
  return !text.stop.stopped();
}

void GenerateOutput::end_text(std::size_t request, GenerationEnd end, std::int64_t moves) {
  Text& text = texts_[request];
  emit(text, text.decoder.push_bytes(text.stop.finish()) + text.decoder.finish());
  text.end = end;
  text.moves = moves;
  text.is_finished = true;
  tokens_done_ += options_.settings.max_new_tokens - static_cast<std::int64_t>(text.tokens.size());
  ++finished_;
  if (is_single()) return show("\n");
  write_finished();
}

void GenerateOutput::emit(Text& text, const std::string& piece) const {
  text.text += piece;
  if (is_single()) show(piece);
}

void GenerateOutput::show(std::string_view text) const {
  if (shows_ && !is_standard_stream(options_.json)) print_result(text);
}

std::string GenerateOutput::heading(const GenerationRequest& request) const {
  const std::string sample = options_.samples > 1 ? fmt::format(", sample {}", request.sample + 1) : "";
  return fmt::format("--- prompt {}{} ---\n", request.number + 1, sample);
}

// Writes ended texts in the order of the prompts.
void GenerateOutput::write_finished() {
  for (; written_ < texts_.size() && texts_[written_].is_finished; ++written_) {
    const GenerationRequest& request = requests_[written_];
    if (shows_) line_.clear();
    show(heading(request) + prompts_[request.number].text + texts_[written_].text + "\n");
    write_json_line(written_, nlohmann::json::object());
    texts_[written_] = {.stop = StopTexts({}), .decoder = StreamDecoder(tokenizer_), .is_finished = true};
  }
}

nlohmann::ordered_json GenerateOutput::json_of(std::size_t index) const {
  const GenerationRequest& request = requests_[index];
  const Text& text = texts_[index];
  const GeneratePrompt& prompt = prompts_[request.number];
  nlohmann::ordered_json json = {{"prompt_index", request.number},
                                 {"sample_index", request.sample},
                                 {"prompt", prompt.text},
                                 {"prompt_tokens", request.prompt},
                                 {"prompt_tokens_removed", prompt.tokens_removed},
                                 {"tokens", text.tokens},
                                 {"text", text.text},
                                 {"logprobs", text.log_probabilities},
                                 {"finish_reason", name_of(text.end)},
                                 {"context_moves", text.moves}};
  if (options_.settings.prompt_log_probabilities) {
    nlohmann::ordered_json values = {nullptr};  // the first token has none
    for (const double value : text.prompt_log_probabilities) values.push_back(value);
    json["prompt_logprobs"] = std::move(values);
  }
  return json;
}

void GenerateOutput::write_json_line(std::size_t request, const nlohmann::json& run) {
  if (!shows_ || options_.json.empty()) return;
  nlohmann::ordered_json json = json_of(request);
  for (const auto& [key, value] : run.items()) json[key] = value;
  const std::string line = json_text(json) + "\n";
  file_ ? file_->write(line) : print_result(line);
}

void GenerateOutput::show_progress() {
  const double now = monotonic_seconds();
  if (!shows_ || is_single() || now < next_progress_) return;
  next_progress_ = now + (line_.possible() ? kLiveSeconds : kLineSeconds);
  const double seconds = now - start_;
  const double all = static_cast<double>(texts_.size()) * static_cast<double>(options_.settings.max_new_tokens);
  const std::string text =
      progress_text(fmt::format("generate: {} of {}, {:.1f} tokens/s", finished_, counted(std::ssize(texts_), "text"),
                                static_cast<double>(tokens_) / seconds),
                    static_cast<double>(tokens_done_) / all, seconds);
  line_.show(text);
  if (!line_.possible()) report_to_user(text);
}

void GenerateOutput::finish(const nlohmann::json& run) {
  if (is_single()) write_json_line(0, run);
  if (file_) file_->commit();
}

}  // namespace teratron

// Output of `teratron generate`: a single text as it comes, several in order, and a line of JSON for each.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "console/live_line.h"
#include "data/text/content.h"
#include "eval/generation/generation.h"
#include "eval/generation/stop_texts.h"
#include "runtime/backend_choice.h"
#include "settings/layout_settings.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {

struct GenerateOptions {
  std::filesystem::path load, tokenizer, json, prompts, chat_template;
  std::string prompt, system;
  TextFormat prompt_format = TextFormat::kAuto;
  LongPrompt long_prompt = LongPrompt::kRefuse;
  std::vector<std::string> stop_texts;
  std::int64_t samples = 1, batch = 0;
  GenerationSettings settings;
  std::int64_t seed = 1234;
  LayoutSettings layout;
  BackendSettings backend;
  bool ignore_end = false, chat = false;

  Faults faults() const;
};

// Prompt, and the number of tokens cut off.
struct GeneratePrompt {
  std::string text;
  std::int64_t tokens_removed = 0;
};

class GenerateOutput {
 public:
  // `shows`: this rank prints; the others only find the ends of texts. Request i is a sample of prompt
  // requests[i].number. All arguments outlive it.
  GenerateOutput(const GenerateOptions& options, const Tokenizer& tokenizer, std::span<const GeneratePrompt> prompts,
                 std::span<const GenerationRequest> requests, bool shows);
  GenerateOutput(const GenerateOutput&) = delete;
  GenerateOutput& operator=(const GenerateOutput&) = delete;
  ~GenerateOutput();  // ends the line of a text after an error

  GenerationEvents events();
  // Ends the output. `run`: more fields for the JSON line of a single text.
  void finish(const nlohmann::json& run);
  std::int64_t tokens() const { return tokens_; }

 private:
  struct Text {
    StopTexts stop;
    StreamDecoder decoder;
    std::string text;
    std::vector<std::int32_t> tokens;
    std::vector<double> log_probabilities, prompt_log_probabilities;
    GenerationEnd end = GenerationEnd::kLength;
    std::int64_t moves = 0;
    bool is_finished = false;
  };

  bool is_single() const { return texts_.size() == 1; }
  bool add_token(std::size_t request, std::int32_t token, double log_probability);
  void end_text(std::size_t request, GenerationEnd end, std::int64_t moves);
  void emit(Text& text, const std::string& piece) const;
  void write_finished();
  void show(std::string_view text) const;
  std::string heading(const GenerationRequest& request) const;
  nlohmann::ordered_json json_of(std::size_t request) const;
  void write_json_line(std::size_t request, const nlohmann::json& run);
  // Shows progress on this thread: that of a LongTask could write between the texts on the terminal.
  void show_progress();

  const GenerateOptions& options_;
  const Tokenizer& tokenizer_;
  const std::span<const GeneratePrompt> prompts_;
  const std::span<const GenerationRequest> requests_;
  const bool shows_;
  std::vector<Text> texts_;
  std::size_t written_ = 0, finished_ = 0;
  std::int64_t tokens_ = 0, tokens_done_ = 0;  // tokens_done_: includes tokens that ended texts did not need
  std::optional<AtomicFile> file_;
  LiveLine line_;
  double start_, next_progress_;
};

}  // namespace teratron

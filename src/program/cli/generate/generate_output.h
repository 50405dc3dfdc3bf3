// Where `teratron generate` puts its texts: on the terminal as they come or, of several, in order; and as JSON, a line
// each.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "cli/generate/generate_options.h"
#include "console/live_line.h"
#include "eval/generation/stop_texts.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {

// A prompt as it was given, and how many of its tokens were cut off.
struct GeneratePrompt {
  std::string text;
  std::int64_t tokens_removed = 0;
};

class GenerateOutput {
 public:
  // `shows`: this rank is the one that talks; the others only find out where texts end. Request i is a sample of prompt
  // requests[i].number. All outlive it.
  GenerateOutput(const GenerateOptions& options, const Tokenizer& tokenizer, std::span<const GeneratePrompt> prompts,
                 std::span<const GenerationRequest> requests, bool shows);
  GenerateOutput(const GenerateOutput&) = delete;
  GenerateOutput& operator=(const GenerateOutput&) = delete;
  ~GenerateOutput();  // ends the line of a text that an error cut off

  GenerationEvents events();
  // After the last text; `run` joins the line of a single text.
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
  void hand_out(Text& text, const std::string& piece) const;
  void write_finished();
  void show(std::string_view text) const;
  std::string heading(const GenerationRequest& request) const;
  nlohmann::ordered_json json_of(std::size_t request) const;
  void write_json_line(std::size_t request, const nlohmann::json& run);
  // A line of its own, not a LongTask: that one's thread could write between the texts, which go to the same terminal.
  void show_progress();

  const GenerateOptions& options_;
  const Tokenizer& tokenizer_;
  const std::span<const GeneratePrompt> prompts_;
  const std::span<const GenerationRequest> requests_;
  const bool shows_;
  std::vector<Text> texts_;
  std::size_t written_ = 0, finished_ = 0;
  std::int64_t tokens_ = 0, tokens_done_ = 0;  // tokens_done_: with those that ended texts did not need
  std::optional<AtomicFile> file_;
  LiveLine line_;
  double start_, next_progress_;
};

}  // namespace teratron

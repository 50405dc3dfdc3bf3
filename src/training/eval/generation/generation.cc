#include "eval/generation/generation.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "eval/generation/generator.h"

namespace teratron {

void generate_all(LanguageModel& model, std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                  const GenerationEvents& events) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return requests[i].prompt.size(); });
  // The generator numbers requests in this order.
  const auto request = [&](std::int64_t id) { return order[static_cast<std::size_t>(id)]; };
  GeneratorEvents each;
  if (events.prompt) {
    each.prompt = [&](std::int64_t id, const std::vector<GeneratedToken>& tokens) {
      std::vector<double> values;
      for (const GeneratedToken& token : tokens) values.push_back(token.chosen.log_probability);
      events.prompt(request(id), values);
    };
  }
  each.token = [&](std::int64_t id, const GeneratedToken& token) {
    return events.token(request(id), token.chosen.token, token.chosen.log_probability);
  };
  if (events.finished) {
    each.finished = [&](std::int64_t id, GenerationEnd end, std::int64_t moves) {
      events.finished(request(id), end, moves);
    };
  }
  Generator generator(model, {.queue = requests.size()}, std::move(each));
  for (const std::size_t i : order) generator.submit({.text = requests[i], .settings = settings});
  while (generator.step()) {
  }
}

std::int64_t generate(LanguageModel& model, std::span<const std::int32_t> prompt, const GenerationSettings& settings,
                      const std::function<void(std::int32_t)>& emit) {
  const GenerationRequest request{.prompt = {prompt.begin(), prompt.end()}};
  std::int64_t count = 0;
  const auto token = [&](std::size_t, std::int32_t id, double) {
    ++count;
    emit(id);
    return true;
  };
  generate_all(model, {&request, 1}, settings, {.prompt = {}, .token = token, .finished = {}});
  return count;
}

std::int64_t cache_tokens_for(std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                              const ModelConfig& config) {
  std::int64_t longest = 1;
  for (const GenerationRequest& request : requests) {
    longest = std::max(longest, static_cast<std::int64_t>(request.prompt.size()));
  }
  const std::int64_t positions = config.max_position_embeddings;
  return std::min(positions, longest + std::min(positions, std::max<std::int64_t>(0, settings.max_new_tokens - 1)));
}

std::int64_t choose_caches(std::size_t requests, std::int64_t cache_tokens, const ModelConfig& config,
                           std::int64_t bytes_of_element) {
  constexpr std::int64_t kMost = 32, kMostBytes = std::int64_t{1} << 30;
  const std::int64_t bytes =
      config.num_layers * cache_tokens * 2 * config.key_value_heads() * config.head_size() * bytes_of_element;
  const std::int64_t fit = std::max<std::int64_t>(1, kMostBytes / bytes);
  return std::min({kMost, fit, std::max<std::int64_t>(1, static_cast<std::int64_t>(requests))});
}

std::vector<std::int32_t> prompt_tokens(const Tokenizer& tokenizer, std::string_view prompt) {
  std::vector<std::int32_t> tokens = tokenizer.encode(prompt, SpecialText::kToken);
  // Models whose tokenizer begins every text so were trained on such texts.
  const std::optional<std::int32_t> beginning = tokenizer.beginning_of_text();
  if (beginning && (tokens.empty() || tokens.front() != *beginning)) tokens.insert(tokens.begin(), *beginning);
  if (!tokens.empty()) return tokens;
  if (!tokenizer.end_of_text()) {
    throw_user_error("a prompt is empty and the tokenizer has no end-of-text to start from");
  }
  return {*tokenizer.end_of_text()};
}

std::int64_t fit_prompt(std::vector<std::int32_t>& prompt, std::int64_t positions, LongPrompt rule,
                        std::optional<std::int32_t> beginning, std::string_view name) {
  const std::int64_t tokens = static_cast<std::int64_t>(prompt.size()), lost = tokens - positions;
  if (lost <= 0) return 0;
  switch (rule) {
    case LongPrompt::kRefuse:
      throw_user_error(
          "{} has {} tokens, and the model's context holds {}; shorten it, or cut it: --truncate-prompt left keeps its "
          "end, right its beginning",
          name, tokens, positions);
    case LongPrompt::kCutLeft: {
      const auto first = prompt.begin() + (prompt.front() == beginning && positions > 1 ? 1 : 0);
      prompt.erase(first, first + lost);
      break;
    }
    case LongPrompt::kCutRight: prompt.resize(static_cast<std::size_t>(positions)); break;
  }
  return lost;
}

}  // namespace teratron

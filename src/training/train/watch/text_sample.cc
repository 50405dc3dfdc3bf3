#include "train/watch/text_sample.h"

#include <algorithm>

#include "base/error.h"
#include "base/round_up.h"
#include "data/text/end_tokens.h"
#include "nn/host_values.h"
#include "train/micro_batches.h"

namespace teratron {
namespace {

// The logits of what follows `text`, on every rank of the model's copy. Token slices need sequences of their full
// length, and ranks that share rows out as many each; what is filled up comes after the text, where nothing of it is
// seen.
std::vector<float> next_logits(Executor& executor, const Model& model, std::int64_t vocab_size,
                               std::span<const std::int32_t> text) {
  const auto length = static_cast<std::int64_t>(text.size());
  const ExecutorOptions& options = executor.options();
  const std::int64_t unit = options.sequence_parallel ? executor.mesh().tensor->size() : 1;
  const std::int64_t tokens = options.schedule.slices > 1 ? options.tokens : round_up(length, unit);
  std::vector<std::int32_t> ids(text.begin(), text.end());
  ids.resize(static_cast<std::size_t>(tokens), 0);
  std::vector<double> logits(static_cast<std::size_t>(vocab_size));
  MicroBatch micro_batch{.ids = ids, .batch = 1, .tokens = tokens};
  if (const auto slices = slices_by_documents(executor)) {
    const std::vector<std::int32_t> one_document(ids.size());
    micro_batch.slice_tokens = slicing::cut_by_documents(*slices, one_document);
  }
  Communicator& vocabulary_ranks = model.traits.vocabulary_parallel ? *executor.mesh().model : *executor.mesh().tensor;
  executor.forward(micro_batch, [&](const EndCall& call, TensorRef x) {
    const std::int64_t token = length - 1 - call.pass.first_position;
    if (token < 0 || token >= call.pass.tokens) return;
    const TensorRef own = model.next_token_logits(call, x, token);
    std::vector<float> columns(static_cast<std::size_t>(own.dim(1)));
    download_floats(executor.backend(), own, columns);
    const auto first = static_cast<std::size_t>(vocabulary_ranks.rank()) * columns.size();
    for (std::size_t i = 0; i < columns.size() && first + i < logits.size(); ++i) {
      logits[first + i] = static_cast<double>(columns[i]);
    }
    vocabulary_ranks.all_reduce_host(logits);  // the others have zeros there
  });
  std::vector<float> shared(logits.size());
  std::ranges::transform(logits, shared.begin(), [](double value) { return static_cast<float>(value); });
  if (!model.traits.vocabulary_parallel) executor.share_from_last_stage(shared);
  return shared;
}

}  // namespace

TextSamples text_samples(const TrainConfig& config) {
  TextSamples samples;
  if (config.output.sample_prompts.empty()) return samples;
  const Tokenizer tokenizer = Tokenizer::load(config.model.tokenizer);
  samples.settings = {.sampling = {.seed = static_cast<std::uint64_t>(config.seed)},
                      .max_new_tokens = config.output.sample_tokens,
                      .stop = tokenizer.end_of_text(),
                      .other_stops = end_tokens_of(config.model.tokenizer, tokenizer),
                      .tokens = tokenizer.vocab_size()};
  for (const std::string& text : config.output.sample_prompts) {
    samples.prompts.push_back({.text = text, .tokens = prompt_tokens(tokenizer, text)});
    const std::int64_t tokens = std::ssize(samples.prompts.back().tokens);
    if (tokens < config.model.seq_length) continue;
    throw_user_error("--sample-prompt \"{}\" has {} tokens; it must have fewer than --seq-length {}", text, tokens,
                     config.model.seq_length);
  }
  return samples;
}

std::vector<std::int32_t> continue_text(Executor& executor, const Model& model, std::int64_t vocab_size,
                                        std::span<const std::int32_t> prompt, const GenerationSettings& settings) {
  std::vector<std::int32_t> text(prompt.begin(), prompt.end());
  const std::int64_t longest =
      std::min(executor.options().tokens, static_cast<std::int64_t>(prompt.size()) + settings.max_new_tokens);
  const auto drawn =
      static_cast<std::size_t>(settings.tokens == 0 ? vocab_size : std::min(settings.tokens, vocab_size));
  while (static_cast<std::int64_t>(text.size()) < longest) {
    const std::vector<float> logits = next_logits(executor, model, vocab_size, text);
    const std::int32_t next = sample_token(std::span(logits).first(drawn), settings.sampling, std::ssize(text));
    if (settings.ends_at(next)) break;
    text.push_back(next);
  }
  text.erase(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
  return text;
}

}  // namespace teratron

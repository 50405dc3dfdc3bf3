#include "eval/generation/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "eval/finite_outputs.h"

namespace teratron {
namespace {

struct Candidate {
  std::int32_t token;
  double weight;  // proportional to its probability
};

// Orders ties by token, so that cuts are reproducible.
bool is_likelier(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

double total_of(const std::vector<Candidate>& candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& candidate) { return sum + candidate.weight; });
}

void keep_top_k(std::vector<Candidate>& candidates, std::int64_t k) {
  if (k == 0 || k >= static_cast<std::int64_t>(candidates.size())) return;
  std::nth_element(candidates.begin(), candidates.begin() + k, candidates.end(), is_likelier);
  candidates.resize(static_cast<std::size_t>(k));
}

// Keeps the nucleus. A heap yields the likeliest tokens one by one; mostly few are needed, and sorting a vocabulary
// would take longer than a small model.
void keep_nucleus(std::vector<Candidate>& candidates, double p) {
  if (p >= 1) return;
  const double enough = p * total_of(candidates);
  const auto is_less_likely = [](const Candidate& a, const Candidate& b) { return is_likelier(b, a); };
  std::make_heap(candidates.begin(), candidates.end(), is_less_likely);
  auto end = candidates.end();
  double mass = 0;
  do {
    std::pop_heap(candidates.begin(), end, is_less_likely);
    mass += (--end)->weight;
  } while (end != candidates.begin() && mass < enough);
  candidates.erase(candidates.begin(), end);
}

// Penalties of OpenAI's interface: mu[j] - c[j] * frequency - (c[j] > 0) * presence, where token j stands c[j] times in
// `generated`.
void penalize_counts(std::span<float> logits, std::span<const std::int32_t> generated, double presence,
                     double frequency) {
  if (presence == 0 && frequency == 0) return;
  std::vector<std::int32_t> tokens(generated.begin(), generated.end());
  std::ranges::sort(tokens);
  for (auto token = tokens.begin(); token != tokens.end();) {
    const auto next = std::upper_bound(token, tokens.end(), *token);
    float& logit = logits[static_cast<std::size_t>(*token)];
    logit = static_cast<float>(static_cast<double>(logit) - static_cast<double>(next - token) * frequency - presence);
    token = next;
  }
}

}  // namespace

Faults SamplingSettings::faults() const {
  Faults faults;
  faults.add_if(!(temperature >= 0), "{} is {}; 0 is greedy, the least", Flag{"temperature"}, temperature);
  faults.add_if(top_k < 0, "{} is {}; 0 is off, the least", Flag{"top-k"}, top_k);
  faults.add_if(!(top_p > 0 && top_p <= 1), "{} is {}; it must be above 0, at most 1", Flag{"top-p"}, top_p);
  faults.add_if(!(repetition_penalty >= kLeastPenalty && repetition_penalty <= kMostPenalty),
                "{} is {}; it must be from {} to {}, and 1 is off", Flag{"repetition-penalty"}, repetition_penalty,
                kLeastPenalty, kMostPenalty);
  for (const auto& [name, penalty] :
       {std::pair{"presence-penalty", presence_penalty}, {"frequency-penalty", frequency_penalty}}) {
    faults.add_if(!(std::abs(penalty) <= kMostAdditivePenalty), "{} is {}; it must be from {} to {}, and 0 is off",
                  Flag{name}, penalty, -kMostAdditivePenalty, kMostAdditivePenalty);
  }
  return faults;
}

std::int32_t sample_token(std::span<const float> logits, const SamplingSettings& settings, const DrawIndex& index) {
  check(!logits.empty(), "logits to sample from");
  if (first_not_finite(logits)) {
    throw_user_error("the model's logits are not finite: its weights are damaged or diverged");
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  if (settings.temperature == 0) return static_cast<std::int32_t>(best - logits.begin());

  std::vector<Candidate> candidates(logits.size());
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double distance = static_cast<double>(logits[token]) - static_cast<double>(*best);
    candidates[token] = {static_cast<std::int32_t>(token), std::exp(distance / settings.temperature)};
  }
  keep_top_k(candidates, settings.top_k);
  keep_nucleus(candidates, settings.top_p);
  // Draws in the order of tokens. In the order of probabilities the rounding of another layout could swap two equally
  // likely tokens and change the draw.
  if (candidates.size() < logits.size()) std::ranges::sort(candidates, {}, &Candidate::token);
  RandomSequence random(
      {.seed = settings.seed, .purpose = RandomPurpose::kSampling, .stream = index.sample, .step = index.prompt},
      static_cast<std::uint64_t>(index.position));
  double left = random.uniform() * total_of(candidates);
  for (const Candidate& candidate : candidates) {
    left -= candidate.weight;
    if (left < 0) return candidate.token;
  }
  return std::ranges::min_element(candidates, is_likelier)->token;  // rounding left a rest
}

void penalize_repetition(std::span<float> logits, std::span<const std::int32_t> text, double penalty) {
  if (penalty == 1) return;
  const auto factor = static_cast<float>(penalty);
  std::vector<float> penalized;  // from the original logits: a token may occur twice
  penalized.reserve(text.size());
  for (const std::int32_t token : text) {
    const float logit = logits[static_cast<std::size_t>(token)];
    penalized.push_back(logit < 0 ? logit * factor : logit / factor);
  }
  for (std::size_t i = 0; i < text.size(); ++i) logits[static_cast<std::size_t>(text[i])] = penalized[i];
}

void adjust_logits(std::span<float> logits, const SamplingSettings& settings, std::span<const std::int32_t> text,
                   std::size_t prompt) {
  for (const auto& [token, bias] : settings.biases) {
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = static_cast<float>(static_cast<double>(logit) + bias);
  }
  penalize_repetition(logits, text, settings.repetition_penalty);
  penalize_counts(logits, text.subspan(prompt), settings.presence_penalty, settings.frequency_penalty);
}

double log_probability(std::span<const float> logits, std::int32_t token) {
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return static_cast<double>(logits[static_cast<std::size_t>(token)]) - most - std::log(sum);
}

}  // namespace teratron

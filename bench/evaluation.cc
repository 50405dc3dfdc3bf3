// How fast models are evaluated, as a share of the rate of the forward pass in training: `eval loss`, `eval
// wikitext103` (overlapping windows) and `eval lambada` as the commands compute them, of the same model with random
// weights, taking turns with training steps; medians. Rates are tokens that pass through the model; padding does not
// count.
//   bench_evaluation [tiny | LAYERS HIDDEN HEADS TOKENS VOCABULARY BATCH]... [--rounds N] [--threads N]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

#include "base/host/threads.h"
#include "base/median.h"
#include "eval/lambada.h"
#include "eval/windows.h"
#include "model/language_model.h"
#include "pipeline/timing/trace.h"
#include "program.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_of(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Sizes {
  std::int64_t layers, hidden, heads, tokens, vocab, batch;
};
constexpr Sizes kTiny = {.layers = 2, .hidden = 32, .heads = 2, .tokens = 64, .vocab = 320, .batch = 4};

std::vector<std::int32_t> random_ids(std::int64_t count, std::int64_t vocab) {
  std::mt19937 random(1);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocab));
  return ids;
}

class Side {
 public:
  Side(const Sizes& sizes, Purpose purpose)
      : backend_(make_cpu_backend()),
        model_(*backend_,
               {.num_layers = sizes.layers,
                .hidden_size = sizes.hidden,
                .num_attention_heads = sizes.heads,
                .vocab_size = sizes.vocab,
                .max_position_embeddings = sizes.tokens,
                .hidden_dropout = 0,
                .attention_dropout = 0},
               {.purpose = purpose, .batch = sizes.batch, .tokens = sizes.tokens}) {
    model_.allocate();
    model_.initialize(1);
  }
  LanguageModel& model() { return model_; }

 private:
  std::unique_ptr<Backend> backend_;
  LanguageModel model_;
};

class Measurement {
 public:
  explicit Measurement(const Sizes& sizes)
      : sizes_(sizes),
        training_(sizes, Purpose::kTraining),
        evaluation_(sizes, Purpose::kEvaluation),
        ids_(random_ids(kBatches * sizes.batch * sizes.tokens + 1, sizes.vocab)),
        weights_(static_cast<std::size_t>(sizes.batch * sizes.tokens), 1.0F) {
    // Passages of half to all of the context, which is about as much as LAMBADA's lengths differ.
    std::mt19937 random(2);
    for (std::int64_t i = 0; i < kBatches * sizes.batch; ++i) {
      const std::int64_t length =
          sizes.tokens / 2 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(sizes.tokens / 2));
      passages_.push_back(
          {.ids = random_ids(length, sizes.vocab), .scored = 1 + static_cast<std::int64_t>(random() % 2)});
      passage_tokens_ += length - 1;
    }
    training_.model().record(&trace_);
    round();
    for (std::vector<double>& of_kind : rates_) of_kind.clear();
  }

  void round() {
    rates_[0].push_back(training_forward());
    rates_[1].push_back(windows(sizes_.tokens));
    rates_[2].push_back(windows(kStride));
    rates_[3].push_back(cloze());
  }
  // Of the forward pass, then of the evaluations.
  const std::vector<std::vector<double>>& rates() const { return rates_; }

 private:
  static constexpr std::int64_t kBatches = 4, kStride = 32;  // eval wikitext103's --overlapping-eval

  // Tokens a second of embedding and layers in a step, and of the loss, which a step computes together with its
  // gradients and which is therefore timed without them.
  double training_forward() {
    double seconds = 0;
    const auto inputs = static_cast<std::size_t>(sizes_.batch * sizes_.tokens);
    for (std::int64_t i = 0; i < kBatches; ++i) {
      const auto begin = static_cast<std::size_t>(i) * inputs;
      const MicroBatch batch{.ids = std::span(ids_).subspan(begin, inputs),
                             .targets = std::span(ids_).subspan(begin + 1, inputs),
                             .weights = weights_,
                             .batch = sizes_.batch,
                             .tokens = sizes_.tokens};
      trace_.clear();
      training_.model().forward_backward(batch);
      for (const pipeline::TraceSpan& span : trace_) {
        const bool is_forward =
            span.kind == pipeline::TraceSpan::Kind::kPass && span.action.pass == pipeline::Pass::kForward;
        if (is_forward) seconds += span.end - span.start;
      }
      training_.model().forward(batch, [&](const EndCall& call, TensorRef x) {
        seconds += seconds_of([&] { compute_losses(training_.model(), call, x, batch.targets); });
      });
    }
    return static_cast<double>(kBatches) * static_cast<double>(inputs) / seconds;
  }

  static void compute_losses(LanguageModel& model, const EndCall& call, TensorRef x,
                             std::span<const std::int32_t> targets) {
    const TensorRef rows = model.model().final_normed(call, x).flatten_rows();
    const TensorRef there = model.plan().memory().targets(rows.dim(0));
    model.backend().upload(there, targets.data());
    model.model().row_scores(call, rows, there, {});
  }

  double windows(std::int64_t stride) {
    const std::int64_t targets = sizes_.tokens + (kBatches * sizes_.batch - 1) * stride;
    const std::vector<ScoringWindow> all = scoring_windows(targets, sizes_.tokens, stride);
    std::int64_t tokens = 0;
    for (const ScoringWindow& window : all) tokens += window.length;
    const auto text = std::span(ids_).first(static_cast<std::size_t>(targets) + 1);
    const double seconds =
        seconds_of([&] { score_windows(evaluation_.model(), text, all, [](const ScoringState&) {}); });
    return static_cast<double>(tokens) / seconds;
  }

  double cloze() {
    const double seconds = seconds_of([&] { score_cloze(evaluation_.model(), passages_); });
    return static_cast<double>(passage_tokens_) / seconds;
  }

  const Sizes sizes_;
  Side training_, evaluation_;
  const std::vector<std::int32_t> ids_;
  const std::vector<float> weights_;
  std::vector<Continuation> passages_;
  std::int64_t passage_tokens_ = 0;
  std::vector<pipeline::TraceSpan> trace_;
  std::vector<std::vector<double>> rates_ = std::vector<std::vector<double>>(4);
};

void measure(const Sizes& sizes, int rounds) {
  Measurement measurement(sizes);
  for (int i = 0; i < rounds; ++i) measurement.round();
  const auto& rates = measurement.rates();
  fmt::print("| L {}, h {}, {} heads, s {}, V {}, batch {} | {:.0f} |", sizes.layers, sizes.hidden, sizes.heads,
             sizes.tokens, sizes.vocab, sizes.batch, median(rates[0]));
  for (std::size_t i = 1; i < rates.size(); ++i) {
    std::vector<double> shares;  // of the forward pass in the same round, since machines change their speed
    std::ranges::transform(rates[i], rates[0], std::back_inserter(shares), std::divides());
    fmt::print(" {:.0f} ({:.0f} %) |", median(rates[i]), 100 * median(shares));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

int run(std::span<char*> arguments) {
  std::vector<Sizes> all;
  int rounds = 7, threads = 2;
  for (std::size_t i = 1; i < arguments.size();) {
    const std::string_view word = arguments[i];
    const auto number = [&](std::size_t at) { return i + at < arguments.size() ? std::atoll(arguments[i + at]) : 0; };
    if (word == "--rounds" || word == "--threads") {
      (word == "--rounds" ? rounds : threads) = static_cast<int>(number(1));
      i += 2;
    } else if (word == "tiny") {
      all.push_back(kTiny);
      ++i;
    } else {
      all.push_back({number(0), number(1), number(2), number(3), number(4), number(5)});
      i += 6;
    }
  }
  set_thread_count(threads);
  if (all.empty())
    all = {
        {4, 192, 3, 128, 4096, 8}, {4, 256, 4, 256, 8192, 8}, {6, 384, 6, 256, 4096, 8}, {12, 768, 12, 1024, 50257, 1}};
  fmt::print(
      "| model | forward in training, tokens/s | eval loss | eval wikitext103 | eval lambada "
      "|\n|---|---|---|---|---|\n");
  for (const Sizes& sizes : all) measure(sizes, rounds);
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }

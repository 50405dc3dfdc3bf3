#include "train/doctor/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace teratron {
namespace {

constexpr double kJump = 4;  // factor of a rate or a norm; schedules and batches change them by less

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::string name_of_layer(std::int64_t layer) {
  return layer < 0 ? std::string("the embedding") : fmt::format("layer {}", layer);
}

std::string text_of(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "not finite"; }

// A sample's loss for sorting: one that is no number is the highest.
double rank_of_loss(const SampleLoss& sample) {
  return std::isnan(sample.loss) ? std::numeric_limits<double>::infinity() : sample.loss;
}

// Sentences on the samples of a batch: few of them have the loss, which are named with their documents, or all alike.
std::string of_samples(std::vector<SampleLoss> losses, const Samples& samples) {
  constexpr std::size_t kMostNamed = 3;
  constexpr double kApart = 1.5;  // times the median
  if (losses.empty()) return "";
  std::ranges::stable_sort(losses, std::ranges::greater(), rank_of_loss);
  const double median = losses[losses.size() / 2].loss;
  if (!std::isfinite(losses.back().loss)) return " No sample has a finite loss.";
  const auto is_apart = [&](const SampleLoss& sample) {
    return losses.size() > 1 && std::isfinite(median) && !(sample.loss <= kApart * median);
  };
  std::string text =
      fmt::format(" All samples have much the same loss, in the median {}. The highest:", text_of(median));
  if (!std::isfinite(median)) {
    text = " Most samples have a loss that is not finite:";
  } else if (is_apart(losses.front())) {
    text = fmt::format(" The loss lies in few samples; the median of a sample is {:.4g}. The highest:", median);
  }
  for (std::size_t i = 0; i < std::min(losses.size(), kMostNamed); ++i) {
    if (i > 0 && is_apart(losses.front()) && !is_apart(losses[i])) break;
    const SampleLoss& sample = losses[i];
    text += fmt::format("{} {} for sample {} of the run, {}", i == 0 ? "" : ";", text_of(sample.loss),
                        sample.positions.first, samples.source(sample.positions.first));
  }
  return text + ".";
}

}  // namespace

void Account::begin_at(const TrainingState& state) {
  past_.push_back({.iteration = state.iteration, .learning_rate = state.learning_rate});
}

void Account::add(const Update& update, std::vector<LayerNumerics> layers) {
  const IterationReport& report = update.report;
  past_.push_back({.iteration = report.iteration, .learning_rate = report.learning_rate});
  if (update.gradient_norm) past_.back().gradient_norm = *update.gradient_norm / report.loss_scale;
  if (past_.size() > kMostPast) past_.pop_front();
  layers_before_ = std::exchange(layers_, std::move(layers));
}

std::string Account::of_rate() const {
  std::string text;
  for (std::size_t i = 1; i < past_.size(); ++i) {
    const Past &before = past_[i - 1], &after = past_[i];
    if (!(before.learning_rate > 0) || after.learning_rate < kJump * before.learning_rate) continue;
    text = fmt::format(
        " The learning rate of iteration {} is {:.4g} times that of the update before ({:.4g} after {:.4g}).",
        after.iteration, after.learning_rate / before.learning_rate, after.learning_rate, before.learning_rate);
  }
  return text;
}

// A norm that was not finite before `bad` is one of fp16's overflows, whose updates were skipped.
std::string Account::of_norm(std::int64_t bad) const {
  std::vector<double> norms;
  const Past* highest = nullptr;  // one that is no number is the highest
  for (const Past& past : past_) {
    if (!past.gradient_norm || (!std::isfinite(*past.gradient_norm) && past.iteration != bad)) continue;
    if (std::isfinite(*past.gradient_norm)) norms.push_back(*past.gradient_norm);
    if (highest == nullptr || *past.gradient_norm > *highest->gradient_norm || std::isnan(*past.gradient_norm)) {
      highest = &past;
    }
  }
  if (norms.size() < 2) return "";
  const double level = middle_of(norms);
  if (*highest->gradient_norm < kJump * level) return "";
  return fmt::format(" The gradient norm of iteration {} is {:.4g}, where {:.4g} is usual.", highest->iteration,
                     *highest->gradient_norm, level);
}

std::string Account::of_layers(std::int64_t bad) const {
  const bool is_taken = !past_.empty() && past_.back().iteration == bad;
  if (!is_taken || layers_before_.size() != layers_.size()) return "";
  std::size_t most = 0;
  double growth = 1;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const double ratio = layers_[i].output.rms / layers_before_[i].output.rms;
    if (!(ratio <= growth)) std::tie(most, growth) = std::pair(i, ratio);
    if (!std::isfinite(ratio)) break;  // those after it have it from there
  }
  if (growth <= 1) return "";
  return fmt::format(
      " The output of {} has grown most since the update before: its root mean square is {} after {:.4g}.",
      name_of_layer(layers_[most].layer), text_of(layers_[most].output.rms), layers_before_[most].output.rms);
}

std::string Account::text(std::int64_t bad, const std::vector<SampleLoss>& losses, const Samples& samples) const {
  return of_rate() + of_norm(bad) + of_layers(bad) + of_samples(losses, samples);
}

}  // namespace teratron

#include "telemetry/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "console/readable.h"

namespace teratron {
namespace {

constexpr double kSecondsBetweenShows = 0.1;

}  // namespace

Progress::Progress(std::FILE* file, int columns, const ProgressScale& scale)
    : file_(file), live_(file, columns), scale_(scale) {
  scale_.log_interval = std::max<std::int64_t>(1, scale_.log_interval);
}

double Progress::mean(double ProgressPoint::*member) const {
  double sum = 0;
  for (const ProgressPoint& point : recent_) sum += point.*member;
  return recent_.empty() ? 0 : sum / static_cast<double>(recent_.size());
}

double Progress::per_second(std::int64_t ProgressPoint::*count) const {
  double seconds = 0;
  std::int64_t total = 0;
  for (const ProgressPoint& point : recent_) {
    seconds += point.seconds;
    total += point.*count;
  }
  return seconds > 0 ? static_cast<double>(total) / seconds : 0;
}

void Progress::iteration(const ProgressPoint& point) {
  recent_.push_back(point);
  if (recent_.size() > static_cast<std::size_t>(scale_.log_interval)) recent_.pop_front();
  const bool last = point.iteration == scale_.total_iterations;
  if (live_.possible()) {
    seconds_since_shown_ += point.seconds;
    const bool stays = point.iteration % scale_.log_interval == 0;
    if (!last && !stays && live_.shown() && seconds_since_shown_ < kSecondsBetweenShows) return;
    live_.show(live_line());
    seconds_since_shown_ = 0;
    if (stays) live_.keep();
  } else if (last || point.iteration % scale_.log_interval == 0) {
    std::fputs(fmt::format("{}\n", log_line()).c_str(), file_);
    std::fflush(file_);
  }
}

void Progress::message(std::string_view text) {
  const bool shown = live_.shown();
  live_.clear();
  std::fputs(fmt::format("{}\n", text).c_str(), file_);
  std::fflush(file_);
  if (shown) live_.show(live_line());
}

std::string Progress::rates(std::string_view before, std::string_view after) const {
  std::string text;
  for (std::size_t rate = 0; rate < recent_.back().rates.size(); ++rate) {
    double sum = 0;
    for (const ProgressPoint& point : recent_) sum += point.rates[rate].value;
    text += fmt::format("{}{}{} {:.4f}", before, recent_.back().rates[rate].name, after,
                        sum / static_cast<double>(recent_.size()));
  }
  return text;
}

std::string Progress::use_of_peak() const {
  return fmt::format("{:.1f} %", 100 * flops_per_second() / scale_.peak_flops);
}

std::string Progress::live_line() const {
  if (recent_.empty()) return "";
  const ProgressPoint& now = recent_.back();
  const double samples_per_second = per_second(&ProgressPoint::global_batch_size);
  const double rate = per_second(&ProgressPoint::tokens);
  const auto samples_left = static_cast<double>(scale_.total_samples - now.consumed_samples);
  const double left = samples_per_second > 0 ? samples_left / samples_per_second : 0;
  const std::string mfu = scale_.peak_flops > 0 ? fmt::format("  MFU {}", use_of_peak()) : "";
  return fmt::format("{}/{}  loss {:.4f}{}  {} tokens/s{}  {} left  lr {:.2e}", now.iteration, scale_.total_iterations,
                     mean(&ProgressPoint::loss), rates("  ", ""), readable_count(rate), mfu, readable_duration(left),
                     now.learning_rate);
}

std::string Progress::log_line() const {
  if (recent_.empty()) return "";
  const ProgressPoint& now = recent_.back();
  const double seconds = mean(&ProgressPoint::seconds);
  const std::string total = fmt::format("{}", scale_.total_iterations);
  const std::string mfu = scale_.peak_flops > 0 ? fmt::format(" | MFU: {}", use_of_peak()) : "";
  return fmt::format(
      "iteration {:>{}}/{} | consumed samples: {} | ms/iteration: {:.1f} | GFLOP/s: {:.1f}{} | learning rate: {:.3e} | "
      "global batch size: {} | loss: {:.5f}{} | grad norm: {:.3f}",
      now.iteration, total.size(), total, now.consumed_samples, seconds * 1e3, flops_per_second() / 1e9, mfu,
      now.learning_rate, now.global_batch_size, mean(&ProgressPoint::loss), rates(" | ", ":"),
      std::abs(now.gradient_norm));  // a norm that is no number has either sign
}

}  // namespace teratron

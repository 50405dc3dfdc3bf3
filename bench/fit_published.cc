// Fits the constants of generations, cards and programs to the published runs of the fitting half: coordinate descent
// of the mean size of the logarithm of predicted over measured, each constant by shrinking steps. The judging half is
// never looked at.
//   bench_fit_published ROUNDS [FILE [SCOPE...]]    prints data/published/constants.toml
//   bench_fit_published errors [FILE]               the error of every run of the fitting half
// FILE has constants to begin with, as they are printed; else (or for -) those of the program. With SCOPEs
// ("torchtitan"), only their constants change.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file.h"
#include "cluster/cluster_file.h"
#include "options/toml_parsing.h"
#include "program.h"
#include "reproduction/published_prediction.h"

namespace teratron::plan {
namespace {

struct Sample {
  PublishedRun run;
  std::vector<std::string> scopes;
};

std::vector<Sample> samples() {
  std::vector<Sample> samples;
  for (const PublishedFile& file : published_files()) {
    for (PublishedRun run : published_runs(file)) {
      if (!run.is_for_fitting() || (!run.tokens_per_second && !run.teraflops && !run.step_seconds)) continue;
      const std::string card = find_cluster(run.cluster).device.name;
      std::vector<std::string> scopes = {std::string(generation_of(card)), card, program_scope_of(run)};
      samples.push_back({std::move(run), std::move(scopes)});
    }
  }
  return samples;
}

// The logarithm of the predicted speed over the measured.
double error_of(const PublishedRun& run, const RunConstants& constants) {
  const double seconds = step_seconds_of(run, constants);
  if (run.step_seconds) return std::log(*run.step_seconds / seconds);
  if (run.teraflops) return std::log(teraflops_of(run, seconds) / *run.teraflops);
  return std::log(tokens_per_second_of(run, seconds) / *run.tokens_per_second);
}

// Flat near 0 and a line far away, so that a few odd runs do not decide.
double cost_of(double error) { return std::sqrt(error * error + 4e-4); }

RunConstants constants_from(const std::string& file) {
  RunConstants constants;
  const toml::table scopes = parse_toml(read_file(file), file);
  for (const auto& [scope, table] : scopes) {
    for (const auto& [name, value] : *table.as_table()) {
      constants[fmt::format("{} {}", scope.str(), name.str())] = value.value_or(0.0);
    }
  }
  return constants;
}

class Fit {
 public:
  Fit(RunConstants constants, std::vector<std::string> scopes)
      : samples_(samples()), constants_(std::move(constants)), scopes_(std::move(scopes)), errors_(samples_.size()) {
    for (std::size_t i = 0; i < samples_.size(); ++i) errors_[i] = cost_of(plan::error_of(samples_[i].run, constants_));
  }

  void round(double step) {
    for (const auto& [name, value] : constants_) {
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        while (try_values({{name, value * factor}})) {
        }
      }
    }
    for (int pair = 0; pair < kPairs; ++pair) try_pair(step);
  }

  void print() const {
    fmt::print("# Made by bench/fit_published.cc from the fitting half; do not edit.\n");
    std::string last;
    for (const auto& [name, value] : constants_) {
      if (scope_of(name) != last) fmt::print("\n[\"{}\"]\n", last = scope_of(name));
      fmt::print("{} = {:.4g}\n", name.substr(last.size() + 1), value);
    }
  }
  double mean() const {
    double sum = 0;
    for (const double error : errors_) sum += error;
    return sum / static_cast<double>(errors_.size());
  }
  void print_errors() const {
    for (const Sample& sample : samples_) {
      fmt::print("{:+6.1f} %  {}: {}\n", 100 * (std::exp(plan::error_of(sample.run, constants_)) - 1),
                 sample.run.program, sample.run.name);
    }
  }

 private:
  static constexpr int kPairs = 300;  // of constants that are changed together, in each round

  // Two constants of runs that they have in common, each up or down.
  void try_pair(double step) {
    const auto some = [&] {
      return std::next(constants_.begin(), static_cast<std::ptrdiff_t>(random_() % constants_.size()));
    };
    const auto a = some(), b = some();
    if (a == b || !meet(scope_of(a->first), scope_of(b->first))) return;
    const auto factor = [&] { return random_() % 2 == 0 ? 1 + step : 1 / (1 + step); };
    const double first = factor(), second = factor();
    while (try_values({{a->first, a->second * first}, {b->first, b->second * second}})) {
    }
  }

  static std::string scope_of(const std::string& name) { return name.substr(0, name.rfind(' ')); }
  static bool has(const Sample& sample, const std::string& scope) {
    return std::ranges::count(sample.scopes, scope) > 0;
  }
  bool meet(const std::string& a, const std::string& b) const {
    return std::ranges::any_of(samples_, [&](const Sample& sample) { return has(sample, a) && has(sample, b); });
  }
  bool is_possible(const std::string& name, double value) const {
    if (!scopes_.empty() && std::ranges::count(scopes_, scope_of(name)) == 0) return false;
    if (name.ends_with("efficiency") || name.ends_with("share") || name.ends_with("collectives")) return value <= 1;
    return !name.ends_with("point_passes") || value >= 0.3;  // fused kernels still read and write
  }

  // Takes the values if they are better.
  bool try_values(const RunConstants& values) {
    double change = 0;
    std::vector<std::pair<std::size_t, double>> changed;
    RunConstants before;
    for (const auto& [name, value] : values) {
      if (!is_possible(name, value)) return false;
    }
    for (const auto& [name, value] : values) before[name] = std::exchange(constants_[name], value);
    const auto is_affected = [&](const Sample& sample) {
      return std::ranges::any_of(values, [&](const auto& item) { return has(sample, scope_of(item.first)); });
    };
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (!is_affected(samples_[i])) continue;
      const double error = cost_of(plan::error_of(samples_[i].run, constants_));
      changed.emplace_back(i, error);
      change += error - errors_[i];
    }
    if (change > -1e-5) {
      for (const auto& [name, value] : before) constants_[name] = value;
      return false;
    }
    for (const auto& [i, error] : changed) errors_[i] = error;
    return true;
  }

  std::vector<Sample> samples_;
  RunConstants constants_;
  std::vector<std::string> scopes_;  // whose constants may change; none: all
  std::vector<double> errors_;
  std::mt19937 random_{1234};
};

}  // namespace

void fit(std::string_view what, const std::string& file, std::vector<std::string> scopes) {
  Fit fit(file.empty() || file == "-" ? run_constants() : constants_from(file), std::move(scopes));
  if (what == "errors") return fit.print_errors();
  const int rounds = std::atoi(std::string(what).c_str());
  double step = 0.3;
  for (int i = 0; i < rounds; ++i, step *= 0.7) {
    fit.round(step);
    fmt::print(stderr, "round {}: {:.2f} %\n", i, 100 * fit.mean());
    std::fflush(stderr);
  }
  fit.print();
}

}  // namespace teratron::plan

int main(int count, char** arguments) {
  return teratron::run_program([&] {
    teratron::plan::fit(count > 1 ? arguments[1] : "6", count > 2 ? arguments[2] : "",
                        {arguments + std::min(count, 3), arguments + count});
  });
}

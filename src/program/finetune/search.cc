#include "finetune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tasks/task_entry.h"

namespace teratron {
namespace {

constexpr std::int64_t kSeeds = 5;  // Megatron-LM section 5.3
constexpr std::array<std::int64_t, 2> kBatchSizes = {16, 32};

template <class Value>
void add_once(std::vector<Value>& values, const Value& value) {
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

}  // namespace

void add_search_fields(FieldList& list, FinetuneConfig& config) {
  list.add(
      "search", &config.search, "",
      "before the runs, one of --seed at each of several batch sizes and learning rates; the runs are those of the "
      "point with the highest validation score. MNLI and QQP: 16 and 32 by 1e-5, 2e-5 and 3e-5 (RoBERTa's); SQuAD, "
      "RACE, classify, embed and tag: 16 and 32 by 2e-5, 3e-5 and 5e-5 (BERT's); and Table 6's point");
  list.add(
      "search-batch-sizes", &config.search_batch_sizes, "N",
      "batch sizes of --search, instead of all these points; none: --global-batch-size where given, else 16 and 32");
  list.add("search-lrs", &config.search_rates, "X",
           "learning rates of --search, instead of all these points; none: --lr where given, else the three");
}

Faults search_faults(const FinetuneConfig& config) {
  Faults faults;
  const bool has_points = !config.search_batch_sizes.empty() || !config.search_rates.empty();
  faults.add_if(!config.search && has_points, "{} and {} are points of {}, which is not given",
                Flag{"search-batch-sizes"}, Flag{"search-lrs"}, Flag{"search"});
  for (const double rate : config.search_rates) {
    faults.add_if(!(rate > 0), "{} has {}; learning rates must be above 0", Flag{"search-lrs"}, rate);
    faults.add_if(rate > 0 && rate < config.run.optimizer.learning_rate.minimum, "{} has {}, which is below {} {}",
                  Flag{"search-lrs"}, rate, Flag{"min-lr"}, config.run.optimizer.learning_rate.minimum);
  }
  const std::int64_t copies = std::max<std::int64_t>(config.run.layout.data_parallel, 1);
  for (const std::int64_t batch : config.search_batch_sizes) {
    faults.add_if(batch < copies, "{} has {}; a batch has an example at least for each of the model's copies ({} {})",
                  Flag{"search-batch-sizes"}, batch, Flag{"data-parallel-size"}, copies);
  }
  return faults;
}

void fill_in_search(FinetuneConfig& config, FieldList& fields) {
  if (!config.search) return;
  const std::int64_t& batch_size = config.run.batch.global_batch_size;
  const double& peak = config.run.optimizer.learning_rate.peak;
  const auto given = [&](const auto& value) { return fields.field_of(value).given; };
  if (!given(config.seeds)) config.seeds = kSeeds;
  const bool has_batches = !config.search_batch_sizes.empty() || given(batch_size);
  const bool has_rates = !config.search_rates.empty() || given(peak);
  if (config.search_batch_sizes.empty()) {
    config.search_batch_sizes.assign(kBatchSizes.begin(), kBatchSizes.end());
    if (given(batch_size)) config.search_batch_sizes = {batch_size};
  }
  if (config.search_rates.empty()) {
    const std::array<double, 3>& usual = entry_of(config.task).paper.search_rates;
    config.search_rates.assign(usual.begin(), usual.end());
    if (given(peak)) config.search_rates = {peak};
  }
  config.points.clear();
  for (const std::int64_t batch : config.search_batch_sizes) {
    for (const double rate : config.search_rates) add_once(config.points, {batch, rate});
  }
  if (!has_batches && !has_rates) add_once(config.points, {batch_size, peak});
}

std::vector<SearchPoint> search_points(const FinetuneConfig& config, std::int64_t examples) {
  std::vector<SearchPoint> points;
  for (const SearchPoint& point : config.points) {
    add_once(points, {std::min(point.batch, examples), point.learning_rate});
  }
  return points;
}

FinetuneConfig at_point(const FinetuneConfig& config, const SearchPoint& point) {
  FinetuneConfig runs = config;
  runs.run.batch.global_batch_size = point.batch;
  if (config.micro_batch_is_batch) runs.run.batch.micro_batch_size = point.batch;
  runs.run.optimizer.learning_rate.peak = point.learning_rate;
  name_outputs(runs.run.output, fmt::format("batch-{}-lr-{}", point.batch, point.learning_rate));
  return runs;
}

void name_outputs(OutputSettings& output, const std::string& name) {
  output.save /= name;
  if (!output.tensorboard_dir.empty()) output.tensorboard_dir /= name;
  if (output.trace.empty()) return;
  output.trace.replace_filename(
      fmt::format("{}-{}{}", output.trace.stem().string(), name, output.trace.extension().string()));
}

std::size_t best_of(std::span<const double> scores) {
  return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
}

}  // namespace teratron

// teratron plan: whether a model fits on a cluster, how it is laid out best, and what its training takes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/files/free_place.h"
#include "cli/commands.h"
#include "cli/plan/plan_html.h"
#include "cli/plan/plan_options.h"
#include "cli/report.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "plan/explanation.h"
#include "plan/search/largest_batch.h"
#include "plan/search/memory_wall.h"
#include "plan/search/pipeline_choice.h"
#include "plan/train_command.h"
#include "plan/training_cost.h"
#include "report/svg.h"
#include "reproduction/reproduction.h"

namespace teratron {
namespace {

using plan::Bill;
using plan::MemoryWall;
using plan::PlannedLayout;
using plan::PlanRequest;
using plan::SearchResult;
using plan::Training;
using plan::WallLayout;

std::string bytes_text(std::int64_t bytes) { return readable_bytes(static_cast<std::uint64_t>(bytes)); }

std::string model_text(const PlanRequest& request, bool is_largest_batch) {
  const ModelConfig model = request.config.model.model_for(request.vocab_size);
  return fmt::format(
      "{} parameters: {}, hidden size {}, {}, vocabulary {}; {}{} of {} an update, in {}\non {}: {} x {}, {} each\n",
      readable_count(static_cast<double>(model.parameters())), counted(model.num_layers, "layer"), model.hidden_size,
      counted(model.num_attention_heads, "head"), model.vocab_size, is_largest_batch ? "at most " : "",
      counted(request.config.batch.global_batch_size, "sequence"), counted(request.config.model.seq_length, "token"),
      name_of(request.config.backend.compute_dtype()), request.cluster.name, request.cluster.devices,
      request.cluster.device.name, bytes_text(static_cast<std::int64_t>(request.cluster.device.memory)));
}

std::string wall_text(const std::optional<WallLayout>& found) {
  if (!found) return "none";
  return fmt::format("{} ({})", bytes_text(found->bytes), found->layout.text());
}

std::string text_of(const MemoryWall& wall, std::int64_t devices) {
  TextTable table({Align::kLeft, Align::kLeft});
  table.row(
      {"bytes a parameter", fmt::format("{:.4g}: weight {:.4g}, gradient {:.4g}, optimizer {:.4g}", wall.bytes.all(),
                                        wall.bytes.weight, wall.bytes.gradient, wall.bytes.optimizer)});
  table.row({"all of them", fmt::format("{}, the memory of {}",
                                        bytes_text(static_cast<std::int64_t>(wall.parameters * wall.bytes.all())),
                                        counted(wall.least_devices, "device"))});
  table.row({fmt::format("state that {} hold{}", counted(devices, "device"), devices == 1 ? "s" : ""),
             fmt::format("{} parameters at most", readable_count(wall.room_of(devices)))});
  table.row({"smallest tensor parallelism",
             wall.tensor_alone ? fmt::format("{}: {}", wall.tensor_alone->layout.tensor, wall_text(wall.tensor_alone))
                               : "none fits without a pipeline"});
  table.row({"fewest devices", wall.fewest
                                   ? fmt::format("{}: {}", wall.fewest->layout.devices(), wall_text(wall.fewest))
                                   : "no number fits"});
  return "Memory, as training allocates it\n" + table.text();
}

std::string share_text(double seconds, double whole) { return fmt::format("{:.1f} %", 100 * seconds / whole); }

std::string layouts_text(const SearchResult& result, bool is_largest_batch) {
  const Align right = Align::kRight;
  TextTable table({right, right, right, right, is_largest_batch ? right : Align::kLeft, Align::kLeft});
  std::vector<std::string> names = {"step, s", "tokens/s", "MFU, %", "memory", "layout", "slower by"};
  if (is_largest_batch) names = {"step, s", "tokens/s", "MFU, %", "memory", "batch", "layout"};
  table.row(std::move(names));
  for (const PlannedLayout& one : result.best) {
    std::vector<std::string> cells = {
        fmt::format("{:.4g}", one.time.seconds), readable_count(one.time.tokens_per_second),
        fmt::format("{:.1f}", 100 * one.time.flops_utilization), bytes_text(std::ranges::max(one.memory))};
    if (is_largest_batch) cells.push_back(readable_integer(one.config.batch.global_batch_size));
    cells.push_back(one.layout.text());
    const bool is_compared = !is_largest_batch && &one != &result.best.front();
    if (is_compared) cells.push_back(why_slower(one.parts, result.best.front().parts));
    table.row(std::move(cells));
  }
  return table.text();
}

// A number that may be a fraction, or beyond all integers. Below 1,000 it has three digits, as on the page
// (plan_script.js).
std::string amount_text(double amount) {
  return amount >= 999.5 && amount < 1e15 ? readable_integer(std::llround(amount)) : fmt::format("{:.3g}", amount);
}

std::string tokens_text(double tokens) { return readable_count(tokens) + (tokens == 1 ? " token" : " tokens"); }

std::string bill_text(const Bill& bill) {
  std::string text;
  if (bill.dollars > 0) text += fmt::format(", {} dollars", amount_text(bill.dollars));
  if (bill.megawatt_hours > 0) text += fmt::format(", {:.3g} MWh of the devices at full load", bill.megawatt_hours);
  return text;
}

std::string costs_text(const PlanOptions& options, const PlanRequest& request, const PlannedLayout& best,
                       const Training& training) {
  const Bill bill = plan::bill_of(training.days, options.price, request.cluster);
  const std::string known = bill_text(bill);
  std::string text;
  if (!known.empty()) text += fmt::format("  that is {} device-hours{}\n", amount_text(bill.device_hours), known);
  if (options.budget == 0) return text;
  const double days = plan::days_of_budget(options.budget, options.price, request.cluster),
               tokens = plan::tokens_in(days, best);
  const auto parameters = static_cast<double>(request.config.model.model_for(request.vocab_size).parameters());
  return text + fmt::format("  {} dollars last {:.3g} days: {}, {:.3g} a parameter, {}\n", amount_text(options.budget),
                            days, tokens_text(tokens), tokens / parameters,
                            options.budget >= bill.dollars ? "enough for the above" : "too few for the above");
}

std::string best_text(const PlannedLayout& best, const Training& training, const std::optional<Training>& epoch) {
  const plan::StepParts& parts = best.parts;
  const double whole = parts.seconds();
  std::string text = fmt::format(
      "\nThe best: {}\n  a step: computing {}, recompute {}, tensor-parallel collectives {}, bubble {}, gradient sums "
      "and update {}\n",
      best.layout.text(), share_text(parts.compute, whole), share_text(parts.recompute, whole),
      share_text(parts.tensor, whole), share_text(parts.bubble, whole), share_text(parts.after, whole));
  text += fmt::format("  of the peak: {:.1f} % by the model's operations (MFU), {:.1f} % with those made again\n",
                      100 * best.time.flops_utilization, 100 * best.time.hardware_utilization);
  std::vector<std::string> stages;
  for (const std::int64_t bytes : best.memory) stages.push_back(readable_integer(bytes));
  text += fmt::format("  bytes of a rank{}: {}\n", stages.size() > 1 ? " of each stage" : "", fmt::join(stages, " "));
  text += fmt::format("  {}: {}, {:.3g} days, {:.3g} operations\n", tokens_text(training.tokens),
                      counted(training.updates, "update"), training.days, training.operations);
  if (!epoch) return text;
  return text + fmt::format("  an epoch of {}: {}, {:.3g} days\n", tokens_text(epoch->tokens),
                            counted(epoch->updates, "update"), epoch->days);
}

nlohmann::ordered_json json_of(const plan::Layout& layout) {
  return {{"tp", layout.tensor},
          {"pp", layout.pipeline},
          {"dp", layout.data},
          {"micro_batch_size", layout.micro_batch},
          {"schedule", pipeline::name_of(layout.schedule)},
          {"virtual_stages", layout.virtual_stages},
          {"token_slices", layout.slicing.text},
          {"recompute", layout.recompute.text()},
          {"sequence_parallel", layout.sequence_parallel},
          {"distributed_optimizer", layout.distributed_optimizer},
          {"defer_weight_gradients", layout.defer_weight_gradients},
          {"vocabulary_parallel", layout.vocabulary_parallel},
          {"pipeline_layout", fmt::format("{}", fmt::join(layout.layers, ","))}};
}

nlohmann::ordered_json json_of(const std::optional<WallLayout>& found) {
  if (!found) return nullptr;
  return {{"layout", json_of(found->layout)}, {"bytes", found->bytes}};
}

nlohmann::ordered_json json_of(const MemoryWall& wall) {
  return {{"parameters", wall.parameters},
          {"bytes_of_parameter", wall.bytes.all()},
          {"device_bytes", wall.room},
          {"least_devices", wall.least_devices},
          {"tensor_alone", json_of(wall.tensor_alone)},
          {"fewest_devices", json_of(wall.fewest)}};
}

nlohmann::ordered_json json_of(const PlannedLayout& one) {
  return {{"layout", json_of(one.layout)},
          {"global_batch_size", one.config.batch.global_batch_size},
          {"step_seconds", one.time.seconds},
          {"pipeline_seconds", one.time.pipeline_seconds},
          {"bubble_share", one.time.bubble_share},
          {"tokens_per_second", one.time.tokens_per_second},
          {"mfu", one.time.flops_utilization},
          {"hfu", one.time.hardware_utilization},
          {"parts",
           {{"compute", one.parts.compute},
            {"recompute", one.parts.recompute},
            {"tensor_collectives", one.parts.tensor},
            {"bubble", one.parts.bubble},
            {"sums_and_update", one.parts.after}}},
          {"rank_bytes", one.memory}};
}

nlohmann::ordered_json json_of_bill(const PlanOptions& options, const Cluster& cluster, double days) {
  const Bill bill = plan::bill_of(days, options.price, cluster);
  nlohmann::ordered_json json = {{"dollars", nullptr}, {"megawatt_hours", nullptr}, {"budget_days", nullptr}};
  if (options.price > 0) json["dollars"] = bill.dollars;
  if (cluster.device.watts > 0) json["megawatt_hours"] = bill.megawatt_hours;
  if (options.budget > 0) json["budget_days"] = plan::days_of_budget(options.budget, options.price, cluster);
  return json;
}

nlohmann::ordered_json json_of(const MemoryWall& wall, const SearchResult& result, const Training& training,
                               const std::optional<Training>& epoch, const std::string& command,
                               const nlohmann::ordered_json& bill) {
  nlohmann::ordered_json best = nlohmann::ordered_json::array();
  for (const PlannedLayout& one : result.best) best.push_back(json_of(one));
  return {{"memory_wall", json_of(wall)},
          {"devices", result.devices},
          {"layouts", result.layouts},
          {"too_large", result.too_large},
          {"simulated", result.simulated},
          {"best", best},
          {"tokens", training.tokens},
          {"days", training.days},
          {"operations", training.operations},
          {"bill", bill},
          {"epoch_updates", epoch ? nlohmann::ordered_json(epoch->updates) : nullptr},
          {"epoch_days", epoch ? nlohmann::ordered_json(epoch->days) : nullptr},
          {"words", plan::train_words(result.best.front().config)},
          {"command", command}};
}

void reproduce(const PlanOptions& options) {
  require_replaceable(options.svg, "picture of teratron", svg::kBeginning);
  const plan::Reproduction reproduction = plan::reproduce(options.reproduce);
  if (!options.svg.empty()) write_file_atomically(options.svg, to_svg(reproduction));
  report_beside(options.svg, options.json, text_of(reproduction), to_json(reproduction));
}

void run(const PlanOptions& options) {
  if (!options.reproduce.empty()) return reproduce(options);
  if (!options.html.empty()) return write_plan_page(options);
  PlanRequest request = options.request();
  const auto runners_up = static_cast<std::size_t>(options.runners_up);
  SearchResult result =
      options.largest_batch ? plan::largest_batches(request, runners_up) : plan::search_layouts(request, runners_up);
  if (result.best.empty()) plan::throw_too_large(request, result);
  if (!options.largest_batch) plan::choose_pipelines(request, result);
  PlannedLayout& best = result.best.front();
  request.config.batch.global_batch_size = best.config.batch.global_batch_size;
  const MemoryWall wall = plan::memory_wall(request);
  const Training training = plan::training_of(options.tokens_of(request), request, best);
  best.config.train_iters = training.updates;
  std::optional<Training> epoch;
  if (options.corpus_tokens > 0) epoch = plan::training_of(options.corpus_tokens, request, best);
  const std::string command = plan::train_command(best.config, request.cluster);
  std::string text = model_text(request, options.largest_batch) + "\n" + text_of(wall, request.cluster.devices);
  text += options.largest_batch
              ? fmt::format(
                    "\nThe largest batches that are held at once, of {} on {}; what accumulates "
                    "gradients (--schedule 1f1b, --pipeline-flushes) takes any\n",
                    counted(result.layouts, "layout"), counted(result.devices, "device"))
              : fmt::format("\nOf {} on {} {} {} not fit; {} {} simulated\n", counted(result.layouts, "layout"),
                            counted(result.devices, "device"), readable_integer(result.too_large),
                            result.too_large == 1 ? "does" : "do", readable_integer(result.simulated),
                            result.simulated == 1 ? "was" : "were");
  text += layouts_text(result, options.largest_batch) + best_text(best, training, epoch) +
          costs_text(options, request, best, training) + "\n";
  if (options.explain) text += plan::explanation(best.config, request.cluster, request.vocab_size) + "\n";
  if (best.config.layout.shards_gradients()) {
    text += "Weights or gradients that copies share out are a model of other programs; train refuses them.\n";
  }
  text += command + "\n";
  const Device& device = request.cluster.device;
  if (plan::is_refused_by_cuda_backend(device)) {
    text += fmt::format("The CUDA back end refuses {}: it needs compute capability 8.0 or more.\n", device.name);
  }
  report(options.json, text,
         json_of(wall, result, training, epoch, command, json_of_bill(options, request.cluster, training.days)));
}

}  // namespace

Command plan_command() {
  return make_command<PlanOptions>("plan", "finds whether a model fits on a cluster, and its fastest layout", run);
}

}  // namespace teratron

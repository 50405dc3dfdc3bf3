#include "cli/plan/plan_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cli/report.h"
#include "cluster/cluster_file.h"
#include "cluster/presets.h"
#include "pipeline/generators.h"
#include "pipeline/token_slices.h"
#include "plan/train_command.h"
#include "plan/training_cost.h"
#include "reproduction/reproduction.h"
#include "settings/adapter_settings.h"

namespace teratron {
namespace {

static_assert(kMostDevices == kMostRanks);
constexpr double kMostTokens = 1e18, kMostDollars = 1e15;

constexpr Flag kCluster{"cluster"}, kBatch{"global-batch-size"}, kDevices{"devices"}, kSlices{"token-slices"},
    kLargestBatch{"largest-batch"};

// Makes a flag fix its part of the layout, which is else searched.
template <class Value, class Fixed>
void fixes(FieldList& list, const Value& value, std::optional<Fixed>& fixed) {
  list.field_of(value).when_set = [&value, &fixed] { fixed = value; };
}

void add_layout(FieldList& list, PlanOptions& o) {
  TrainConfig& t = o.train;
  add_training_layout_fields(list, t.layout);
  add_micro_batch_size_field(list, t.batch);
  std::vector<std::pair<std::string, std::optional<pipeline::ScheduleKind>>> schedules = {{"auto", std::nullopt}};
  for (const auto& [name, kind] : schedule_choices()) schedules.emplace_back(name, kind);
  list.add_choice("schedule", t.pipeline.schedule, schedules, "in what order stages work; auto: the fastest");
  list.add("virtual-stages", &t.pipeline.virtual_stages, "V",
           "cells of layers that a stage holds, for interleaved and seq1f1b-i; 2 for v-min, v-half and v-zb");
  list.add(
      "token-slices", &t.pipeline.token_slices, "L,L,..|uniform:N|joint",
      "slices of tokens: their lengths, or so many; uniform:1: sequences run whole; joint: chosen with micro-batches "
      "of up to --micro-batch-size sequences");
  add_pipeline_layout_field(list, t.pipeline);
  list.add("defer-weight-gradients", &t.pipeline.defer_weight_gradients, "",
           "make weight gradients where a stage would wait, in the memory that the schedule takes anyway");
  list.add("vocabulary-parallel", &t.pipeline.vocabulary_parallel, "",
           "share the embedding and the output projection out over all stages");
  list.field_of(t.pipeline.layout).when_set = [&o] { o.fixed.keeps_layers = !o.train.pipeline.chooses_layers(); };
  fixes(list, t.pipeline.vocabulary_parallel, o.fixed.vocabulary_parallel);
  fixes(list, t.layout.tensor_parallel, o.fixed.tensor);
  fixes(list, t.layout.pipeline_parallel, o.fixed.pipeline);
  fixes(list, t.layout.data_parallel, o.fixed.data);
  fixes(list, t.layout.sequence_parallel, o.fixed.sequence_parallel);
  fixes(list, t.layout.distributed_optimizer, o.fixed.distributed_optimizer);
  list.field_of(t.layout.data_sharding).when_set = [&o] {
    if (o.train.layout.data_sharding == DataSharding::kNone) return;
    o.train.layout.distributed_optimizer = true;
    o.fixed.distributed_optimizer = true;
  };
  list.field_of(t.layout.recompute).when_set = [&o] { o.fixed.recompute = o.train.layout.recomputation(); };
  fixes(list, t.batch.micro_batch_size, o.fixed.micro_batch);
  fixes(list, t.pipeline.virtual_stages, o.fixed.virtual_stages);
  list.field_of(t.pipeline.token_slices).when_set = [&o] { o.fixed.slicing = plan::slicing_of(o.train.pipeline); };
  fixes(list, t.pipeline.defer_weight_gradients, o.fixed.defer_weight_gradients);
  list.field_of(t.pipeline.schedule).when_set = [&o] { o.fixed.schedule = o.train.pipeline.schedule; };
}

// The fewest copies of the model with which an update's schedule is short enough (settings/pipeline_faults.cc), where
// copies are searched for. 1 where so many cannot be, or where something else is wrong.
std::int64_t fewest_copies(const PlanOptions& o, const plan::Layout& layout) {
  const auto is_size = [](std::int64_t size) { return size >= 1 && size <= kMostRanks; };
  const bool makes_sense = is_size(layout.micro_batch) && is_size(layout.tensor) && is_size(layout.pipeline);
  if (!makes_sense || o.fixed.data) return o.fixed.data.value_or(1);
  pipeline::TokenSlices slices;
  try {
    slices = layout.slicing.slices();
  } catch (const UserError&) {  // a fault of the settings
    return 1;
  }
  if (!slices.cuts.empty()) return 1;  // these are all micro-batches of an update
  const double micro_batches =
      std::max(1.0, static_cast<double>(o.train.batch.global_batch_size) / static_cast<double>(layout.micro_batch));
  const std::int64_t most = (o.devices > 0 ? o.devices : kMostDevices) / (layout.tensor * layout.pipeline);
  const double actions = 3 * micro_batches * static_cast<double>(layout.pipeline) *
                         static_cast<double>(layout.virtual_stages) * slices.count;
  const double needed = std::ceil(actions / static_cast<double>(pipeline::kMostActions));
  const bool can_be = needed >= 1 && needed <= std::min(static_cast<double>(most), micro_batches);
  return can_be ? static_cast<std::int64_t>(needed) : 1;
}

// Configuration of the fixed choices and the parts that they need; parts that are searched for are 1 or off.
TrainConfig as_decided(const PlanOptions& o) {
  plan::Layout layout{.tensor = o.fixed.tensor.value_or(1),
                      .pipeline = o.fixed.pipeline.value_or(1),
                      .micro_batch = o.fixed.micro_batch.value_or(1),
                      .virtual_stages = o.fixed.virtual_stages.value_or(1),
                      .slicing = o.fixed.slicing.value_or(plan::Slicing()),
                      .recompute = o.fixed.recompute.value_or(Recomputation()),
                      .sequence_parallel = o.fixed.sequence_parallel.value_or(false),
                      .distributed_optimizer = o.fixed.distributed_optimizer.value_or(false),
                      .defer_weight_gradients = o.fixed.defer_weight_gradients.value_or(false),
                      .vocabulary_parallel = o.fixed.vocabulary_parallel.value_or(false)};
  const bool needs_stages = layout.virtual_stages > 1 || layout.vocabulary_parallel;
  if (needs_stages && !o.fixed.pipeline) layout.pipeline = 2;
  if (layout.recompute.differs() && !o.fixed.pipeline) layout.pipeline = layout.recompute.stages();
  // If nothing else gives the cells of a stage, each number of --pipeline-layout is a stage's.
  const bool tells_stages = !o.train.pipeline.layout.empty() && !o.train.pipeline.chooses_layers() &&
                            !o.fixed.pipeline && !o.fixed.virtual_stages && !o.fixed.schedule &&
                            !layout.recompute.differs();
  if (tells_stages) {
    layout.pipeline = std::ssize(comma_separated(o.train.pipeline.layout).value_or(std::vector<std::int64_t>{1}));
  }
  layout.data = fewest_copies(o, layout);
  layout.schedule = schedule_kind({.schedule = o.fixed.schedule,
                                   .virtual_stages = layout.virtual_stages,
                                   .token_slices = layout.slicing.flag_value()});
  const bool makes_sense = layout.pipeline >= 1 && layout.virtual_stages >= 1 && o.train.model.config.num_layers >= 1 &&
                           layout.pipeline <= o.train.model.config.num_layers / layout.virtual_stages;
  TrainConfig config = makes_sense ? plan::with_layout(o.train, layout) : o.train;
  config.layout.recompute = o.train.layout.recompute;  // with its faults
  if (!o.fixed.pipeline && !tells_stages && !config.pipeline.layout.empty() &&
      o.train.pipeline.layout == config.pipeline.layout) {
    config.pipeline.layout.clear();  // its stages are what is searched for
  }
  return config;
}

// Flags that --largest-batch (plan/search/largest_batch.h) cannot combine with.
void add_largest_batch_faults(const PlanOptions& o, Faults& faults) {
  faults.add_if(o.fixed.schedule && !pipeline::traits_of(*o.fixed.schedule).holds_all,
                "{} {} holds a few micro-batches at a time, so that any batch fits where one does; {} is of gpipe and "
                "terapipe",
                Flag{"schedule"}, o.fixed.schedule ? pipeline::name_of(*o.fixed.schedule) : "", kLargestBatch);
  faults.add_if(o.train.pipeline.chooses_micro_batches(), "{} joint cuts a batch of a given size; leave out {}",
                kSlices, kLargestBatch);
}

}  // namespace

PlanOptions::PlanOptions() { train.data_path = {"corpus"}; }

Faults PlanOptions::faults() const {
  Faults faults;
  const std::vector<std::string_view> papers = plan::reproduction_names();
  faults.add_if(!reproduce.empty() && std::ranges::count(papers, reproduce) == 0, "{} is '{}'; there are: {}",
                Flag{"reproduce"}, reproduce, fmt::join(papers, ", "));
  add_output_faults(faults, "--svg", svg, json);
  faults.add_if(!html.empty() && (budget > 0 || explain || gives_runners_up || corpus_tokens > 0),
                "{} is a page in place of text, and has no room for {}, {}, {} and {}; leave them out", Flag{"html"},
                Flag{"budget"}, Flag{"explain"}, Flag{"runners-up"}, Flag{"corpus-tokens"});
  faults.add_if(reproduce.empty() && !svg.empty(), "{} is a picture of what {} prints; give both", Flag{"svg"},
                Flag{"reproduce"});
  faults.add_if(!html.empty() && (!reproduce.empty() || largest_batch), "{} is a page of plans; leave out {}",
                Flag{"html"}, reproduce.empty() ? kLargestBatch : Flag{"reproduce"});
  faults.add_if(html == "-", "{} is a file, not standard output", Flag{"html"});
  if (!reproduce.empty()) return faults;
  faults.add_if(cluster.empty(), "{} is missing: {}, or a file that describes one", kCluster,
                fmt::join(cluster_preset_names(), ", "));
  faults.add_if(train.batch.global_batch_size < 1 && !largest_batch,
                "{} is missing: sequences of an update; or give {}", kBatch, kLargestBatch);
  faults.add_if(train.batch.global_batch_size >= 1 && largest_batch, "{} and {} both say how many sequences; give one",
                kBatch, kLargestBatch);
  faults.need_between(kDevices, devices, 0, kMostDevices);
  faults.need_between({"runners-up"}, runners_up, 0, 1000);
  for (const auto& [flag, count] : {std::pair{Flag{"tokens"}, tokens}, {Flag{"corpus-tokens"}, corpus_tokens}}) {
    faults.add_if(!(count >= 0 && count <= kMostTokens), "{} is {}; it must be a number of tokens, at most {}", flag,
                  count, kMostTokens);
  }
  for (const auto& [flag, dollars] : {std::pair{Flag{"price"}, price}, {Flag{"budget"}, budget}}) {
    faults.add_if(!(dollars >= 0 && dollars <= kMostDollars), "{} is {}; it must be a number of dollars, at most {}",
                  flag, dollars, kMostDollars);
  }
  faults.add_if(budget > 0 && price == 0,
                "{} says what training may cost; say what a device costs an hour, too: {} 2.5", Flag{"budget"},
                Flag{"price"});
  const bool is_automatic = train.pipeline.chooses_slices();
  faults.add_if(is_automatic, "{} is auto, which measures on the machine that trains; leave it out: slices are chosen",
                kSlices);
  faults.add_if(train.pipeline.cuts_by_documents(),
                "{} is {}, which goes by the documents of each micro-batch; give uniform:N", kSlices,
                train.pipeline.token_slices);
  if (largest_batch) add_largest_batch_faults(*this, faults);
  if (is_automatic) return faults;
  const TrainConfig decided = as_decided(*this);
  faults.add(static_cast<const StepSettings&>(decided).faults());
  const std::int64_t ranks = fixed.tensor.value_or(1) * fixed.pipeline.value_or(1) * fixed.data.value_or(1);
  faults.add_if(devices > 0 && faults.empty() && ranks > devices, "{} is {}, but what is given needs {} ranks",
                kDevices, devices, ranks);
  return faults;
}

plan::PlanRequest PlanOptions::request() const {
  plan::PlanRequest request{.config = train,
                            .cluster = described ? described->resized(devices == 0 ? described->devices : devices)
                                                 : find_cluster(cluster, devices),
                            .fixed = fixed};
  TrainConfig& config = request.config;
  if (config.pipeline.chooses_layers()) config.pipeline.layout.clear();
  plan::choose_device_settings(config, request.cluster.device, precision_given);
  Faults faults = optimizer_backend_faults(config);
  faults.add(config.backend.faults());
  if (!faults.empty()) throw_user_error("{}", faults.texts().front());
  request.vocab_size = plan::vocabulary_size(config);
  if (config.model.tokenizer.empty()) config.model.config.vocab_size = request.vocab_size;
  return request;
}

double PlanOptions::tokens_of(const plan::PlanRequest& request) const {
  return tokens > 0 ? tokens : plan::optimal_tokens(request);
}

FieldList fields_of(PlanOptions& o) {
  TrainConfig& t = o.train;
  FieldList list;
  add_model_fields(list, t.model);
  add_adapter_fields(list, t.model.config.adapters, t.model.lora_targets, t.backend.weight_tiles);
  list.group("Training");
  add_seq_length_field(list, t.model);
  list.field_of(t.model.seq_length).alias = "seq";
  list.add("global-batch-size", &t.batch.global_batch_size, "N", "sequences of an update").alias = "global-batch";
  list.add("largest-batch", &o.largest_batch, "",
           "in place of it: the most that devices hold at once, as gpipe, terapipe and a single stage do");
  list.add("tokens", &o.tokens, "T", "to train on: for days, operations, dollars and energy; 0: 20 a parameter").alias =
      "target-tokens";
  list.add("corpus-tokens", &o.corpus_tokens, "T", "of an epoch: for its updates and days");
  add_optimizer_choice_fields(list, t.optimizer);
  add_training_precision_fields(list, t.backend);
  for (const bool* precision : {&t.backend.bf16, &t.backend.fp16, &t.backend.tf32}) {
    list.field_of(*precision).when_set = [&o] { o.precision_given = true; };
  }
  list.group("Cluster");
  Field& cluster = list.add("cluster", &o.cluster, "NAME|FILE", "preset or TOML file of devices and their links");
  for (const std::string_view name : cluster_preset_names()) cluster.known_values.emplace_back(name);
  list.add("devices", &o.devices, "N", "of the cluster; 0: all of them");
  list.add("price", &o.price, "DOLLARS", "of a device and hour: what the training costs");
  list.add("budget", &o.budget, "DOLLARS", "with --price: how long it lasts, and the tokens that it pays for");
  add_layout(list, o);
  list.group("Data");
  list.add("data-path", &t.data_path, "PREFIX", "for the command that is printed");
  add_tokenizer_field(list, t.model);
  list.group("Output");
  list.add("runners-up", &o.runners_up, "N", "layouts that are shown beside the best").when_set = [&o] {
    o.gives_runners_up = true;
  };
  list.add("explain", &o.explain, "",
           "of the best: groups of ranks, the shapes of a rank's matrices, what the loss sends");
  Field& reproduce = list.add("reproduce", &o.reproduce, "NAME",
                              "published numbers beside ours, in place of a plan: of a paper (megatron, terapipe, "
                              "llama3, seq1f1b, zero-bubble), of runs (mosaicml, llmq, torchtitan, nemo, dgxc, "
                              "selene, megatron-gpt, vtrain, bloom), or of all runs in short (all)");
  for (const std::string_view name : plan::reproduction_names()) reproduce.known_values.emplace_back(name);
  list.add("svg", &o.svg, "FILE", "with --reproduce, bars of published numbers and ours as a picture").writes();
  list.add("html", &o.html, "FILE",
           "a page with sliders in place of text: a quarter to four times the devices, half and twice the sequences, "
           "and "
           "of presets also the neighbours of the model and of the cluster")
      .writes();
  add_json_field(list, o.json);
  return list;
}

}  // namespace teratron

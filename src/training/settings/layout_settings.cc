#include "settings/layout_settings.h"

#include "comm/control/socket.h"
#include "model/config.h"

namespace teratron {

Faults LayoutSettings::faults() const {
  constexpr std::int64_t kMostThreads = 4096;
  constexpr Flag kTensor{"tensor-model-parallel-size"}, kPipeline{"pipeline-model-parallel-size"},
      kData{"data-parallel-size"};
  Faults faults;
  faults.need_between(kTensor, tensor_parallel, 1, kMostRanks);
  faults.need_between(kPipeline, pipeline_parallel, 1, kMostLayers);
  faults.need_between(kData, data_parallel, 1, kMostRanks);
  const double ranks = static_cast<double>(tensor_parallel) * static_cast<double>(pipeline_parallel) *
                       static_cast<double>(data_parallel);
  faults.add_if(faults.empty() && ranks > static_cast<double>(kMostRanks),
                "{} {} x {} {} x {} {} is {:.0f} ranks; there can be {} at most", kTensor, tensor_parallel, kPipeline,
                pipeline_parallel, kData, data_parallel, ranks, kMostRanks);
  faults.need_between({"threads"}, threads, 0, kMostThreads);
  faults.add_if(!bind.empty() && !is_dotted_address(bind),
                "{} is '{}'; give an IPv4 address, such as 10.0.0.5 or 127.0.0.1", Flag{"bind"}, bind);
  return faults;
}

Recomputation TrainingLayoutSettings::recomputation() const {
  std::optional<std::vector<StageRecompute>> stages = parse_recompute(recompute);
  return stages ? Recomputation(std::move(*stages)) : Recomputation();
}

Faults TrainingLayoutSettings::execution_faults() const {
  Faults faults;
  faults.add_if(data_sharding >= DataSharding::kGradients,
                "{} {} is modelled by 'teratron plan' and 'teratron simulate' alone: here each copy of the model keeps "
                "its weights and gradients whole; give none, and {} for the optimizer's state",
                Flag{"data-parallel-sharding"}, data_sharding == DataSharding::kWeights ? "weights" : "gradients",
                Flag{"use-distributed-optimizer"});
  return faults;
}

void add_model_parallel_fields(FieldList& list, LayoutSettings& s) {
  list.add("tensor-model-parallel-size", &s.tensor_parallel, "T", "ranks that each layer is split over").alias = "tp";
  list.add("pipeline-model-parallel-size", &s.pipeline_parallel, "P", "stages that the layers are cut into").alias =
      "pp";
}

void add_data_parallel_field(FieldList& list, LayoutSettings& s, std::string help) {
  list.add("data-parallel-size", &s.data_parallel, "D", std::move(help)).alias = "dp";
}

void add_process_fields(FieldList& list, LayoutSettings& s) {
  list.add("threads", &s.threads, "N", "threads of all ranks of a process together; 0: one per core")
      .of(FieldScope::kCommand);
  list.add("bind", &s.bind, "ADDRESS",
           "IPv4 address of its host at which the first of several processes waits for the others")
      .of(FieldScope::kCommand);
}

void add_data_sharding_field(FieldList& list, TrainingLayoutSettings& s) {
  list.add_choice(
      "data-parallel-sharding", s.data_sharding,
      {{"none", DataSharding::kNone}, {"gradients", DataSharding::kGradients}, {"weights", DataSharding::kWeights}},
      "in plan and simulate alone: what copies of the model share out beside the optimizer's state: gradients "
      "(ZeRO-2), or weights too (ZeRO-3, FSDP)");
}

Field& add_recompute_field(FieldList& list, TrainingLayoutSettings& s) {
  Field& field = list.add(
      "recompute-granularity", &s.recompute, "none|selective|full[:N][@S],..",
      "activations recomputed in the backward pass: those of attention, or of whole layers; of all stages or of "
      "each, in the first N layers of a cell, in the first S token slices");
  for (const Recompute kind : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    field.known_values.emplace_back(name_of(kind));
  }
  return field;
}

void add_training_layout_fields(FieldList& list, TrainingLayoutSettings& s) {
  list.group("Layout", FieldScope::kLayout);
  add_model_parallel_fields(list, s);
  add_data_parallel_field(list, s, "copies of the model, each with its share of the batch");
  list.add("sequence-parallel", &s.sequence_parallel, "",
           "split norms, dropout and residuals over the tensor-parallel ranks too, by rows");
  list.add("use-distributed-optimizer", &s.distributed_optimizer, "",
           "each copy of the model keeps its share of the optimizer's state");
  add_data_sharding_field(list, s);
  add_recompute_field(list, s);
  list.add_choice("keep-activations", s.keep_activations,
                  {{"auto", KeepActivations::kAuto}, {"all", KeepActivations::kAll}, {"none", KeepActivations::kNone}},
                  "results of norms and activation functions that are kept for the backward pass: on GPUs those of as "
                  "many layers as "
                  "memory allows, all, or none");
  list.add_choice(
      "packed-weights", s.packed_weights,
      {{"auto", PackWeights::kAuto}, {"all", PackWeights::kAll}, {"none", PackWeights::kNone}},
      "CPU: copies of weights in the order in which products read them, which the slices and micro-batches of "
      "an update share: where these are short and memory allows, wherever there are several, or none");
}

}  // namespace teratron

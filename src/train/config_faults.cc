// What can be wrong with the values of a training configuration, told before anything starts.
#include <cmath>
#include <limits>

#include "train/config.h"
#include "train/pipeline_faults.h"

namespace teratron {
namespace {

constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostRampSamples = std::int64_t{1} << 45;
constexpr std::int64_t kMostMicroBatch = 1 << 20;
constexpr std::int64_t kMostUpdates = std::numeric_limits<std::uint32_t>::max();  // RandomStream::step

constexpr Flag kGlobalBatchSize{"global-batch-size"}, kDataParallel{"data-parallel-size"}, kRamp{"rampup-batch-size"};

bool is_between(std::int64_t value, std::int64_t least, std::int64_t most) { return value >= least && value <= most; }

Faults model_faults(const TrainConfig& c) {
  constexpr Flag kSeqLength{"seq-length"}, kPositions{"max-position-embeddings"};
  Faults faults;
  faults.need_between({"vocab-size"}, c.model.vocab_size, 0, kMostCount);
  faults.need_between(kPositions, c.model.max_position_embeddings, 0, kMostCount);
  faults.need_between(kSeqLength, c.seq_length, 1, kMostCount);
  // Of the model's own checks, those of sizes that are not known yet or are wrong already find nothing.
  ModelConfig model = c.model;
  if (!is_between(model.vocab_size, 1, kMostCount)) model.vocab_size = 1;
  if (!is_between(model.max_position_embeddings, 1, kMostCount)) model.max_position_embeddings = 1;
  faults.add(model.faults(c.tensor_parallel));
  faults.add_if(c.model.max_position_embeddings > 0 && c.seq_length > c.model.max_position_embeddings,
                "{} {} is more than {} {}; lower the first or raise the second", kSeqLength, c.seq_length, kPositions,
                c.model.max_position_embeddings);
  return faults;
}

Faults sequence_parallel_faults(const TrainConfig& c) {
  Faults faults;
  if (!c.sequence_parallel || c.seq_length < 1 || c.tensor_parallel < 1) return faults;
  const std::int64_t below = c.seq_length / c.tensor_parallel * c.tensor_parallel;
  faults.add_if(below != c.seq_length, "{} needs a {} {} that {} {} divides; nearest: {}{}", Flag{"sequence-parallel"},
                Flag{"seq-length"}, c.seq_length, Flag{"tensor-model-parallel-size"}, c.tensor_parallel,
                below > 0 ? fmt::format("{}, ", below) : "", below + c.tensor_parallel);
  return faults;
}

Faults loss_scaling_faults(const LossScaling& scaling) {
  constexpr Flag kFixed{"loss-scale"}, kInitial{"initial-loss-scale"}, kMinimum{"min-loss-scale"};
  Faults faults;
  const bool finite = std::isfinite(scaling.fixed) && std::isfinite(scaling.initial) && std::isfinite(scaling.minimum);
  faults.add_if(!finite, "a loss scale must be finite: {} {}, {} {}, {} {}", kFixed, scaling.fixed, kInitial,
                scaling.initial, kMinimum, scaling.minimum);
  faults.add_if(scaling.fixed < 0, "{} is {}; it must be at least 0 (0: dynamic)", kFixed, scaling.fixed);
  faults.add_if(scaling.minimum <= 0, "{} is {}; it must be above 0", kMinimum, scaling.minimum);
  faults.add_if(scaling.initial <= 0, "{} is {}; it must be above 0", kInitial, scaling.initial);
  faults.add_if(scaling.initial > 0 && scaling.initial < scaling.minimum, "{} {} is below {} {}", kInitial,
                scaling.initial, kMinimum, scaling.minimum);
  faults.need_between({"loss-scale-window"}, scaling.window, 1, kMostCount);
  faults.need_between({"hysteresis"}, scaling.hysteresis, 1, kMostCount);
  return faults;
}

// The numbers of the ramp are in their ranges, and so is everything else it depends on.
Faults ramp_end_faults(std::int64_t start, std::int64_t increment, std::int64_t end, std::int64_t copies) {
  Faults faults;
  faults.add_if(start < copies,
                "{0} starts with {1}: no sample for some of the copies of {2} {3}; the least that works is {3}", kRamp,
                start, kDataParallel, copies);
  faults.add_if(start > end, "{} starts with {}, above the {} of {} that it leads to", kRamp, start, kGlobalBatchSize,
                end);
  if (start > end) return faults;
  const std::int64_t below = start + (end - start) / increment * increment;
  faults.add_if(below != end, "{} {} {} .. never reaches {} {}; nearest that it reaches: {}, {}", kRamp, start,
                increment, kGlobalBatchSize, end, below, below + increment);
  faults.add_if((end - start) / increment > BatchSchedule::kMostIncrements,
                "{} takes {} increments; at most {}: choose a larger one", kRamp, (end - start) / increment,
                BatchSchedule::kMostIncrements);
  return faults;
}

Faults ramp_faults(const TrainConfig& c) {
  const std::vector<std::int64_t>& ramp = c.rampup_batch_size;
  Faults faults;
  if (ramp.empty()) return faults;
  if (ramp.size() != 3) {
    faults.add("{} has {} number{}; three are needed: START INCREMENT SAMPLES", kRamp, ramp.size(),
               ramp.size() == 1 ? "" : "s");
    return faults;
  }
  const auto need = [&](std::string_view name, std::int64_t value, std::int64_t most) {
    faults.add_if(!is_between(value, 1, most), "{} has {} as {}; it must be at least 1 and at most {}", kRamp, value,
                  name, most);
  };
  need("START", ramp[0], kMostCount);
  need("INCREMENT", ramp[1], kMostCount);
  need("SAMPLES", ramp[2], kMostRampSamples);
  const bool sizes_make_sense = is_between(c.micro_batch_size, 1, kMostMicroBatch) &&
                                is_between(c.global_batch_size, 0, kMostCount) && c.LayoutOptions::faults().empty();
  if (faults.empty() && sizes_make_sense) {
    faults.add(ramp_end_faults(ramp[0], ramp[1], c.largest_batch(), c.data_parallel));
  }
  return faults;
}

Faults batch_faults(const TrainConfig& c) {
  Faults faults;
  faults.need_between({"micro-batch-size"}, c.micro_batch_size, 1, kMostMicroBatch);
  faults.need_between(kGlobalBatchSize, c.global_batch_size, 0, kMostCount);
  faults.add_if(c.global_batch_size >= 1 && c.global_batch_size < c.data_parallel,
                "{0} {1} has no sample for some of the copies of {2} {3}; the least that works is {3}",
                kGlobalBatchSize, c.global_batch_size, kDataParallel, c.data_parallel);
  faults.add(ramp_faults(c));
  return faults;
}

Faults learning_rate_faults(const TrainConfig& c) {
  constexpr Flag kPeak{"lr"}, kMinimum{"min-lr"}, kWarmup{"lr-warmup-iters"}, kDecay{"lr-decay-iters"},
      kTrainIters{"train-iters"};
  const LearningRateSchedule schedule = c.schedule();
  Faults faults;
  faults.need_between(kTrainIters, c.train_iters, 1, kMostUpdates);
  faults.add_if(!(schedule.peak > 0), "{} is {}; it must be above 0", kPeak, schedule.peak);
  faults.add_if(schedule.minimum < 0, "{} is {}; it must be at least 0", kMinimum, schedule.minimum);
  faults.add_if(schedule.minimum > schedule.peak && schedule.peak > 0, "{} {} is above {} {}", kMinimum,
                schedule.minimum, kPeak, schedule.peak);
  faults.need_between(kWarmup, schedule.warmup, 0, kMostUpdates);
  faults.need_between(kDecay, c.learning_rate.decay, 0, kMostUpdates);
  faults.add_if(schedule.decay > 0 && schedule.warmup > schedule.decay,
                "{} {} is more than the {} updates until the end of the decay ({})", kWarmup, schedule.warmup,
                schedule.decay, c.learning_rate.decay > 0 ? kDecay : kTrainIters);
  return faults;
}

Faults adamw_faults(const AdamWSettings& adam) {
  Faults faults;
  faults.add_if(adam.weight_decay < 0, "{} is {}; it must be at least 0", Flag{"weight-decay"}, adam.weight_decay);
  faults.add_if(adam.clip < 0, "{} is {}; it must be at least 0 (0: no clipping)", Flag{"clip-grad"}, adam.clip);
  const auto need_decay = [&](Flag flag, double value) {
    faults.add_if(!(value >= 0 && value < 1), "{} is {}; it must be at least 0 and below 1", flag, value);
  };
  need_decay({"adam-beta1"}, adam.beta1);
  need_decay({"adam-beta2"}, adam.beta2);
  faults.add_if(!(adam.epsilon > 0), "{} is {}; it must be above 0", Flag{"adam-eps"}, adam.epsilon);
  return faults;
}

Faults output_faults(const TrainConfig& c) {
  constexpr Flag kSaveInterval{"save-interval"};
  Faults faults;
  faults.need_between(kSaveInterval, c.save_interval, 0, kMostCount);
  faults.need_between({"keep-last"}, c.keep_last, 0, kMostCount);
  faults.need_between({"log-interval"}, c.log_interval, 1, kMostCount);
  faults.need_between({"eval-interval"}, c.eval_interval, 0, kMostCount);
  faults.need_between({"eval-iters"}, c.eval_iters, 1, kMostCount);
  faults.add_if(c.save_interval > 0 && c.save.empty(), "{} {} needs a place to save: {} DIR", kSaveInterval,
                c.save_interval, Flag{"save"});
  return faults;
}

}  // namespace

Faults TrainConfig::faults() const {
  Faults faults = model_faults(*this);
  faults.add(LayoutOptions::faults());
  faults.add(sequence_parallel_faults(*this));
  faults.add(pipeline_faults(*this));
  faults.add(BackendSettings::faults());
  faults.add(loss_scaling_faults(loss_scaling));
  faults.add(batch_faults(*this));
  faults.need_between({"logits-chunk"}, logits_chunk, 1, kMostCount);
  faults.add(learning_rate_faults(*this));
  faults.add(adamw_faults(optimizer));
  faults.need_between({"seed"}, seed, 0);
  faults.add(SplitSettings::faults());
  faults.add(output_faults(*this));
  return faults;
}

}  // namespace teratron

// What can be wrong with the values of a training configuration, told before anything starts.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "train/config.h"
#include "train/pipeline_faults.h"

namespace teratron {
namespace {

constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostRampSamples = std::int64_t{1} << 45;
constexpr std::int64_t kMostWidth = 1 << 20;
constexpr std::int64_t kMostRanks = 1 << 16;
constexpr std::int64_t kMostUpdates = std::numeric_limits<std::uint32_t>::max();  // RandomStream::step

class FaultFinder {
 public:
  explicit FaultFinder(const TrainConfig& config) : c_(config) {}

  std::vector<std::string> find() {
    check_model();
    check_layout();
    for (std::string& fault : pipeline_faults(c_)) faults_.push_back(std::move(fault));
    check_precision();
    check_batch();
    check_lengths();
    check_learning_rate();
    check_optimizer();
    check_data();
    check_intervals();
    return std::move(faults_);
  }

 private:
  template <class... Args>
  void fault_if(bool wrong, fmt::format_string<Args...> format, Args&&... args) {
    if (wrong) faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  // The upper limits are far above what is useful; they keep every product of sizes within 64 bits.
  void need_between(std::string_view flag, std::int64_t value, std::int64_t least, std::int64_t most = kMostCount) {
    fault_if(value < least, "--{} is {}; it must be at least {}", flag, value, least);
    fault_if(value > most, "--{} is {}; it must be at most {}", flag, value, most);
  }

  void check_model() {
    const ModelConfig& model = c_.model;
    const std::size_t before = faults_.size();
    need_between("num-layers", model.num_layers, 1, kMostLayers);
    need_between("hidden-size", model.hidden_size, 1, kMostWidth);
    need_between("num-attention-heads", model.num_attention_heads, 1, kMostWidth);
    need_between("vocab-size", model.vocab_size, 0);
    need_between("max-position-embeddings", model.max_position_embeddings, 0);
    need_between("make-vocab-size-divisible-by", model.make_vocab_size_divisible_by, 1, kMostWidth);
    need_between("seq-length", c_.seq_length, 1);
    need_between("tensor-model-parallel-size", c_.tensor_parallel, 1, kMostRanks);
    need_between("data-parallel-size", c_.data_parallel, 1, kMostRanks);
    if (faults_.size() == before) faults_ = c_.model_for(1).faults(c_.tensor_parallel);
  }

  void check_layout() {
    const double ranks = static_cast<double>(c_.tensor_parallel) * static_cast<double>(c_.pipeline_parallel) *
                         static_cast<double>(c_.data_parallel);
    fault_if(ranks > static_cast<double>(kMostRanks),
             "--tensor-model-parallel-size {} x --pipeline-model-parallel-size {} x --data-parallel-size {} is {:.0f} "
             "ranks; there can be {} at most",
             c_.tensor_parallel, c_.pipeline_parallel, c_.data_parallel, ranks, kMostRanks);
    if (!c_.sequence_parallel || c_.seq_length < 1 || c_.tensor_parallel < 1) return;
    const std::int64_t below = c_.seq_length / c_.tensor_parallel * c_.tensor_parallel;
    fault_if(below != c_.seq_length,
             "--sequence-parallel needs a --seq-length {} that --tensor-model-parallel-size {} divides; nearest: {}{}",
             c_.seq_length, c_.tensor_parallel, below > 0 ? fmt::format("{}, ", below) : "",
             below + c_.tensor_parallel);
  }

  void check_precision() {
    const LossScaling& scaling = c_.loss_scaling;
    for (std::string& fault : c_.backend_faults()) faults_.push_back(std::move(fault));
    const bool finite =
        std::isfinite(scaling.fixed) && std::isfinite(scaling.initial) && std::isfinite(scaling.minimum);
    fault_if(!finite, "a loss scale must be finite: --loss-scale {}, --initial-loss-scale {}, --min-loss-scale {}",
             scaling.fixed, scaling.initial, scaling.minimum);
    fault_if(scaling.fixed < 0, "--loss-scale is {}; it must be at least 0 (0: dynamic)", scaling.fixed);
    fault_if(scaling.minimum <= 0, "--min-loss-scale is {}; it must be above 0", scaling.minimum);
    fault_if(scaling.initial <= 0, "--initial-loss-scale is {}; it must be above 0", scaling.initial);
    fault_if(scaling.initial > 0 && scaling.initial < scaling.minimum,
             "--initial-loss-scale {} is below --min-loss-scale {}", scaling.initial, scaling.minimum);
    need_between("loss-scale-window", scaling.window, 1);
    need_between("hysteresis", scaling.hysteresis, 1);
  }

  void check_batch() {
    need_between("train-iters", c_.train_iters, 1, kMostUpdates);
    need_between("micro-batch-size", c_.micro_batch_size, 1, kMostWidth);
    need_between("global-batch-size", c_.global_batch_size, 0);
    fault_if(c_.global_batch_size >= 1 && c_.global_batch_size < c_.data_parallel,
             "--global-batch-size {0} has no sample for some of the copies of --data-parallel-size {1}; the least that "
             "works is {1}",
             c_.global_batch_size, c_.data_parallel);
    check_ramp();
  }

  void check_ramp() {
    const std::vector<std::int64_t>& ramp = c_.rampup_batch_size;
    if (ramp.empty()) return;
    if (ramp.size() != 3) {
      fault_if(true, "--rampup-batch-size has {} number{}; three are needed: START INCREMENT SAMPLES", ramp.size(),
               ramp.size() == 1 ? "" : "s");
      return;
    }
    const std::size_t before = faults_.size();
    const auto need = [&](std::string_view name, std::int64_t value, std::int64_t most) {
      fault_if(value < 1 || value > most, "--rampup-batch-size has {} as {}; it must be at least 1 and at most {}",
               value, name, most);
    };
    need("START", ramp[0], kMostCount);
    need("INCREMENT", ramp[1], kMostCount);
    need("SAMPLES", ramp[2], kMostRampSamples);
    const bool sizes_make_sense = c_.micro_batch_size >= 1 && c_.micro_batch_size <= kMostWidth &&
                                  c_.data_parallel >= 1 && c_.data_parallel <= kMostRanks &&
                                  c_.global_batch_size >= 0 && c_.global_batch_size <= kMostCount;
    if (faults_.size() == before && sizes_make_sense) check_ramp_end(ramp[0], ramp[1], c_.largest_batch());
  }

  void check_ramp_end(std::int64_t start, std::int64_t increment, std::int64_t end) {
    fault_if(start < c_.data_parallel,
             "--rampup-batch-size starts with {0}: no sample for some of the copies of --data-parallel-size {1}; the "
             "least that works is {1}",
             start, c_.data_parallel);
    fault_if(start > end, "--rampup-batch-size starts with {}, above the --global-batch-size of {} that it leads to",
             start, end);
    if (start > end) return;
    const std::int64_t below = start + (end - start) / increment * increment;
    fault_if(below != end,
             "--rampup-batch-size {} {} .. never reaches --global-batch-size {}; nearest that it reaches: {}, {}",
             start, increment, end, below, below + increment);
    fault_if((end - start) / increment > BatchSchedule::kMostIncrements,
             "--rampup-batch-size takes {} increments; at most {}: choose a larger one", (end - start) / increment,
             BatchSchedule::kMostIncrements);
  }

  void check_lengths() {
    const std::int64_t positions = c_.model.max_position_embeddings;
    fault_if(positions > 0 && c_.seq_length > positions,
             "--seq-length {} is more than --max-position-embeddings {}; lower the first or raise the second",
             c_.seq_length, positions);
    need_between("logits-chunk", c_.logits_chunk, 1);
    need_between("threads", c_.threads, 0, 4096);
  }

  void check_learning_rate() {
    const LearningRateSchedule schedule = c_.schedule();
    fault_if(!(schedule.peak > 0), "--lr is {}; it must be above 0", schedule.peak);
    fault_if(schedule.minimum < 0, "--min-lr is {}; it must be at least 0", schedule.minimum);
    fault_if(schedule.minimum > schedule.peak && schedule.peak > 0, "--min-lr {} is above --lr {}", schedule.minimum,
             schedule.peak);
    need_between("lr-warmup-iters", schedule.warmup, 0, kMostUpdates);
    need_between("lr-decay-iters", c_.learning_rate.decay, 0, kMostUpdates);
    fault_if(schedule.decay > 0 && schedule.warmup > schedule.decay,
             "--lr-warmup-iters {} is more than the {} updates until the end of the decay ({})", schedule.warmup,
             schedule.decay, c_.learning_rate.decay > 0 ? "--lr-decay-iters" : "--train-iters");
  }

  void check_optimizer() {
    const AdamWSettings& adam = c_.optimizer;
    fault_if(adam.weight_decay < 0, "--weight-decay is {}; it must be at least 0", adam.weight_decay);
    fault_if(adam.clip < 0, "--clip-grad is {}; it must be at least 0 (0: no clipping)", adam.clip);
    fault_if(!(adam.beta1 >= 0 && adam.beta1 < 1), "--adam-beta1 is {}; it must be at least 0 and below 1", adam.beta1);
    fault_if(!(adam.beta2 >= 0 && adam.beta2 < 1), "--adam-beta2 is {}; it must be at least 0 and below 1", adam.beta2);
    fault_if(!(adam.epsilon > 0), "--adam-eps is {}; it must be above 0", adam.epsilon);
  }

  void check_data() {
    need_between("seed", c_.seed, 0, std::numeric_limits<std::int64_t>::max());
    for (std::string& fault : c_.split_faults()) faults_.push_back(std::move(fault));
  }

  void check_intervals() {
    need_between("save-interval", c_.save_interval, 0);
    need_between("keep-last", c_.keep_last, 0);
    need_between("log-interval", c_.log_interval, 1);
    need_between("eval-interval", c_.eval_interval, 0);
    need_between("eval-iters", c_.eval_iters, 1);
    fault_if(c_.save_interval > 0 && c_.save.empty(), "--save-interval {} needs a place to save: --save DIR",
             c_.save_interval);
  }

  const TrainConfig& c_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> TrainConfig::faults() const { return FaultFinder(*this).find(); }

}  // namespace teratron

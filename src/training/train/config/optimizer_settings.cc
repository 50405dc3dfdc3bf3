#include "train/config/optimizer_settings.h"

#include <cmath>
#include <limits>

namespace teratron {
namespace {

constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostUpdates = std::numeric_limits<std::uint32_t>::max();  // RandomStream::step

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

Faults wsd_faults(const LearningRateSchedule& schedule) {
  constexpr Flag kWsdDecay{"lr-wsd-decay-iters"};
  Faults faults;
  faults.need_between(kWsdDecay, schedule.wsd_decay, 0, kMostUpdates);
  // Faults of the other two are reported by their own flags.
  const bool has_room = schedule.warmup >= 0 && schedule.decay >= schedule.warmup;
  if (schedule.style != DecayStyle::kWsd || !has_room) return faults;
  const std::int64_t most = schedule.decay - schedule.warmup;
  faults.add_if(schedule.wsd_decay == 0, "{} wsd needs {} N: the updates at the end in which the learning rate falls",
                Flag{"lr-decay-style"}, kWsdDecay);
  faults.add_if(schedule.wsd_decay > most, "{} is {}; the updates from the warm-up to the end of the decay are {}",
                kWsdDecay, schedule.wsd_decay, most);
  return faults;
}

Faults learning_rate_faults(const OptimizerSettings& s, std::int64_t train_iters) {
  constexpr Flag kPeak{"lr"}, kMinimum{"min-lr"}, kWarmup{"lr-warmup-iters"}, kDecay{"lr-decay-iters"},
      kTrainIters{"train-iters"};
  const LearningRateSchedule schedule = s.schedule(train_iters);
  Faults faults;
  faults.need_between(kTrainIters, train_iters, 1, kMostUpdates);
  faults.add_if(!(schedule.peak > 0), "{} is {}; it must be above 0", kPeak, schedule.peak);
  faults.add_if(schedule.minimum < 0, "{} is {}; it must be at least 0", kMinimum, schedule.minimum);
  faults.add_if(schedule.minimum > schedule.peak && schedule.peak > 0, "{} {} is above {} {}", kMinimum,
                schedule.minimum, kPeak, schedule.peak);
  faults.need_between(kWarmup, schedule.warmup, 0, kMostUpdates);
  faults.need_between(kDecay, s.learning_rate.decay, 0, kMostUpdates);
  faults.add_if(schedule.decay > 0 && schedule.warmup > schedule.decay,
                "{} {} is more than the {} updates until the end of the decay ({})", kWarmup, schedule.warmup,
                schedule.decay, s.learning_rate.decay > 0 ? kDecay : kTrainIters);
  faults.add(wsd_faults(schedule));
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
  const bool is_fp32 = static_cast<float>(adam.epsilon) > 0 && std::isfinite(static_cast<float>(adam.epsilon));
  faults.add_if(!is_fp32, "{} is {}; it must be above 0, and a number that fp32 holds", Flag{"adam-eps"}, adam.epsilon);
  return faults;
}

Faults muon_faults(const MuonSettings& muon) {
  Faults faults;
  faults.add_if(!(muon.momentum >= 0 && muon.momentum < 1), "{} is {}; it must be at least 0 and below 1",
                Flag{"muon-momentum"}, muon.momentum);
  return faults;
}

}  // namespace

OptimizerSettings::OptimizerSettings() { learning_rate.minimum = 1e-5; }

std::shared_ptr<const Optimizer> OptimizerSettings::make_optimizer() const {
  if (kind == OptimizerKind::kMuon) return std::make_shared<MuonOptimizer>(muon, adamw, bf16_moments);
  return std::make_shared<AdamWOptimizer>(adamw, bf16_moments);
}

LearningRateSchedule OptimizerSettings::schedule(std::int64_t train_iters) const {
  LearningRateSchedule schedule = learning_rate;
  if (schedule.decay == 0) schedule.decay = train_iters;
  return schedule;
}

Faults OptimizerSettings::faults(std::int64_t train_iters) const {
  Faults faults = loss_scaling_faults(loss_scaling);
  faults.add(learning_rate_faults(*this, train_iters));
  faults.add(adamw_faults(adamw));
  faults.add(muon_faults(muon));
  return faults;
}

void add_optimizer_choice_fields(FieldList& list, OptimizerSettings& s) {
  list.add_choice("optimizer", s.kind, {{"adamw", OptimizerKind::kAdamW}, {"muon", OptimizerKind::kMuon}},
                  "muon: the layers' weight matrices by orthogonalised momentum, the rest by AdamW, at the same --lr")
      .of(FieldScope::kOptimizer);
  list.add_choice("optimizer-state", s.bf16_moments, {{"fp32", false}, {"bf16", true}},
                  "how the optimizer keeps its moments (rounded by chance) and muon's momentum: bf16 takes half");
}

void add_optimizer_fields(FieldList& list, OptimizerSettings& s) {
  list.add("lr", &s.learning_rate.peak, "X", "peak learning rate").of(FieldScope::kSchedule);
  list.add("min-lr", &s.learning_rate.minimum, "X", "learning rate at the end of the decay").of(FieldScope::kSchedule);
  list.add_choice("lr-decay-style", s.learning_rate.style,
                  {{"cosine", DecayStyle::kCosine},
                   {"linear", DecayStyle::kLinear},
                   {"constant", DecayStyle::kConstant},
                   {"wsd", DecayStyle::kWsd}},
                  "how the learning rate falls after the warm-up; wsd: not before the last --lr-wsd-decay-iters")
      .of(FieldScope::kSchedule);
  list.add("lr-decay-iters", &s.learning_rate.decay, "N", "updates until --min-lr; 0: --train-iters")
      .of(FieldScope::kSchedule);
  list.add("lr-warmup-iters", &s.learning_rate.warmup, "N", "updates of linear warm-up").of(FieldScope::kSchedule);
  list.add("lr-wsd-decay-iters", &s.learning_rate.wsd_decay, "N", "wsd: updates of the decay at the end")
      .of(FieldScope::kSchedule);
  list.add_choice("lr-wsd-decay-style", s.learning_rate.wsd_style,
                  {{"exponential", WsdDecayStyle::kExponential},
                   {"linear", WsdDecayStyle::kLinear},
                   {"cosine", WsdDecayStyle::kCosine},
                   {"minus_sqrt", WsdDecayStyle::kMinusSqrt}},
                  "wsd: the curve of that decay")
      .of(FieldScope::kSchedule);
  add_optimizer_choice_fields(list, s);
  list.add("muon-momentum", &s.muon.momentum, "X", "muon: decay of the gradient's running sum");
  list.add("weight-decay", &s.adamw.weight_decay, "X", "decoupled weight decay; biases and norms have none");
  list.add("clip-grad", &s.adamw.clip, "X", "largest norm of all gradients together; 0: no clipping");
  list.add("adam-beta1", &s.adamw.beta1, "X", "decay of the gradient's running mean");
  list.add("adam-beta2", &s.adamw.beta2, "X", "decay of the gradient's running square");
  list.add("adam-eps", &s.adamw.epsilon, "X", "added to the root of the running square");
}

void add_loss_scaling_fields(FieldList& list, LossScaling& s) {
  list.add("loss-scale", &s.fixed, "X", "constant loss scale of fp16; 0: dynamic");
  list.add("initial-loss-scale", &s.initial, "X", "where the dynamic loss scale starts");
  list.add("min-loss-scale", &s.minimum, "X", "where it stops falling");
  list.add("loss-scale-window", &s.window, "N", "updates without overflow before it doubles");
  list.add("hysteresis", &s.hysteresis, "N", "it halves from the N-th overflow on");
}

}  // namespace teratron

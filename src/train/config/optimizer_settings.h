// The updates of a training run: how many, how large, and from which seed.
#pragma once

#include <cstdint>
#include <memory>

#include "base/faults.h"
#include "optim/learning_rate.h"
#include "optim/loss_scaler.h"
#include "optim/muon/muon.h"
#include "options/fields.h"

namespace teratron {

enum class OptimizerKind { kAdamW, kMuon };

struct OptimizerSettings {
  OptimizerSettings();

  std::int64_t train_iters = 0;        // must be given
  LearningRateSchedule learning_rate;  // decay 0: train_iters
  OptimizerKind kind = OptimizerKind::kAdamW;
  AdamWSettings adamw;
  MuonSettings muon;          // of kMuon, beside `adamw`
  bool bf16_moments = false;  // the optimizer's slots are bf16; else fp32
  LossScaling loss_scaling;   // fp16 only
  std::int64_t seed = 1234;

  std::shared_ptr<const Optimizer> make_optimizer() const;
  LearningRateSchedule schedule() const;  // with the decay filled in
  Faults faults() const;
};

void add_optimizer_fields(FieldList& list, OptimizerSettings& settings);
// Those of them that decide how much memory an optimizer keeps.
void add_optimizer_choice_fields(FieldList& list, OptimizerSettings& settings);
void add_loss_scaling_fields(FieldList& list, LossScaling& scaling);

}  // namespace teratron

// Settings of updates: the optimizer, its learning rate, the loss scale.
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

  LearningRateSchedule learning_rate;  // decay 0: all updates
  OptimizerKind kind = OptimizerKind::kAdamW;
  AdamWSettings adamw;
  MuonSettings muon;          // of kMuon, beside `adamw`
  bool bf16_moments = false;  // the optimizer's slots are bf16; else fp32
  LossScaling loss_scaling;   // fp16 only

  std::shared_ptr<const Optimizer> make_optimizer() const;
  LearningRateSchedule schedule(std::int64_t train_iters) const;  // of a run of so many updates: the decay filled in
  Faults faults(std::int64_t train_iters) const;
};

void add_optimizer_fields(FieldList& list, OptimizerSettings& settings);
// Adds the fields that decide how much memory an optimizer keeps.
void add_optimizer_choice_fields(FieldList& list, OptimizerSettings& settings);
void add_loss_scaling_fields(FieldList& list, LossScaling& scaling);

}  // namespace teratron

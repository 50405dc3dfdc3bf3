// Vocabulary parallelism over the stages of a pipeline (arXiv 2411.05288; SlimPipe, arXiv 2504.14519, section 4): every
// stage holds an equal part of the vocabulary's rows, of the embedding and of the output projection. Each slice then
// has three joint passes, which all stages run together: the look-up of its tokens before its first cell, its head
// between the forward and the backward of its last cell, and the look-up's backward after its first cell's backward.
#pragma once

#include "pipeline/generators.h"
#include "pipeline/timing/costs.h"

namespace teratron::pipeline {

// Returns the schedule with joint passes inserted; it has none before. Stages keep the order of their other actions,
// and with it their live activations. Heads follow each other as the forwards of the last cell do. Between two heads a
// stage runs, as `costs` say, what the next head waits for and what else fits into the time until then, so that a head
// takes a slot of its own in the steady state of all stages. Look-ups stand beside heads, where stages meet anyway.
// InternalError where the schedule is not fit to run.
Schedule with_vocabulary_passes(const Schedule& schedule, const Costs& costs);

// Forwards that a stage with so many others below it runs ahead beyond those of 1F1B, so that it has work while a
// slice is in its head: backwards follow the stage below one head later, forwards every other time one earlier. With
// several cells a stage, stages are that far ahead anyway.
constexpr int vocabulary_lead(int stages_below) { return (stages_below + 1) / 2; }

}  // namespace teratron::pipeline

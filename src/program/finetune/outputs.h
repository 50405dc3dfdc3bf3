// Outputs of a model with a task's head for the examples of a set.
#pragma once

#include <functional>

#include "executor/executor.h"
#include "model/bert.h"
#include "tasks/task.h"

namespace teratron {

// Computes the outputs, as many sequences at a time as the executor takes. Every rank of the mesh calls it and gets all
// of them. Copies of the model share the examples, which run in order of length, so that batches have little padding.
// done(share): progress of this copy. UserError: an output is not finite.
TaskOutputValues outputs_of(Executor& executor, const Bert& model, const TaskExamples& examples,
                            const std::function<void(double share)>& done = {});

}  // namespace teratron

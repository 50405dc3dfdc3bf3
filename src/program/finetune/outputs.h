// What a model with a task's head gives for the examples of a set.
#pragma once

#include <functional>
#include <vector>

#include "executor/executor.h"
#include "model/bert.h"
#include "tasks/task.h"

namespace teratron {

// Every rank of the mesh calls it and gets all of them. Copies of the model share out the examples, which run in order
// of length, so that little of a batch is padding; as many sequences at a time as the executor takes. done(share): on
// the way, of this copy's part. UserError: an output is not finite.
TaskOutputValues outputs_of(Executor& executor, const Bert& model, const TaskExamples& examples,
                            const std::function<void(double share)>& done = {});

}  // namespace teratron

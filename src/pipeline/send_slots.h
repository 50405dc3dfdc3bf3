// How far stages may run ahead of those that take their results.
#pragma once

#include "pipeline/schedule.h"

namespace teratron::pipeline {

// Places for what a stage has sent and nobody has begun to receive, in each direction, that are enough for all stages
// to come to the end of their lists although a stage waits for a place to become free. A power of two, and at least 2:
// one is filled while the other is sent.
//
// Supposed is what an executor does: it begins to receive what an action works on before it runs the action that comes
// before it; a gradient is received into one of gradient_places(), where backward makes the one that is sent.
int send_slots(const Schedule& schedule);

// One that is received into, one that is worked on, and those sent.
inline int gradient_places(int slots) { return slots + 2; }

}  // namespace teratron::pipeline

// Send buffers: how far stages may run ahead of those that take their results.
#pragma once

#include "pipeline/schedule.h"

namespace teratron::pipeline {

// Send buffers of a stage, in each direction: a stage waits until one is free, and with this many every schedule still
// comes to its end. A buffer is free again when the receiver has begun to receive it. A power of two, or two more than
// all messages, and at least 2: one is filled while the other is sent.
//
// The executor starts to receive an action's input before it runs the action before that one. It receives a gradient
// into one of gradient_slots(); backward writes the gradient that is sent into the same slot.
int send_slots(const Schedule& schedule);

// One to receive into, one to work on, and the send buffers.
inline int gradient_slots(int slots) { return slots + 2; }

}  // namespace teratron::pipeline

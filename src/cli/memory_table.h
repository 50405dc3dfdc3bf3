// What a runner will take of the machine's memory, before it does.
#pragma once

#include <string>

#include "tensor/memory.h"

namespace teratron {

// The plan by kind at the fullest moment of a step, and the size of the whole arena.
std::string memory_table(const Arena& arena);

// EnvironmentError if the machine does not have that much left for each of so many ranks: the plan, what is there, and
// what to change.
void require_memory(const Arena& arena, std::int64_t ranks = 1);

}  // namespace teratron

// How a program of this library begins and ends.
#pragma once

#include <functional>

namespace teratron {

// All of main(): calls `body` and returns the exit code. Standard streams that are closed are opened first, and
// terminals and pipes that go away are errors, no signals. Whatever `body` throws is told in one line on standard
// error and decides the exit code (src/foundation/base/README.md: 2 for the user's input, 3 for the machine, 1 for a bug; 128 + N
// in silence where signal N ended the work in good order). A launcher's other processes hear of it.
int run_program(const std::function<void()>& body);

}  // namespace teratron

// Beginning and end of a program of this library.
#pragma once

#include <functional>

namespace teratron {

// All of main(): calls `body` and returns the exit code. It first opens closed standard streams, and makes pipes whose
// reader ends errors instead of signals. An exception of `body` becomes one line on standard error and decides the exit
// code (src/foundation/base/README.md): 2 for the user's input, 3 for the machine, 1 for a bug, 128 + N without a
// message after signal N. The launcher's other processes are notified.
int run_program(const std::function<void()>& body);

}  // namespace teratron

// Work in a process of its own: its memory and its crashes are its own too.
#pragma once

#include <functional>
#include <string>

namespace teratron {

// Runs `work` in a copy of this process and returns what it returned. Call it before this process has started any
// thread. EnvironmentError with the message of what `work` threw, or with how the child ended.
std::string in_child_process(const std::function<std::string()>& work);

}  // namespace teratron

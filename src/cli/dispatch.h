// From the words on the command line to the subcommand they name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace teratron {

// Runs the command that the first words name with the arguments after them, or prints the help or version asked for to
// standard output. UserError: no such command (and which one may be meant); and whatever the command throws.
void dispatch(std::span<const Command> commands, std::span<const std::string> words);

}  // namespace teratron

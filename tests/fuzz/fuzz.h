// Fuzz target of a parser: a file of this folder that defines parse(). A run is one call.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace teratron::fuzz {

// Gives the bytes to a parser. UserError and EnvironmentError are its right answer to bad input, and end a run quietly.
// Every other exception is a fault, as are a sanitizer's report, 2 GB of memory and 10 seconds (scripts/fuzz).
void parse(std::string_view input);

// Folder of this process in memory, for parsers that read files. It is removed at the end.
const std::filesystem::path& folder();

// Writes a file in folder(), over an earlier one of this name.
std::filesystem::path put(std::string_view name, std::string_view bytes);

// Parts of an input that stands for several files or arguments.
std::vector<std::string_view> parts_of(std::string_view input, char separator);

// Takes the first byte of the input, for a choice; 0 where there is none.
unsigned take_byte(std::string_view& input);

// Aborts: a property does not hold.
void require(bool holds, std::string_view property);

}  // namespace teratron::fuzz

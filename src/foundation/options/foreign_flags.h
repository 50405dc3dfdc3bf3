// Flags of other programs and their equivalents here.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

enum class ForeignProgram { kMegatron, kHuggingFace, kNanoGpt, kLlmC, kOthers };

std::string_view name_of(ForeignProgram program);

struct ForeignFlag {
  ForeignProgram program;
  std::string_view name;    // without leading dashes, with hyphens for Python's underscores
  std::string_view ours;    // our flags, "--micro-batch-size N"; empty: none
  std::string_view note;    // difference, or why no flag is needed; may be empty
  bool is_missing = false;  // Teratron lacks the feature, as the note says
};

// All flags that differ from ours, in the order of the table.
std::span<const ForeignFlag> foreign_flags();

// End of a message about an unknown flag ("--batch_size", "-b"): the program that has it, and our flag. `has_flag`:
// whether the command has a flag of ours, given without dashes. Empty: no known program has this flag, or this command
// has no equivalent.
std::string foreign_flag_hint(std::string_view flag, const std::function<bool(const std::string&)>& has_flag);

// Flags in ForeignFlag::ours, without dashes.
std::vector<std::string> our_flags(const ForeignFlag& flag);

}  // namespace teratron

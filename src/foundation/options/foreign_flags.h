// Flags that users of other programs have in their fingers, and what they are here.
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
  std::string_view name;    // without leading dashes; Python's underscores are hyphens here
  std::string_view ours;    // the flags as they are typed here, "--micro-batch-size N"; empty: there is none
  std::string_view note;    // what differs, or why there is none; may be empty
  bool is_missing = false;  // it is not done here at all, as the note says
};

// In the order in which a table shows them. Flags that are the same here are not among them.
std::span<const ForeignFlag> foreign_flags();

// For a flag that a command does not know ("--batch_size", "-b"): what it is elsewhere and what to give here, as the
// end of a message. `has_flag` tells whether the command has a flag of ours, which is given without dashes. Empty: it
// is nobody's, or its equal is another command's.
std::string foreign_flag_hint(std::string_view flag, const std::function<bool(const std::string&)>& has_flag);

// The flags named in ForeignFlag::ours, without dashes.
std::vector<std::string> our_flags(const ForeignFlag& flag);

}  // namespace teratron

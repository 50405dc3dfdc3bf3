// Calls of tools in an answer, in the form of Hermes and Qwen: <tool_call>{"name": .., "arguments": {..}}</tool_call>.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace teratron {

struct CalledTool {
  std::string name, arguments;  // the latter: JSON text of an object, as the model wrote it
};

struct AnswerWithCalls {
  std::string content;  // the text before the calls, without the white space between; without calls all of it
  std::vector<CalledTool> calls;
};

// Reads the calls with which an answer ends. A text that goes on after them, or has one in another form, has no calls.
AnswerWithCalls find_tool_calls(const std::string& text);

// Bytes at the beginning of an unfinished answer that belong to its content whatever follows.
std::size_t bytes_before_calls(std::string_view text);

}  // namespace teratron

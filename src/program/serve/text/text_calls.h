// Calls to the engine: the first rank takes them from connections, and all ranks of the model make them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "eval/generation/generator.h"

namespace teratron {

struct TextJob {
  GeneratorRequest request;
  std::vector<std::string> stop_texts;
};

struct TextCalls {
  struct Arrival {
    std::int64_t number = 0;  // of the request
    std::vector<TextJob> jobs;
  };
  std::vector<Arrival> arrivals;
  std::vector<std::int64_t> cancelled;  // numbers of requests, also of those that arrive
  bool stops = false;                   // nothing comes after it
};

// Returns the calls of the group's first rank. Every rank calls it, the others with none.
TextCalls share_calls(Communicator& group, TextCalls calls);

}  // namespace teratron

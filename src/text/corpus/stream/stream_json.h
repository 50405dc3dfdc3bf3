// The statistics of a stream, for --json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "corpus/stream/stream.h"

namespace teratron {

// The counts, and the facts of `stages` unless that is empty.
nlohmann::ordered_json json_of(const StreamCounts& counts, const std::vector<std::unique_ptr<Stage>>& stages);

}  // namespace teratron

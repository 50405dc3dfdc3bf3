#include "corpus/stream/stream_json.h"

#include <nlohmann/json.hpp>

namespace teratron {

nlohmann::ordered_json json_of(const StreamCounts& counts, const std::vector<std::unique_ptr<Stage>>& stages) {
  nlohmann::ordered_json json = {{"documents", counts.documents},
                                 {"kept", counts.kept},
                                 {"bad", counts.bad},
                                 {"text_bytes", counts.text_bytes},
                                 {"kept_bytes", counts.kept_bytes},
                                 {"stages", nlohmann::ordered_json::array()}};
  if (counts.bad > 0) json["first_bad"] = counts.first_bad;
  for (std::size_t i = 0; i < counts.stages.size(); ++i) {
    const StageCounts& one = counts.stages[i];
    std::int64_t dropped = 0;
    for (const auto& [reason, count] : one.dropped) dropped += count;
    nlohmann::ordered_json stage = {{"stage", one.name},         {"documents", one.documents_in},
                                    {"kept", one.documents_out}, {"changed", one.changed},
                                    {"dropped", dropped},        {"reasons", one.dropped}};
    for (const Stage::Fact& fact : stages.empty() ? std::vector<Stage::Fact>() : stages[i]->facts()) {
      std::visit([&](const auto& value) { stage[fact.name] = value; }, fact.value);
    }
    json["stages"].push_back(std::move(stage));
  }
  return json;
}

}  // namespace teratron

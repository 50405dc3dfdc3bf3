// ModelConfig as checkpoint.json has it, and differences between two, all from one list of fields.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "model/config.h"

namespace teratron {

constexpr std::int64_t kLargestSize = std::numeric_limits<std::int32_t>::max();  // of layers, features, positions

nlohmann::json model_config_to_json(const ModelConfig& config);

// UserError, naming `path`: a field that is missing or spoilt, or a configuration that no model can have.
ModelConfig model_config_from_json(const nlohmann::json& json, const std::filesystem::path& path);

// Differences by which `asked` computes another function than `stored`, one phrase each ("hidden_size is 256 there, 384
// was asked for"). Dropout, initialisation and padding may differ: they don't touch stored weights. The order of labels
// that have names may differ, too, and without `heads` the heads.
std::vector<std::string> differences(const ModelConfig& stored, const ModelConfig& asked, bool heads = true);

// UserError with all of them: what `folder` holds is not the model that was asked for.
void check_same_model(const std::filesystem::path& folder, const ModelConfig& stored, const ModelConfig& asked,
                      bool heads = true);

}  // namespace teratron

// What the user can say to `teratron generate`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/text/content.h"
#include "eval/generation/generation.h"
#include "options/fields.h"
#include "runtime/backend_choice.h"
#include "settings/layout_settings.h"

namespace teratron {

struct GenerateOptions {
  std::filesystem::path load, tokenizer, json, prompts;
  std::string prompt;
  TextFormat prompt_format = TextFormat::kAuto;
  LongPrompt long_prompt = LongPrompt::kRefuse;
  std::vector<std::string> stop_texts;
  std::int64_t samples = 1, batch = 0;
  GenerationSettings settings;
  std::int64_t seed = 1234;
  LayoutSettings layout;
  BackendSettings backend;
  bool ignore_end = false;

  Faults faults() const;
};

FieldList fields_of(GenerateOptions& options);

}  // namespace teratron

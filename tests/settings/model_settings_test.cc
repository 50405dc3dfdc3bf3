// Initial weights: their size by the model's width, and what is smaller before a residual add.
#include "settings/model_settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/make_model.h"
#include "options/reading.h"

namespace teratron::testing {
namespace {

ModelConfig model_of(const std::vector<std::string>& arguments) {
  ModelSettings settings;
  FieldList fields;
  add_model_fields(fields, settings);
  EXPECT_TRUE(read_fields(fields, arguments).empty());
  EXPECT_TRUE(settings.faults(1).empty());
  return settings.model_for(100);
}

TEST(ModelSettings, InitialWeightsByWidthAreTheRootOfWhatTheWidthLacksTo1024) {
  for (const auto& [width, expected] :
       {std::pair{64, 0.08}, {256, 0.04}, {768, 0.02 * std::sqrt(4.0 / 3)}, {1024, 0.02}, {4096, 0.02}}) {
    const std::vector<std::string> shape = {"--hidden-size", std::to_string(width), "--num-attention-heads", "2"};
    std::vector<std::string> by_width = shape;
    by_width.insert(by_width.begin(), {"--init-method-std", "auto"});  // whatever comes first
    EXPECT_DOUBLE_EQ(model_of(by_width).init_method_std, expected);
    EXPECT_EQ(model_of(shape).init_method_std, 0.02) << "nothing changes unasked";
  }
  EXPECT_EQ(model_of({"--init-method-std", "0.06"}).init_method_std, 0.06);
}

// The scales that the model's parameters declare, by name.
std::map<std::string, double> scales_of(const ModelConfig& config) {
  std::map<std::string, double> scales;
  make_model(config)->visit([&](Parameter& parameter) { scales[parameter.name] = parameter.init_scale; });
  return scales;
}

TEST(ModelSettings, OnlyWeightsBeforeAResidualAddStartSmallerAndOnlyUnlessTurnedOff) {
  for (const char* kind : {"gpt2", "bert"}) {
    const std::vector<std::string> shape = {"--model-type",  kind, "--num-layers",          "8",
                                            "--hidden-size", "32", "--num-attention-heads", "2"};
    std::vector<std::string> off = shape;
    off.emplace_back("--no-scaled-init-method");
    std::int64_t smaller = 0;
    for (const auto& [name, scale] : scales_of(model_of(shape))) {
      const bool is_before_add = name.ends_with("attention.projection.weight") || name.ends_with("mlp.down.weight");
      EXPECT_DOUBLE_EQ(scale, is_before_add ? 0.25 : 1.0) << name;  // 1 / sqrt(2 * 8)
      smaller += is_before_add ? 1 : 0;
    }
    EXPECT_EQ(smaller, 16) << kind;
    for (const auto& [name, scale] : scales_of(model_of(off))) EXPECT_EQ(scale, 1.0) << name;
  }
}

}  // namespace
}  // namespace teratron::testing

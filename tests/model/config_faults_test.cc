// Faults of a model's configuration.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/adapters.h"
#include "model/config.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

template <class Spoil>
void expect_fault(const char* text, const Spoil& spoil) {
  ModelConfig config;
  spoil(config);
  EXPECT_THAT(config.faults().texts(), ElementsAre(HasSubstr(text)));
}

TEST(ModelConfig, NumbersThatFp32DoesNotHoldAreFaults) {
  for (const double value :
       {1e300, 1e-300, 0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    expect_fault("--layernorm-epsilon", [&](ModelConfig& config) { config.layernorm_epsilon = value; });
    expect_fault("--init-method-std", [&](ModelConfig& config) { config.init_method_std = value; });
    expect_fault("--rotary-base", [&](ModelConfig& config) { config.rotary.base = value; });
    expect_fault("factors of rotary", [&](ModelConfig& config) { config.rotary.factor = value; });
    expect_fault("--lora-alpha", [&](ModelConfig& config) {
      const std::vector<std::string> all = {std::string(kAllLinear)};
      config.adapters = {.rank = 2, .alpha = value, .targets = adapter_targets(config, all)};
    });
  }
  expect_fault("at least 1", [](ModelConfig& config) { config.rotary.base = 0.5; });
}

TEST(ModelConfig, FaultsOfferWhatCanBe) {
  ModelConfig config;
  config.set_kind(ModelKind::kRoberta);
  config.embedding_dropout = 0.5;
  config.rotary_share = 1;
  config.head = ModelHead::kVectors;
  config.vectors.pooling = Pooling::kMax;
  const std::string texts = fmt::format("{}", fmt::join(config.faults().texts(), "\n"));
  EXPECT_THAT(texts, HasSubstr("these can: mean, cls, mean_sqrt_len_tokens, lasttoken"));
  EXPECT_THAT(texts, HasSubstr("--embedding-dropout is for models that continue text"));
  EXPECT_THAT(texts, AllOf(HasSubstr("rotary positions are for models"), Not(HasSubstr("--window-size"))));
}

}  // namespace
}  // namespace teratron::testing

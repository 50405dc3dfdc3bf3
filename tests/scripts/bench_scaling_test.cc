// The rows of bench/scaling against Table 1 of the Megatron-LM paper, and that each is a layout that its model can
// have.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/child_program.h"
#include "model/config.h"

namespace teratron::testing {
namespace {

using Json = nlohmann::json;

Json rows_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"python3", TERATRON_SOURCE_DIR "/bench/scaling.py", "--list"});
  const Outcome outcome = ChildProgram(arguments).wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  return Json::parse(outcome.output);
}

ModelConfig model_of(const Json& row) {
  const Json& shape = row.at("model");
  ModelConfig model;
  model.num_layers = shape.at("layers");
  model.hidden_size = shape.at("hidden");
  model.num_attention_heads = shape.at("heads");
  model.vocab_size = shape.at("vocab");
  model.max_position_embeddings = shape.at("seq");
  return model;
}

TEST(BenchScaling, TheModelsOfThePaperHaveItsParametersAndRanks) {
  const Json rows = rows_of({"--paper"});
  ASSERT_EQ(rows.size(), 15U);
  const double billions[] = {1.2, 2.5, 4.2, 8.3};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(static_cast<double>(model_of(rows[i]).parameters()) / 1e9, billions[i], 0.06);
    EXPECT_EQ(rows[i].at("tp"), 1 << i);
    EXPECT_EQ(rows[i + 4].at("dp"), 64);
    EXPECT_EQ(rows[i + 4].at("batch"), 512);
  }
}

TEST(BenchScaling, EveryRowIsALayoutThatItsModelCanHave) {
  for (const char* most : {"1", "3", "8"}) {
    for (const char* divisor : {"1", "4", "96"}) {
      for (const Json& row : rows_of({"--max-tensor-ranks", most, "--head-size-divisor", divisor})) {
        EXPECT_TRUE(model_of(row).faults(row.at("tp").get<int>()).empty()) << row.dump();
        EXPECT_LE(row.at("tp").get<int>(), std::atoi(most));
        EXPECT_EQ(row.at("batch").get<int>() % row.at("dp").get<int>(), 0);
      }
    }
  }
}

}  // namespace
}  // namespace teratron::testing

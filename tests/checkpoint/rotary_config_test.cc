// Rotary positions that config.json asks for, against the frequencies that transformers computes from it
// (tests/golden/rotary.json, made by tests/golden/make_rotary_golden.py).
#include <gmock/gmock.h>

#include <bit>

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face_files.h"
#include "nn/rotary.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

HuggingFaceConfig read_config(const Json& json) {
  const TemporaryFolder folder;
  put_file(folder / "config.json", json.dump());
  return read_hugging_face_config(folder / "config.json");
}

Json llama(const Json& changes) {
  Json json = {{"model_type", "llama"},         {"num_hidden_layers", 1}, {"hidden_size", 4},
               {"num_attention_heads", 1},      {"intermediate_size", 8}, {"vocab_size", 3},
               {"max_position_embeddings", 512}};
  json.update(changes);
  return json;
}

RotaryConfig rotary_of(const Json& changes) { return read_config(llama(changes)).model.layer_config().rotary; }

// Units in the last place between two positive floats.
int ulps_between(float one, float other) { return std::abs(std::bit_cast<int>(one) - std::bit_cast<int>(other)); }

// torch's power may be a unit off, of which the differences of Llama 3 and YaRN may make some.
TEST(RotaryConfigs, FrequenciesAreThoseOfTransformers) {
  const Json golden = Json::parse(bytes_of_file(fs::path(TERATRON_SOURCE_DIR) / "tests/golden/rotary.json"))["cases"];
  ASSERT_EQ(golden.size(), 144U);
  std::size_t values = 0, equal = 0;
  for (const Json& one : golden) {
    const RotaryConfig rotary = rotary_of(one["config"]);
    const auto expected = one["frequencies"].get<std::vector<float>>();
    const std::vector<float> actual = rotary_frequencies(rotary);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      ++values;
      equal += actual[i] == expected[i] ? 1 : 0;
      EXPECT_LE(ulps_between(actual[i], expected[i]), 6) << one["config"] << " pair " << i;
    }
    EXPECT_DOUBLE_EQ(rotary.attention, one["attention"].get<double>()) << one["config"];
    if (!one.contains("table")) continue;
    const auto row = one["table"].get<std::vector<float>>();
    const std::vector<float> table = rotary_table(rotary, 8);
    for (std::size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(table[7 * row.size() + i], row[i], 1e-6) << one["config"];
  }
  EXPECT_GT(static_cast<double>(equal), 0.98 * static_cast<double>(values));
}

TEST(RotaryConfigs, ReadBackAsWritten) {
  const Json golden = Json::parse(bytes_of_file(fs::path(TERATRON_SOURCE_DIR) / "tests/golden/rotary.json"))["cases"];
  for (const Json& one : golden) {
    const ModelConfig model = read_config(llama(one["config"])).model;
    const ModelConfig again = read_config(Json::parse(hugging_face_config(model, DType::kF32, {}))).model;
    EXPECT_EQ(again.rotary, model.rotary) << one["config"];
  }
}

TEST(RotaryConfigs, FirstPositionsAreThoseOutsideTheScalingOrOfTheModelWhereItHasNone) {
  const Json yarn = {{"rope_type", "yarn"}, {"rope_theta", 10000.0}};
  const RotaryConfig of_model = rotary_of({{"rope_parameters", yarn}});
  EXPECT_EQ(of_model.first_positions, 512);
  EXPECT_EQ(of_model.factor, 1);
  Json both = yarn;
  both["original_max_position_embeddings"] = 64;
  const RotaryConfig outside = rotary_of({{"rope_parameters", both}, {"original_max_position_embeddings", 128}});
  EXPECT_EQ(outside.first_positions, 128);
  EXPECT_EQ(outside.factor, 4);
}

// transformers forgets rope_parameters then, so that YaRN added in the old way also changes the base.
TEST(RotaryConfigs, TwoScalingsMustBeTheSame) {
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}};
  Json whole = yarn;
  whole["rope_theta"] = 1e6;
  EXPECT_EQ(rotary_of({{"rope_parameters", whole}, {"rope_scaling", yarn}, {"rope_theta", 1e6}}).factor, 4);
  EXPECT_EQ(rotary_of({{"rope_parameters", nullptr}, {"rope_scaling", yarn}}).factor, 4);
  for (const Json& parameters : {Json{{"rope_type", "default"}, {"rope_theta", 1e6}}, whole}) {
    EXPECT_THAT(testing::message_of<UserError>([&] {
                  rotary_of({{"rope_parameters", parameters}, {"rope_scaling", yarn}});
                }),
                HasSubstr("rope_scaling beside other rope_parameters"));
  }
}

TEST(RotaryConfigs, OthersAreRefusedByName) {
  const auto refusal = [](const Json& scaling) {
    return message_of<UserError>([&] { rotary_of({{"rope_scaling", scaling}}); });
  };
  EXPECT_THAT(refusal({{"type", "longrope"}, {"factor", 2.0}}),
              HasSubstr("rope_scaling of type 'longrope' (there are default, linear, dynamic, llama3 and yarn)"));
  EXPECT_THAT(refusal({{"rope_type", "dynamic"}}), HasSubstr("lacks \"factor\""));
  EXPECT_THAT(refusal({{"rope_type", "linear"}, {"factor", -1.0}}), HasSubstr("must be above 0"));
  EXPECT_THAT(refusal({{"rope_type", "yarn"}, {"factor", 2.0}, {"beta_slow", 32.0}}), HasSubstr("bounds of scaled"));
  EXPECT_THAT(refusal({{"rope_type", "yarn"}, {"factor", 2.0}, {"rope_theta", 1.0}}), HasSubstr("with YaRN"));
  EXPECT_THAT(message_of<UserError>([&] {
                rotary_of({{"model_type", "gpt_neox"}, {"rotary_pct", 0.0}});
              }),
              HasSubstr("rotary_pct 0"));
  for (const Json& config : {Json{{"partial_rotary_factor", 0.5}},
                             Json{{"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}}}}) {
    const std::string message = message_of<UserError>([&] { rotary_of(config); });
    const std::string_view reason = "partial_rotary_factor other than 1";
    EXPECT_THAT(message, HasSubstr(reason));
    EXPECT_EQ(message.find(reason), message.rfind(reason)) << message;
  }
}

}  // namespace
}  // namespace teratron::testing

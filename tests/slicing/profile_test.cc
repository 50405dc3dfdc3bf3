#include "slicing/cost/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/message_of.h"
#include "base/philox.h"

namespace teratron::testing {
namespace {

using namespace slicing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

StageCosts some_stage(double factor) {
  return {.forward = {.lengths = {8, 16, 24},
                      .without_context = {0.1, factor / 3, 0.7},
                      .context = {1e-3, -2e-9, 0, 1e-17}},
          .backward = {.lengths = {8, 16, 24}, .without_context = {0.2, factor * 2 / 3, 1.4}, .context = {0, 1, 2, 3}},
          .forward_error = {.mean = 0.01, .worst = 0.03},
          .backward_error = {.mean = 0.011, .worst = 0.04},
          .forward_noise = {.mean = 0.02, .worst = 0.05},
          .parts = BackwardParts{.weights = {0.1, factor / 7}, .more = {-0.01, 1e-4}}};
}

Profile some_profile() {
  return {.key = {.processor = "A \"fine\" CPU",
                  .backend = "cpu",
                  .ranks = "threads",
                  .dtype = "bf16",
                  .recompute = "none",
                  .dropout = "0.1 0",
                  .cell_layers = "6,6",
                  .settings = "tf32",
                  .threads = 2,
                  .hidden_size = 768,
                  .ffn_hidden_size = 3072,
                  .attention_heads = 12,
                  .vocabulary = 50304,
                  .tensor_parallel = 4,
                  .stages = 2,
                  .tokens = 24,
                  .logits_chunk = 256},
          .stages = {some_stage(1), some_stage(1.1)},
          .pace = {.alone = 0.9, .together = 10.0 / 9},
          .transfer = {.fixed = 0.01, .per_token = 1.0 / 3000},
          .update = 2.0 / 7,
          .iterations = {{.slices = {16, 8}, .held_out = true, .pipeline = 10.0 / 3},
                         {.slices = {24}, .micro_batches = 3, .pipeline = 4}}};
}

TEST(Profile, ReadsBackExactly) { EXPECT_EQ(profile_from_json(to_json(some_profile()), "p.json"), some_profile()); }

TEST(Profile, MayHoldChosenSlicesInAnEarlierVersion) {
  nlohmann::json old = nlohmann::json::parse(to_json(some_profile()));
  old["chosen_slices"] = {{{"schedule", "seq1f1b"}, {"micro_batches", 4}, {"sequences", 0}, {"cuts", "1x16,8"}}};
  EXPECT_EQ(profile_from_json(old.dump(), "p.json"), some_profile());
}

TEST(Profile, FromBeforeThereWerePartsAndNoiseSharesBackwardsEvenly) {
  nlohmann::json old = nlohmann::json::parse(to_json(some_profile()));
  for (nlohmann::json& stage : old["stages"]) {
    stage.erase("backward_parts");
    for (const char* pass : {"forward", "backward"}) {
      stage[pass].erase("mean_relative_noise");
      stage[pass].erase("worst_relative_noise");
    }
  }
  const StageCosts stage = profile_from_json(old.dump(), "p.json").stages.front();
  EXPECT_EQ(stage.forward_noise, RelativeError{});
  EXPECT_EQ(stage.times(16, 8).backward_weight, stage.backward.milliseconds(16, 8) / 2);
}

TEST(Profile, PartsOfABackwardAreAsTheyWereMeasured) {
  StageCosts stage = some_stage(1);
  stage.parts = BackwardParts{.weights = {.fixed = 0.01, .per_token = 0.02}, .more = {.fixed = 0.5}};
  const pipeline::PassTimes times = stage.times(8, 0);
  EXPECT_DOUBLE_EQ(times.backward, 0.2);
  EXPECT_DOUBLE_EQ(times.backward_weight, 0.01 + 8 * 0.02);
  EXPECT_DOUBLE_EQ(times.backward_input, 0.2 + 0.5 - times.backward_weight);
  stage.parts->weights.fixed = -1;  // as a fit may say of short slices
  EXPECT_EQ(stage.times(8, 0).backward_weight, 0);
  stage.parts->more.fixed = -1;
  EXPECT_DOUBLE_EQ(stage.times(8, 0).backward_input, 0.2);
}

TEST(Profile, MeasuredForSomethingElseIsRefusedAndSaysWhatDiffers) {
  const Profile profile = some_profile();
  ProfileKey wanted = profile.key;
  EXPECT_NO_THROW(require_key(profile, wanted, "p.json"));
  wanted.dtype = "f32";
  wanted.hidden_size = 1024;
  EXPECT_THAT([&] { require_key(profile, wanted, "p.json"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("p.json"), HasSubstr("dtype bf16, here f32"),
                                             HasSubstr("hidden_size 768, here 1024"), HasSubstr("teratron profile"),
                                             Not(HasSubstr("cell_layers")))));
}

// Costs beyond the longest slice are not known.
TEST(Profile, OfShorterSlicesThanItsSequencesIsRefused) {
  Profile profile = some_profile();
  profile.key.tokens = 25;
  EXPECT_THAT(message_of<UserError>([&] { require_key(profile, profile.key, "p.json"); }),
              HasSubstr("slices of 24 tokens at most, here 25"));
}

TEST(Profile, EveryFieldOfItsKeyCounts) {
  const nlohmann::json json = nlohmann::json::parse(to_json(some_profile()));
  EXPECT_EQ(json.at("measured_for").size(), 22U);
  for (const auto& [name, value] : json.at("measured_for").items()) {
    nlohmann::json other = json;
    other["measured_for"][name] = value.is_string() ? nlohmann::json("other") : nlohmann::json(97);
    if (name == "stages") {
      other["measured_for"][name] = 1;
      other["stages"].erase(1);
    }
    const Profile changed = profile_from_json(other.dump(), "p.json");
    EXPECT_THAT([&] { require_key(changed, some_profile().key, "p.json"); },
                ThrowsMessage<UserError>(HasSubstr(name + " ")));
    EXPECT_NE(text_of(changed.key), text_of(some_profile().key)) << name;
  }
}

TEST(Profile, ThatCannotBeTrueIsRefusedByTheNameOfItsField) {
  const auto refusal = [](const std::function<void(nlohmann::json&)>& spoil) {
    return [spoil] {
      nlohmann::json json = nlohmann::json::parse(to_json(some_profile()));
      spoil(json);
      profile_from_json(json.dump(), "p.json");
    };
  };
  const auto names = [](const char* field) {
    return ThrowsMessage<UserError>(AllOf(HasSubstr("p.json"), HasSubstr(field)));
  };
  EXPECT_THAT(refusal([](auto& j) { j["format"] = "teratron-profile-1"; }), names("format"));
  EXPECT_THAT(refusal([](auto& j) { j.erase("measured_for"); }), names("measured_for"));
  EXPECT_THAT(refusal([](auto& j) { j["measured_for"]["tokens"] = -1; }), names("tokens"));
  const auto spoil_pass = [&](const char* pass, const char* field, const nlohmann::json& value) {
    return refusal([=](nlohmann::json& j) { j["stages"][1][pass][field] = value; });
  };
  EXPECT_THAT(spoil_pass("forward", "lengths", {8, 8, 16}), names("lengths"));
  EXPECT_THAT(spoil_pass("forward", "lengths", {8, 16}), names("lengths"));
  EXPECT_THAT(spoil_pass("forward", "lengths", {8, 16.5, 24}), names("lengths"));
  EXPECT_THAT(spoil_pass("forward", "lengths", "8"), names("lengths"));
  EXPECT_THAT(spoil_pass("forward", "milliseconds_without_context", {1, 0, 2}), names("milliseconds"));
  EXPECT_THAT(spoil_pass("backward", "context_coefficients", {1, 2, 3}), names("context"));
  EXPECT_THAT(spoil_pass("backward", "lengths", {8, 16, 32}), names("different lengths"));
  EXPECT_THAT(refusal([](auto& j) { j["stages"].erase(0); }), names("lists 1 stage"));
  EXPECT_THAT(refusal([](auto& j) { j["stages"] = nlohmann::json::array(); }), names("lists 0 stages"));
  EXPECT_THAT(refusal([](auto& j) { j["stages"] = 3; }), names("stages"));
  EXPECT_THAT(refusal([](auto& j) { j["stages"][0].erase("backward"); }), names("backward"));
  EXPECT_THAT(refusal([](auto& j) { j["transfer_latency_milliseconds"] = -1; }), names("transfer_latency"));
  EXPECT_THAT(refusal([](auto& j) { j["pace_together"] = 0; }), names("pace_together"));
  EXPECT_THAT(refusal([](auto& j) { j["iterations"][1]["micro_batches"] = 0; }), names("micro_batches"));
  EXPECT_THAT(refusal([](auto& j) { j["update_milliseconds"] = 1e300; }), names("update_milliseconds"));
  EXPECT_THAT(refusal([](auto& j) { j["iterations"][0]["slices"] = {0, 24}; }), names("slices"));
  for (const double time : {0.0, -1.0, 1e300}) {
    EXPECT_THAT(refusal([=](auto& j) { j["iterations"][0]["pipeline_milliseconds"] = time; }), names("above 0"));
  }
  EXPECT_THAT(refusal([](auto& j) { j["iterations"][0].erase("held_out"); }), names("held_out"));
}

// Numbers that no machine writes, and with which nothing can be computed.
TEST(Profile, ThatDividesByNothingOrNeedsEndlessTimeIsRefused) {
  const auto refusal = [](const std::function<void(nlohmann::json&)>& spoil) {
    nlohmann::json json = nlohmann::json::parse(to_json(some_profile()));
    spoil(json);
    return message_of<UserError>([&] { profile_from_json(json.dump(), "p.json"); });
  };
  for (const char* const divisor : {"sequences", "tensor_parallel"}) {
    EXPECT_THAT(refusal([&](auto& j) { j["measured_for"][divisor] = 0; }), HasSubstr(divisor));
  }
  const nlohmann::json huge = {1, 1e300, 1, 1};
  EXPECT_THAT(refusal([&](auto& j) { j["stages"][0]["forward"]["context_coefficients"] = huge; }),
              HasSubstr("context"));
  for (const char* const part : {"weights_milliseconds", "more_milliseconds_per_token"}) {
    EXPECT_THAT(refusal([&](auto& j) { j["stages"][0]["backward_parts"][part] = -1e300; }), HasSubstr(part));
  }
  EXPECT_THAT(refusal([](auto& j) { j["iterations"][0]["slices"] = {16, 25}; }), HasSubstr("from 1 to 24"));
  EXPECT_THAT(refusal([](auto& j) { j["iterations"][0]["slices"] = nlohmann::json::array(); }), HasSubstr("slices"));
  EXPECT_THAT(refusal([](auto& j) { j["iterations"][1]["micro_batches"] = 1'000'000'000; }),
              HasSubstr("micro_batches"));
}

TEST(Profile, SpoiltAnywhereIsReadOrRefusedAndNothingElse) {
  RandomSequence random(RandomStream{.seed = 1});
  const std::string whole = to_json(some_profile());
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = whole.substr(0, random.below(2) == 0 ? whole.size() : random.below(whole.size()));
    for (std::uint64_t changes = random.below(4); changes > 0 && !text.empty(); --changes) {
      text[random.below(text.size())] = static_cast<char>(random.next_u32());
    }
    try {
      const Profile profile = profile_from_json(text, "p.json");
      ASSERT_FALSE(profile.stages.front().forward.lengths.empty());
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace teratron::testing

#include "plan/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/philox.h"

namespace teratron::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

Profile some_profile() {
  return {
      .key = {.processor = "A \"fine\" CPU",
              .dtype = "bf16",
              .recompute = "none",
              .threads = 2,
              .hidden_size = 768,
              .ffn_hidden_size = 3072,
              .attention_heads = 12,
              .layers = 6},
      .forward = {.lengths = {8, 16, 24}, .without_context = {0.1, 1.0 / 3, 0.7}, .context = {1e-3, -2e-9, 0, 1e-17}},
      .backward = {.lengths = {8, 16, 24}, .without_context = {0.2, 2.0 / 3, 1.4}, .context = {0, 1, 2, 3}},
      .forward_error = {.mean = 0.01, .worst = 0.03},
      .backward_error = {.mean = 0.011, .worst = 0.04}};
}

TEST(Profile, ReadsBackExactly) { EXPECT_EQ(profile_from_json(to_json(some_profile()), "p.json"), some_profile()); }

TEST(Profile, MeasuredForSomethingElseIsRefusedAndSaysWhatDiffers) {
  const Profile profile = some_profile();
  ProfileKey wanted = profile.key;
  EXPECT_NO_THROW(require_key(profile, wanted, "p.json"));
  wanted.dtype = "f32";
  wanted.hidden_size = 1024;
  EXPECT_THAT([&] { require_key(profile, wanted, "p.json"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("p.json"), HasSubstr("dtype bf16, here f32"),
                                             HasSubstr("hidden_size 768, here 1024"), HasSubstr("teratron profile"),
                                             Not(HasSubstr("layers")))));
}

TEST(Profile, EveryFieldOfItsKeyCounts) {
  const nlohmann::json json = nlohmann::json::parse(to_json(some_profile()));
  EXPECT_EQ(json.at("measured_for").size(), 10U);
  for (const auto& [name, value] : json.at("measured_for").items()) {
    nlohmann::json other = json;
    other["measured_for"][name] = value.is_string() ? nlohmann::json("other") : nlohmann::json(97);
    const Profile changed = profile_from_json(other.dump(), "p.json");
    EXPECT_THAT([&] { require_key(changed, some_profile().key, "p.json"); },
                ThrowsMessage<UserError>(HasSubstr(name + " ")));
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
  EXPECT_THAT(refusal([](auto& j) { j["format"] = "other"; }), names("format"));
  EXPECT_THAT(refusal([](auto& j) { j.erase("measured_for"); }), names("measured_for"));
  EXPECT_THAT(refusal([](auto& j) { j["measured_for"]["layers"] = -1; }), names("layers"));
  EXPECT_THAT(refusal([](auto& j) { j["forward"]["lengths"] = {8, 8, 16}; }), names("lengths"));
  EXPECT_THAT(refusal([](auto& j) { j["forward"]["lengths"] = {8, 16}; }), names("lengths"));
  EXPECT_THAT(refusal([](auto& j) { j["forward"]["lengths"] = {8, 16.5, 24}; }), names("lengths"));
  EXPECT_THAT(refusal([](auto& j) { j["forward"]["lengths"] = "8"; }), names("lengths"));
  EXPECT_THAT(refusal([](auto& j) { j["forward"]["milliseconds_without_context"][1] = 0; }), names("milliseconds"));
  EXPECT_THAT(refusal([](auto& j) { j["backward"]["context_coefficients"] = {1, 2, 3}; }), names("context"));
  EXPECT_THAT(refusal([](auto& j) { j["backward"]["lengths"] = {8, 16, 32}; }), names("different lengths"));
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
      ASSERT_FALSE(profile.forward.lengths.empty());
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace teratron::plan

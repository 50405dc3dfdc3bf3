// Measuring a pipeline: which slicings, what is made of them, and where it is kept.
#include "profile/pipeline_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "base/files/file.h"
#include "base/philox.h"
#include "base/temporary_folder.h"
#include "comm/launch.h"
#include "ops/failing_backend.h"
#include "profile/slicings.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ProfileSlicings, AddUpAndAreMultiplesAndHoldOutOthersThanTheyFit) {
  for (const auto& [tokens, unit] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {8, 1}, {9, 1}, {13, 1}, {32, 1}, {100, 1}, {129, 3}, {1024, 1}, {1024, 8}, {2048, 1}, {2046, 2}}) {
    int held_out = 0;
    for (const ProfileSlicing& slicing : profile_slicings(tokens, 2, unit)) {
      EXPECT_EQ(std::accumulate(slicing.lengths.begin(), slicing.lengths.end(), std::int64_t{0}), tokens);
      for (const std::int64_t length : slicing.lengths) EXPECT_TRUE(length > 0 && length % unit == 0) << length;
      held_out += slicing.held_out ? 1 : 0;
    }
    EXPECT_GE(held_out, 1) << tokens;
  }
  for (const ProfileSlicing& slicing : profile_slicings(1024, 2)) {
    for (const std::int64_t length : slicing.lengths) EXPECT_EQ(length % 16, 0);
  }
  EXPECT_THAT([] { profile_slicings(14, 2, 2); }, ThrowsMessage<UserError>(HasSubstr("16 tokens or more")));
}

TEST(ProfileSlicings, DeferWeightGradientsOfTheShortestSlicesToo) {
  for (const std::int64_t tokens : {8, 64, 100, 512, 1000, 4096}) {
    std::int64_t shortest = tokens, deferred = tokens;
    int count = 0;
    for (const ProfileSlicing& slicing : profile_slicings(tokens, 2)) {
      const std::int64_t longest = std::ranges::max(slicing.lengths);
      if (!slicing.held_out) shortest = std::min(shortest, longest);
      if (slicing.is_deferred) deferred = std::min(deferred, longest);
      count += slicing.is_deferred;
    }
    EXPECT_EQ(deferred, shortest) << tokens;
    EXPECT_EQ(count, 3) << tokens;
  }
}

// Costs of an invented stage: t(l, 0) has a floor, below which short slices cost the same.
double truth(std::int64_t length, std::int64_t context) {
  const auto l = static_cast<double>(length), c = static_cast<double>(context);
  const double alone = std::max(3.0, 0.05 * l) + 0.4 + 2e-5 * l * l / 2;
  return c == 0 ? alone : alone + 0.2 + 1e-4 * l + 3e-4 * c + 2e-5 * l * c;
}

TEST(ProfileSlicings, AreEnoughToFindWhatAMachineCosts) {
  RandomSequence random(RandomStream{.seed = 1});
  for (const double noise : {0.0, 0.02}) {
    std::vector<slicing::CostPoint> fit, held_out;
    for (const ProfileSlicing& slicing : profile_slicings(2048, 1)) {
      std::int64_t context = 0;
      for (const std::int64_t length : slicing.lengths) {
        const double off = slicing.held_out ? 0 : noise * (2 * random.uniform() - 1);
        (slicing.held_out ? held_out : fit).push_back({length, context, truth(length, context) * (1 + off)});
        context += length;
      }
    }
    EXPECT_LT(slicing::relative_error(slicing::fit_cost_model(fit), held_out).mean, noise == 0 ? 1e-6 : 0.01);
  }
}

class PipelineProfile : public ::testing::Test {
 protected:
  PipelineProfile() {
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    request_.model.num_layers = 3;
    request_.model.hidden_size = 32;
    request_.model.num_attention_heads = 2;
    request_.model.vocab_size = 50;
    request_.model.max_position_embeddings = 64;
    request_.sequences = 2;
    request_.tokens = 64;
    request_.cell_layers = {2, 1};
    request_.repeats = 1;
  }
  ~PipelineProfile() override { unsetenv("XDG_CACHE_HOME"); }

  // By every rank: all have the same.
  slicing::Profile profile_in(const std::filesystem::path& file, MeshShape shape = {.pipeline = 2}) {
    slicing::Profile first;
    std::vector<std::string> texts(static_cast<std::size_t>(shape.ranks()));
    steps_ = 0;
    int calls = 0, asked = 0;
    run_ranks({}, shape.ranks(), [&](Communicator& world) {
      const std::unique_ptr<Backend> backend = make_cpu_backend();
      const auto mesh = std::make_shared<Mesh>(make_mesh(world, shape));
      const auto count = [&](int done, int steps) {
        EXPECT_EQ(done, calls++);  // the first comes before a step
        steps_ = done;
        asked = steps;
        EXPECT_LE(done, steps);
      };
      const slicing::Profile profile =
          profile_for(request_, mesh, *backend, file, world.rank() == 0 ? count : ProfileProgress{});
      texts[static_cast<std::size_t>(world.rank())] = slicing::to_json(profile);
      if (world.rank() == 0) {
        key_ = profile_key(request_, *mesh, *backend);
        first = profile;
      }
    });
    for (const std::string& text : texts) EXPECT_EQ(text, texts.front());
    EXPECT_EQ(steps_, asked);  // of none, none
    return first;
  }

  const TemporaryFolder folder_;
  ProfileRequest request_;
  slicing::ProfileKey key_;  // of the last profile_in()
  int steps_ = 0;            // that it measured
};

TEST_F(PipelineProfile, HasTheCostsOfEveryStageAndTheKeyOfWhatWasMeasured) {
  request_.repeats = 2;  // so that each pass is measured twice, however slow the build
  const slicing::Profile profile = profile_in("");
  EXPECT_GT(steps_, 5);
  EXPECT_EQ(profile.key, key_);
  EXPECT_EQ(profile.key.cell_layers, "2,1");
  EXPECT_EQ(profile.key.threads, 1);
  ASSERT_EQ(profile.stages.size(), 2U);
  for (const slicing::StageCosts& stage : profile.stages) {
    EXPECT_EQ(stage.forward.lengths.front(), 8);
    EXPECT_EQ(stage.forward.lengths.back(), 64);
    for (const slicing::CostModel* pass : {&stage.forward, &stage.backward}) EXPECT_GT(pass->milliseconds(64, 0), 0);
    ASSERT_TRUE(stage.parts);
    // Each part is a fit or a difference of measured times, which may be 0; both cannot be.
    const pipeline::PassTimes times = stage.times(64, 0);
    EXPECT_GE(times.backward_weight, 0);
    EXPECT_GE(times.backward_input, 0);
    EXPECT_GT(times.backward_weight + times.backward_input, 0);
    EXPECT_GT(stage.forward_noise.worst, 0);
  }
  EXPECT_GT(profile.update, 0);
  EXPECT_GT(profile.transfer.of(64), 0);
  const auto is_whole = [](const ProfileSlicing& slicing) { return !slicing.is_deferred; };
  EXPECT_EQ(std::ssize(profile.iterations), std::ranges::count_if(profile_slicings(64, 2), is_whole));
  for (const slicing::MeasuredIteration& iteration : profile.iterations) EXPECT_GT(iteration.pipeline, 0);
}

TEST_F(PipelineProfile, MeasuresAllSlicingsOnceWhereThatAloneTakesLonger) {
  request_.repeats = 3;
  request_.most_seconds = 0;
  const slicing::Profile profile = profile_in("");
  EXPECT_EQ(steps_, 1 + std::ssize(profile_slicings(64, 2)));
  for (const slicing::MeasuredIteration& iteration : profile.iterations) EXPECT_GT(iteration.pipeline, 0);
}

TEST_F(PipelineProfile, IsMeasuredOnceAndThenFoundInTheCache) {
  const slicing::Profile first = profile_in("");
  EXPECT_TRUE(std::filesystem::exists(cached_profile(key_)));
  EXPECT_EQ(cached_profile(key_).parent_path(), folder_ / "teratron/profiles");
  EXPECT_EQ(profile_in(""), first);
  EXPECT_EQ(steps_, 0);
  // Another shape has another place; what is damaged is measured again.
  request_.cell_layers = {1, 2};
  profile_in("");
  EXPECT_GT(steps_, 0);
  write_file_atomically(cached_profile(key_), "{\"format\": ");
  profile_in("");
  EXPECT_GT(steps_, 0);
}

// Frozen weights have no gradients, and tiles need less memory.
TEST_F(PipelineProfile, OfAdaptersIsNotThatOfAllWeights) {
  const auto key = [&] {
    profile_in("");
    EXPECT_GT(steps_, 0);
    return key_;
  };
  std::vector<slicing::ProfileKey> keys = {key()};
  request_.model.adapters = {.rank = 4, .targets = AdapterConfig::kPacked | AdapterConfig::kUp};
  keys.push_back(key());
  request_.weight_tiles = DType::kQ8Tile;
  keys.push_back(key());
  request_.model.adapters = {};
  request_.weight_tiles.reset();
  request_.model.untied_output = true;
  keys.push_back(key());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(slicing::text_of(keys[i]), slicing::text_of(keys[k]));
  }
}

// Slices of an odd length of a width that tensor-parallel ranks do not divide.
TEST_F(PipelineProfile, RanksNeedNotDivideASlice) {
  request_.model.hidden_size = 18;
  request_.model.num_attention_heads = 4;
  request_.model.head_dim = 8;
  request_.sequences = 1;
  EXPECT_EQ(profile_in("", {.tensor = 4, .pipeline = 2}).stages.size(), 2U);
}

TEST_F(PipelineProfile, WithoutACacheItIsMeasuredEachTime) {
  write_file_atomically(folder_ / "a file", "");
  setenv("XDG_CACHE_HOME", (folder_ / "a file").c_str(), 1);
  const char* const home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  for (const bool has_home : {true, false}) {
    if (!has_home) unsetenv("XDG_CACHE_HOME"), unsetenv("HOME");
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(profile_in("").stages.size(), 2U);
    EXPECT_GT(steps_, 0);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr("warning: the measured profile is not kept"),
                      HasSubstr(has_home ? "a file at its place" : "neither HOME nor XDG_CACHE_HOME")));
  }
  if (home != nullptr) setenv("HOME", before.c_str(), 1);
}

TEST_F(PipelineProfile, InAFileOfTheUserIsWrittenThereOrMustFit) {
  const std::filesystem::path file = folder_ / "new" / "p.json";
  const slicing::Profile first = profile_in(file);
  EXPECT_EQ(slicing::profile_from_json(read_file(file), file), first);
  EXPECT_EQ(profile_in(file), first);
  EXPECT_EQ(steps_, 0);
  request_.recompute = Recompute::kFull;
  EXPECT_THAT([&] { profile_in(file); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("p.json"), HasSubstr("recompute none, here full"))));
  write_file_atomically(file, "[]");
  EXPECT_THAT([&] { profile_in(file); }, ThrowsMessage<UserError>(HasSubstr("p.json")));
}

TEST_F(PipelineProfile, IsTheSameOnAllRanksOfStagesAndCopies) {
  request_.sequence_parallel = true;
  request_.sequences = 1;
  request_.tokens = 32;  // eight ranks that wait for one another take long where there are fewer cores
  request_.shard_optimizer = true;
  const slicing::Profile profile = profile_in("", {.tensor = 2, .pipeline = 2, .data = 2});
  EXPECT_EQ(profile.stages.size(), 2U);
  EXPECT_EQ(profile.key.data_parallel, 2);
  for (const slicing::MeasuredIteration& iteration : profile.iterations) {
    for (const std::int64_t length : iteration.slices) EXPECT_EQ(length % 2, 0);
  }
}

class TunedBackend final : public FailingBackend {
  std::string settings() const override { return "tf32"; }
};

TEST_F(PipelineProfile, IsKeptByTheSettingsOfItsBackEnd) {
  run_ranks({}, 1, [&](Communicator& world) {
    const Mesh mesh = make_mesh(world, {});
    const slicing::ProfileKey plain = profile_key(request_, mesh, FailingBackend());
    const slicing::ProfileKey tuned = profile_key(request_, mesh, TunedBackend());
    EXPECT_EQ(plain.settings, "");
    EXPECT_EQ(tuned.settings, "tf32");
    EXPECT_NE(cached_profile(plain), cached_profile(tuned));
  });
}

TEST_F(PipelineProfile, HasNoTransfersForOneStage) {
  request_.cell_layers = {3};
  const slicing::Profile profile = profile_in("", {});
  EXPECT_EQ(profile.stages.size(), 1U);
  EXPECT_EQ(profile.transfer, slicing::LinearTime{});
  EXPECT_FALSE(profile.stages.front().parts);  // nothing to defer
}

TEST_F(PipelineProfile, RefusesSequencesTooShortToSlice) {
  request_.tokens = 7;
  EXPECT_THAT([&] { profile_in(""); }, ThrowsMessage<UserError>(HasSubstr("8 tokens or more")));
}

}  // namespace
}  // namespace teratron::testing

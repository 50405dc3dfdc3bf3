// The training configuration as a whole: its list of fields, its file and its command line say the same thing.
#include "train/config/config.h"

#include <gtest/gtest.h>

#include <map>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "model/presets.h"
#include "options/output.h"
#include "options/reading.h"
#include "train/random_config.h"

namespace teratron::testing {
namespace {

using Values = std::map<std::string, std::string>;

bool is_saved(const Field& field) { return field.role != FieldRole::kConfigFile; }

Values values_of(TrainConfig config) {
  Values values;
  for (const Field& field : fields_of(config)) {
    if (is_saved(field)) values[field.name] = field.value_text();
  }
  return values;
}

// Whatever the values are: faults of the values are another matter.
TrainConfig read_unchecked(const std::vector<std::string>& arguments, FaultLines* faults = nullptr) {
  TrainConfig config;
  FieldList fields = fields_of(config);
  const FaultLines found = read_fields(fields, arguments);
  if (faults != nullptr) *faults = found;
  return config;
}

TEST(TrainConfig, ReadsBackFromAFileToTheSameValues) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "config.toml";
  RandomSequence random(RandomStream{.seed = 1});
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::string> arguments;
    TrainConfig lists;
    for (const Field& field : fields_of(lists)) {
      if (is_saved(field)) arguments.push_back("--" + field.name + "=" + random_value(field, random));
    }
    FaultLines faults;
    const TrainConfig config = read_unchecked(arguments, &faults);
    ASSERT_EQ(faults, FaultLines{});
    write_file_atomically(file, to_toml(config));
    const TrainConfig again = read_unchecked({"--config", file.string()}, &faults);
    ASSERT_EQ(faults, FaultLines{}) << to_toml(config);
    ASSERT_EQ(values_of(again), values_of(config)) << to_toml(config);
    ASSERT_EQ(to_toml(again), to_toml(config));
  }
}

TEST(TrainConfig, EveryFlagReachesTheSavedConfigurationAndNoOther) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "config.toml";
  RandomSequence random(RandomStream{.seed = 2});
  TrainConfig defaults;
  for (const Field& field : fields_of(defaults)) {
    const Choice* choice = std::get_if<Choice>(&field.target);
    const bool has_one_value = choice != nullptr && choice->names.size() == 1;
    if (!is_saved(field) || field.name == "model" || has_one_value) continue;
    std::string value = random_value(field, random);
    while (value == field.value_text()) value = random_value(field, random);
    write_file_atomically(file, to_toml(read_unchecked({"--" + field.name + "=" + value})));
    Values expected = values_of(TrainConfig{});
    expected[field.name] = value;
    // A family brings what its models have.
    if (field.name == "model-type") expected = values_of(read_unchecked({"--model-type", value}));
    EXPECT_EQ(values_of(read_unchecked({"--config", file.string()})), expected) << field.name;
  }
}

TEST(TrainConfig, TheCommandLineOverridesTheFileAndTheFileTheDefaults) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.toml";
  write_file_atomically(file, "lr = 1e-3\nseq_length = 64\n");
  // The place of --config among the flags does not matter.
  for (const auto& arguments : {std::vector<std::string>{"--lr", "0.5", "--config", file.string()},
                                std::vector<std::string>{"--config", file.string(), "--lr", "0.5"}}) {
    const TrainConfig config = read_unchecked(arguments);
    EXPECT_EQ(config.optimizer.learning_rate.peak, 0.5);
    EXPECT_EQ(config.model.seq_length, 64);
    EXPECT_EQ(config.batch.micro_batch_size, TrainConfig{}.batch.micro_batch_size);
  }
}

TEST(TrainConfig, APresetIsOverriddenByExplicitShapesInAnyOrder) {
  for (const auto& arguments : {std::vector<std::string>{"--model", "355M", "--num-layers", "2"},
                                std::vector<std::string>{"--num-layers", "2", "--model", "355M"}}) {
    const TrainConfig config = read_unchecked(arguments);
    EXPECT_EQ(config.model.config.num_layers, 2);
    EXPECT_EQ(config.model.config.hidden_size, 1024);
    EXPECT_EQ(config.model.config.num_attention_heads, 16);
  }
}

TEST(TrainConfig, TheConfigurationSaysWhatKindOfModelItIs) {
  FaultLines faults;
  EXPECT_EQ(read_unchecked({"--data-path", "corpus", "--model-type", "gpt2"}, &faults).model.config.kind,
            ModelKind::kGpt2);
  EXPECT_EQ(faults, FaultLines{});
  EXPECT_NE(to_toml(TrainConfig{}).find("model_type = \"gpt2\"\n"), std::string::npos);
  read_unchecked({"--data-path", "corpus", "--model-type", "gpt5"}, &faults);
  EXPECT_EQ(faults,
            FaultLines{"--model-type is 'gpt5'; there are: gpt2, bert, llama, mistral, qwen2, qwen3, gpt_neox"});
}

TEST(TrainConfig, APresetOnTheCommandLineOverridesTheShapesOfTheFile) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.toml";
  write_file_atomically(file, "num_layers = 3\nmodel = \"tiny\"\n");
  EXPECT_EQ(read_unchecked({"--config", file.string()}).model.config.num_layers, 3);
  EXPECT_EQ(read_unchecked({"--config", file.string(), "--model", "774M"}).model.config.num_layers, 36);
  EXPECT_EQ(read_unchecked({"--config", file.string(), "--model", "tiny"}).model.config.num_layers, 3) << "the file's";
  EXPECT_EQ(read_unchecked({"--config", file.string(), "--model-type", "llama"}).model.config.num_layers, 3);
}

TEST(TrainConfig, AFileWithoutAPresetRefinesThatOfTheCommandLine) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.toml", base = folder.path() / "base.toml";
  write_file_atomically(file, "num_layers = 3\nrotary_base = 7e5\nhidden_dropout = 0.1\n");
  write_file_atomically(base, "model = \"tiny\"\nhidden_size = 96\n");
  const ModelConfig model = read_unchecked({"--config", file.string(), "--model-type", "llama"}).model.config;
  EXPECT_EQ(model.num_layers, 3);
  EXPECT_EQ(model.rotary.base, 7e5);
  EXPECT_EQ(model.hidden_dropout, 0.1);
  EXPECT_EQ(model.attention_dropout, 0);
  EXPECT_EQ(read_unchecked({"--config", file.string(), "--model", "774M"}).model.config.num_layers, 3);
  // The line's preset replaces what belongs to that of a file; a file after it still refines.
  const ModelConfig other =
      read_unchecked({"--config", base.string(), "--config", file.string(), "--model", "774M"}).model.config;
  EXPECT_EQ(other.hidden_size, 1280);
  EXPECT_EQ(other.num_layers, 3);
}

TEST(TrainConfig, NothingOfAnEarlierPresetStays) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.toml";
  write_file_atomically(file, "model = \"qwen3-0.6b\"\n");
  const TrainConfig alone = read_unchecked({"--model", "124M"});
  EXPECT_EQ(to_toml(read_unchecked({"--config", file.string(), "--model", "124M", "--config="})), to_toml(alone));
  EXPECT_EQ(read_unchecked({"--model", "llama-15m", "--model-type", "gpt2"}).model.config.hidden_dropout,
            alone.model.config.hidden_dropout);
}

TEST(TrainConfig, AnEmptyNameOfAPresetIsAFault) {
  for (const char* const flag : {"--model", "--model-type"}) {
    FaultLines faults;
    read_unchecked({"--data-path", "corpus", flag, ""}, &faults);
    EXPECT_EQ(faults.size(), 1U) << flag;
  }
}

// As configs/gpt2-tiny.toml does, which names a preset and leaves dropout out.
TEST(TrainConfig, WhatElseAFileSetsStaysBesideAnotherPreset) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.toml", later = folder.path() / "b.toml";
  write_file_atomically(file, "model = \"tiny\"\nhidden_dropout = 0.0\nlayernorm_epsilon = 1e-6\n");
  write_file_atomically(later, "model = \"355M\"\n");
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--model", "124M"}, {"--config", later}}) {
    std::vector<std::string> arguments = {"--config", file.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ModelConfig model = read_unchecked(arguments).model.config;
    EXPECT_EQ(model.num_layers, more[0] == "--model" ? 12 : 24);
    EXPECT_EQ(model.hidden_dropout, 0);
    EXPECT_EQ(model.attention_dropout, 0.1);
    EXPECT_EQ(model.layernorm_epsilon, 1e-6);
  }
}

// As the record of a run that is resumed.
TEST(TrainConfig, APresetThatStandsAlreadyLeavesWhatRefinedIt) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.toml";
  write_file_atomically(file, "model = \"tinyllama-1.1b\"\n");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--config", file.string()},
                                                    {"--model", "tinyllama-1.1b"},
                                                    {"--model-type", "llama"}}) {
    TrainConfig config;
    FieldList fields = fields_of(config);
    FaultLines lines;
    const std::string record = "model = \"tinyllama-1.1b\"\nhidden_dropout = 0.1\nnum_layers = 3\n";
    apply_settings(fields, read_config(fields, record, "record", lines), lines);
    read_fields(fields, arguments);
    EXPECT_EQ(config.model.config.hidden_dropout, 0.1) << arguments[0];
    EXPECT_EQ(config.model.config.num_layers, 3) << arguments[0];
  }
}

TEST(TrainConfig, TheKindOfAPresetLeavesItAsItIs) {
  const ModelConfig preset = read_unchecked({"--model", "llama-3.2-1b"}).model.config;
  ASSERT_NE(preset.rotary.scaling, RotaryConfig::Scaling::kNone);
  EXPECT_EQ(read_unchecked({"--model", "llama-3.2-1b", "--model-type", "llama"}).model.config.rotary, preset.rotary);
}

TEST(TrainConfig, TheDefaultsAreThoseOfThePresetTheyName) {
  const TrainConfig config;
  const ModelPreset& preset = find_model_preset(config.model.preset);
  EXPECT_EQ(config.model.config.num_layers, preset.num_layers);
  EXPECT_EQ(config.model.config.hidden_size, preset.hidden_size);
  EXPECT_EQ(config.model.config.num_attention_heads, preset.num_attention_heads);
}

TEST(TrainConfig, ARampIsWrittenAsThreeWordsAsOneOrAsAnArray) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "a.toml").string();
  write_file_atomically(file, "rampup_batch_size = [16, 8, 300]\n");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--rampup-batch-size", "16", "8", "300", "--seed", "3"},
                                             {"--rampup-batch-size", "16 8 300"},
                                             {"--rampup-batch-size=16 8 300"},
                                             {"--config", file}}) {
    FaultLines faults;
    std::vector<std::string> all = {"--data-path", "corpus"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const TrainConfig config = read_unchecked(all, &faults);
    EXPECT_EQ(faults, FaultLines{});
    EXPECT_EQ(config.batch.rampup_batch_size, (std::vector<std::int64_t>{16, 8, 300}));
  }
}

TEST(TrainConfig, ZerosThatFollowFromOtherValuesAreFilledIn) {
  TrainConfig config;
  config.train_iters = 700;
  config.model.seq_length = 48;
  config.batch.micro_batch_size = 6;
  EXPECT_EQ(config.schedule().decay, 700);
  EXPECT_EQ(config.model.model_for(321).vocab_size, 321);
  EXPECT_EQ(config.model.model_for(321).max_position_embeddings, 48);
  EXPECT_EQ(config.largest_batch(), 6);
  config.optimizer.learning_rate.decay = 500;
  config.model.config.vocab_size = 400;
  config.model.config.max_position_embeddings = 64;
  config.batch.global_batch_size = 18;
  EXPECT_EQ(config.schedule().decay, 500);
  EXPECT_EQ(config.model.model_for(321).vocab_size, 400);
  EXPECT_EQ(config.model.model_for(321).max_position_embeddings, 64);
  EXPECT_EQ(config.largest_batch(), 18);
}

TEST(TrainConfig, HelpAndTheStartUpTableNameEveryFieldButHiddenOnes) {
  TrainConfig config;
  const FieldList fields = fields_of(config);
  const std::string help = help_text(fields), table = value_table(fields);
  for (const Field& field : fields) {
    const bool hidden = field.role == FieldRole::kHiddenFlag;
    EXPECT_EQ(help.find("--" + field.name) != std::string::npos, !hidden) << field.name;
    if (!field.value_text().empty()) {
      EXPECT_EQ(table.find(field.name) != std::string::npos, !hidden) << field.name;
    }
    EXPECT_FALSE(field.help.empty()) << field.name;
  }
}

}  // namespace
}  // namespace teratron::testing

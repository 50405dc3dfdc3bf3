// Saving and loading: every bit comes back, into any padding; what does not fit is refused in one message.
#include "checkpoint/native/checkpoint.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/version.h"
#include "checkpoint/damage.h"
#include "checkpoint/random_model.h"
#include "checkpoint/safetensors/safetensors.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

fs::path save(const fs::path& root, const RandomModel& model, const TrainingState& state,
              const SaveOptions& options = {}) {
  return save_checkpoint(root, model.config, model.parameters, *model.backend, state, options);
}

TrainingState load(const fs::path& path, RandomModel& model, const LoadOptions& options = {}) {
  return load_checkpoint(path, model.config, model.parameters, *model.backend, options);
}

bool all_zero(const std::map<std::string, std::string>& bytes) {
  for (const auto& [name, content] : bytes) {
    if (content.find_first_not_of('\0') != std::string::npos) return false;
  }
  return true;
}

TEST(Checkpoint, LoadingGivesBackEveryBitOfWeightsMomentsAndState) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const TemporaryFolder folder;
    RandomModel saved(small_config(), dtype), loaded(small_config(), dtype);
    saved.fill(1);
    loaded.fill(2);
    const fs::path path = save(folder / "run", saved, some_state(100));
    EXPECT_EQ(path, folder / "run" / "iter_0000100");
    EXPECT_THAT(bytes_of_file(folder / "run" / "latest_checkpointed_iteration.txt"), ::testing::StartsWith("100\n"));

    EXPECT_EQ(load(folder / "run", loaded), some_state(100));
    EXPECT_EQ(loaded.bytes(), saved.bytes());
    EXPECT_TRUE(all_zero(loaded.padding())) << "padding rows are zero, whatever was saved in them";
  }
}

TEST(Checkpoint, TensorsLieInTheFilesByGlobalNameWithoutPadding) {
  const TemporaryFolder folder;
  RandomModel model(small_config());
  model.fill(1);
  const fs::path path = save(folder.path(), model, some_state(1));
  const SafetensorsFile weights(path / "model.safetensors"), optimizer(path / "optimizer.safetensors");
  EXPECT_EQ(weights.tensors().size(), model.parameters.size());
  EXPECT_EQ(optimizer.tensors().size(), 2 * model.parameters.size());
  EXPECT_THAT(weights.find("embedding.tokens.weight")->shape, ElementsAre(29, 12));
  EXPECT_THAT(weights.find("layers.1.mlp.up.weight")->shape, ElementsAre(48, 12));
  EXPECT_NE(optimizer.find("layers.1.mlp.up.weight.moment2"), nullptr);
  const auto expected = model.bytes();
  for (const SafetensorsEntry& entry : weights.tensors()) {
    const auto bytes = weights.bytes(entry);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), expected.at(entry.name));
  }
}

TEST(Checkpoint, AnotherPaddingOfTheVocabularyLoadsTheSameRows) {
  const TemporaryFolder folder;
  ModelConfig wide = small_config();
  wide.make_vocab_size_divisible_by = 64;
  RandomModel saved(small_config()), loaded(wide);
  saved.fill(1);
  loaded.fill(2);
  save(folder.path(), saved, some_state(1));
  load(folder.path(), loaded);
  EXPECT_EQ(loaded.bytes(), saved.bytes());
  EXPECT_TRUE(all_zero(loaded.padding()));
}

TEST(Checkpoint, SingleAndDoublePrecisionLoadEachOther) {
  const TemporaryFolder folder;
  RandomModel single(small_config(), DType::kF32), twice(small_config(), DType::kF64),
      back(small_config(), DType::kF32);
  for (Parameter* parameter : single.parameters) {
    for (const TensorRef& view :
         {parameter->value, parameter->state.slot("moment1"), parameter->state.slot("moment2")}) {
      single.backend->fill_normal(view, {.seed = 5}, 0, 0.1);
    }
  }
  save(folder / "single", single, some_state(1));
  load(folder / "single", twice);
  save(folder / "double", twice, some_state(1));
  load(folder / "double", back);
  EXPECT_EQ(back.bytes(), single.bytes());
}

TEST(Checkpoint, AnotherModelIsRefusedWithEveryDifferenceAtOnce) {
  const TemporaryFolder folder;
  RandomModel saved(small_config());
  save(folder.path(), saved, some_state(1));
  ModelConfig other = small_config();
  other.num_layers = 3;
  other.hidden_size = 24;
  other.activation = Activation::kGeluErf;
  other.hidden_dropout = 0.5;
  RandomModel loaded(other);
  EXPECT_THAT(
      message_of<UserError>([&] { load(folder.path(), loaded); }),
      AllOf(HasSubstr("num_layers is 2 there, 3 was asked for"), HasSubstr("hidden_size is 12 there, 24 was"),
            HasSubstr("activation is \"gelu_tanh\" there, \"gelu_erf\""), ::testing::Not(HasSubstr("dropout"))));
}

TEST(Checkpoint, MissingAndUnknownTensorsAreListed) {
  const TemporaryFolder folder;
  const RandomModel model(small_config());
  const std::span<Parameter*const> all = model.parameters, fewer = all.subspan(2);
  save_checkpoint(folder / "few", small_config(), fewer, *model.backend, some_state(1));
  save_checkpoint(folder / "all", small_config(), all, *model.backend, some_state(1));
  EXPECT_THAT(
      message_of<UserError>([&] { load_checkpoint(folder / "few", small_config(), all, *model.backend); }),
      AllOf(HasSubstr("'embedding.tokens.weight' is missing"), HasSubstr("'embedding.positions.weight' is missing")));
  ModelConfig one_layer = small_config();
  one_layer.num_layers = 1;
  const RandomModel smaller(one_layer);
  save_checkpoint(folder / "more", one_layer, all, *model.backend, some_state(1));
  EXPECT_THAT(
      message_of<UserError>([&] { load_checkpoint(folder / "more", one_layer, smaller.parameters, *smaller.backend); }),
      AllOf(HasSubstr("'layers.1."), HasSubstr("' is not part of the model")));
  EXPECT_NO_THROW(load_checkpoint(folder / "all", small_config(), fewer, *model.backend)) << "some may be loaded";
}

TEST(Checkpoint, TheLastOneSavedIsCurrentAndAnyOtherCanBeNamed) {
  const TemporaryFolder folder;
  RandomModel model(small_config());
  for (const std::int64_t iteration : {20, 3, 12345678}) save(folder.path(), model, some_state(iteration));
  EXPECT_EQ(load(folder.path(), model).iteration, 12345678);
  EXPECT_EQ(load(folder / "iter_0000003", model).iteration, 3);
  EXPECT_EQ(load(folder / "iter_0000020/", model).iteration, 20);
  const CheckpointInfo info = read_checkpoint_info(folder / "iter_0000020");
  EXPECT_THAT(info.iterations, ElementsAre(3, 20, 12345678));
}

TEST(Checkpoint, SavingAnIterationAgainReplacesIt) {
  const TemporaryFolder folder;
  RandomModel model(small_config()), loaded(small_config());
  put_file(folder / "unrelated.txt", "stays");
  for (const std::uint64_t seed : {1, 2}) {
    model.fill(seed);
    save(folder.path(), model, some_state(5));
  }
  load(folder.path(), loaded);
  EXPECT_EQ(loaded.bytes(), model.bytes());
  EXPECT_EQ(all_files(folder.path()).size(), 5U) << "three files of the checkpoint, the tracker, and the other";
}

TEST(Checkpoint, NoCheckpointIsAnErrorThatSaysWhatIsThere) {
  const TemporaryFolder folder;
  RandomModel model(small_config());
  const auto message = [&](const fs::path& path) { return message_of<UserError>([&] { load(path, model); }); };
  EXPECT_THAT(message(folder / "absent"), HasSubstr("does not exist"));
  EXPECT_THAT(message(folder.path()), HasSubstr("there is no checkpoint in"));
  put_file(folder / "config.json", "{}");
  EXPECT_THAT(message(folder.path()), HasSubstr("teratron convert --from hf"));
  EXPECT_THAT(message(folder / "config.json"), HasSubstr("is a file"));

  save(folder.path(), model, some_state(7));
  fs::remove(folder / "latest_checkpointed_iteration.txt");
  EXPECT_THAT(message(folder.path()), HasSubstr((folder / "iter_0000007").string()));
  save(folder.path(), model, some_state(8));
  fs::rename(folder / "iter_0000008", folder / "elsewhere");
  EXPECT_THAT(message(folder.path()), AllOf(HasSubstr("names iteration 8"), HasSubstr("there are: 7")));
}

TEST(Checkpoint, WeightsAloneCanBeLoadedButNotResumedFrom) {
  const TemporaryFolder folder;
  RandomModel model(small_config()), loaded(small_config());
  model.fill(1);
  save(folder.path(), model, some_state(7), {.optimizer = false});
  EXPECT_THAT(message_of<UserError>([&] { load(folder.path(), loaded); }), HasSubstr("training cannot resume"));
  loaded.fill(2);
  const auto moments = loaded.bytes();
  load(folder.path(), loaded, {.optimizer = false});
  EXPECT_EQ(loaded.bytes().at("final_norm.weight"), model.bytes().at("final_norm.weight"));
  EXPECT_EQ(loaded.bytes().at("final_norm.weight.moment1"), moments.at("final_norm.weight.moment1"));
  EXPECT_FALSE(read_checkpoint_info(folder.path()).has_optimizer);
}

TEST(Checkpoint, TheTokenizerIsCopiedBesideTheWeights) {
  const TemporaryFolder folder;
  const RandomModel model(small_config());
  make_folders(folder / "tokenizer");
  for (const char* name : {"vocab.json", "merges.txt", "model.safetensors", "notes.txt"}) {
    put_file(folder / "tokenizer" / name, name);
  }
  const fs::path path = save(folder / "run", model, some_state(7), {.tokenizer = folder / "tokenizer"});
  EXPECT_EQ(bytes_of_file(path / "vocab.json"), "vocab.json");
  EXPECT_EQ(bytes_of_file(path / "merges.txt"), "merges.txt");
  EXPECT_FALSE(fs::exists(path / "notes.txt"));
  EXPECT_THAT(
      message_of<UserError>([&] { save(folder / "run", model, some_state(8), {.tokenizer = folder / "none"}); }),
      HasSubstr("there is no tokenizer in"));
  EXPECT_FALSE(fs::exists(folder / "run" / "iter_0000008"));
}

TEST(Checkpoint, OnlyTheLastFewAreKeptIfAsked) {
  const TemporaryFolder folder;
  const RandomModel model(small_config());
  for (const std::int64_t iteration : {900, 10, 20, 30}) save(folder.path(), model, some_state(iteration));
  save(folder.path(), model, some_state(40), {.keep_last = 2});
  EXPECT_THAT(read_checkpoint_info(folder.path()).iterations, ElementsAre(30, 40, 900))
      << "900 belongs to another run's future";
  EXPECT_TRUE(verify_checkpoint(folder / "iter_0000030").intact());
}

// As a folder and as the one file that a tokenizer may be.
TEST(Checkpoint, TheOneWhoseTokenizerTheRunReadsIsKept) {
  for (const char* file : {"", "tokenizer.json"}) {
    const TemporaryFolder folder;
    const RandomModel model(small_config());
    put_file(folder / "tokenizer.json", "{}");
    const fs::path first = save(folder / "run", model, some_state(10), {.tokenizer = folder / "tokenizer.json"});
    const SaveOptions options = {.tokenizer = first / file, .keep_last = 1};
    for (const std::int64_t iteration : {20, 30}) save(folder / "run", model, some_state(iteration), options);
    EXPECT_THAT(read_checkpoint_info(folder / "run").iterations, ElementsAre(10, 30)) << file;
    EXPECT_EQ(bytes_of_file(folder / "run" / "iter_0000030" / "tokenizer.json"), "{}");
  }
}

TEST(Checkpoint, InfoTellsWhatIsInIt) {
  const TemporaryFolder folder;
  const RandomModel model(small_config());
  save(folder.path(), model, some_state(40));
  const CheckpointInfo info = read_checkpoint_info(folder.path());
  EXPECT_EQ(info.folder, folder / "iter_0000040");
  EXPECT_EQ(info.written_by, "teratron 0.1.0");
  EXPECT_EQ(info.state, some_state(40));
  EXPECT_EQ(info.model.hidden_size, 12);
  EXPECT_EQ(info.model.hidden_dropout, small_config().hidden_dropout);
  EXPECT_TRUE(info.has_optimizer);
  ASSERT_EQ(info.files.size(), 2U);
  EXPECT_EQ(info.files[0].name, "model.safetensors");
  EXPECT_EQ(info.files[0].values, small_config().parameters());
  EXPECT_EQ(info.files[0].bytes, fs::file_size(info.folder / "model.safetensors"));
  EXPECT_EQ(info.files[1].values, 2 * small_config().parameters());

  const CheckpointVerification report = verify_checkpoint(folder.path());
  EXPECT_TRUE(report.intact());
  EXPECT_EQ(report.files, 2);
  EXPECT_EQ(report.tensors, 3 * static_cast<std::int64_t>(model.parameters.size()));
}

// checkpoint.json with a piece of it replaced, and a checksum that fits.
void change_manifest(const fs::path& manifest, std::string_view from, std::string_view to) {
  std::string text = bytes_of_file(manifest);
  text.replace(text.find(from), from.size(), to);
  const std::size_t line = text.find('\n') + 1;
  text.replace(text.find(": \"") + 3, 16, checksum_of(std::string_view(text).substr(line)));
  put_file(manifest, text);
}

TEST(Checkpoint, AFormatOfTheFutureIsNamedAsSuch) {
  const TemporaryFolder folder;
  RandomModel model(small_config());
  const fs::path manifest = save(folder.path(), model, some_state(1)) / "checkpoint.json";
  change_manifest(manifest, "\"format_version\": 1", "\"format_version\": 2");
  EXPECT_THAT(message_of<UserError>([&] { load(folder.path(), model); }), HasSubstr("in format 2"));
}

TEST(Checkpoint, AKindOfModelThatIsNotKnownIsNamedAsSuch) {
  const TemporaryFolder folder;
  RandomModel model(small_config());
  const fs::path manifest = save(folder.path(), model, some_state(1)) / "checkpoint.json";
  change_manifest(manifest, "\"model_type\": \"gpt2\"", "\"model_type\": \"gpt9\"");
  EXPECT_THAT(message_of<UserError>([&] { load(folder.path(), model); }),
              AllOf(HasSubstr("model_type"), HasSubstr("a kind of model: gpt2")));
}

}  // namespace
}  // namespace teratron::testing

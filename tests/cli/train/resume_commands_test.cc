// Resuming and starting from a model: the flags that `teratron train` needs, its messages, and that a start that
// is refused changes no file.

#include <algorithm>
#include <map>

#include "base/lines.h"
#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class ResumeCommands : public TrainingCommands<1000> {
 protected:
  // Run with all settings given.
  Words all_given(const std::string& save, const std::string& iterations, const Words& more = {}) const {
    return training_.command(
        with({"--num-layers", "1", "--hidden-size", "16", "--seq-length", "8", "--save", path(save), "--train-iters",
              iterations, "--global-batch-size", "6", "--seed", "17", "--lr-decay-iters", "100", "--clip-grad", "0.7"},
             more));
  }
  // Every file below a folder, with its time of change and its content.
  static std::map<std::string, std::pair<fs::file_time_type, std::string>> files_of(const fs::path& folder) {
    std::map<std::string, std::pair<fs::file_time_type, std::string>> files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files[entry.path()] = {entry.last_write_time(), read_file(entry.path())};
    }
    return files;
  }
  // Lines before the first update or checkpoint, but for those of a machine that takes seconds for what others do at
  // once.
  static std::ptrdiff_t lines_at_start(const std::string& errors) {
    const std::vector<std::string> lines = lines_of(errors);
    const auto is_first = [](const std::string& line) {
      return line.starts_with("iteration ") || line.starts_with("saved ");
    };
    return std::count_if(lines.begin(), std::ranges::find_if(lines, is_first),
                         [](const std::string& line) { return !line.starts_with("measuring how fast"); });
  }
};

TEST_F(ResumeCommands, LoadAndTrainItersSufficeAndGiveTheBitsOfTheUninterruptedRun) {
  must(all_given("whole", "6", {"--tp", "2", "--weight-decay", "0.3"}));
  must(all_given("run", "3", {"--tp", "2", "--weight-decay", "0.3"}));
  fs::remove_all(path("tokenizer"));  // the checkpoint has it
  const Outcome resumed = must({"train", "--load", path("run"), "--train-iters", "6"});
  EXPECT_THAT(resumed.errors, AllOf(HasSubstr("differs from the checkpoint: train-iters 3 -> 6\n"),
                                    HasSubstr("resuming after iteration 3 of 6; --train-iters was 3: the learning rate "
                                              "goes on from"),
                                    HasSubstr("2 ranks (tensor 2"), HasSubstr("saves to '" + path("run") + "'")));
  EXPECT_EQ(read_file(path("run/iter_0000006/model.safetensors")),
            read_file(path("whole/iter_0000006/model.safetensors")));
  EXPECT_TRUE(fs::exists(path("run/iter_0000006/vocab.json")));
  // A run that was cut short is finished without a flag.
  must({"train", "--load", path("run"), "--iteration", "3"});
  EXPECT_EQ(read_file(path("run/iter_0000006/model.safetensors")),
            read_file(path("whole/iter_0000006/model.safetensors")));
}

TEST_F(ResumeCommands, ARunOfRelativePathsGoesOnFromAnotherWorkingDirectory) {
  const auto in = [&](const std::string& folder, const std::string& arguments) {
    fs::create_directories(path(folder));
    const Outcome outcome =
        ChildProgram({"sh", "-c", "cd " + path(folder) + "; " + TERATRON_BINARY + " train " + arguments}).wait();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome;
  };
  const std::string first =
      "--num-layers 1 --hidden-size 16 --num-attention-heads 4 --seq-length 8 --train-iters 2 --tokenizer tokenizer "
      "--data-path data --save run";
  in(".", first);
  // Neither the place nor how the same place is written makes another data set.
  for (const std::string more : {"", " --data-path ../data"}) {
    const Outcome resumed = in("elsewhere", "--load ../run --save '' --train-iters 3" + more);
    EXPECT_THAT(resumed.errors, AllOf(HasSubstr("train-iters 2 -> 3\n"), HasSubstr("iteration 3/3")));
  }
  EXPECT_THAT(in(".", "--load run --train-iters 3 --data-path data").errors, Not(HasSubstr("data-path ")));
  EXPECT_THAT(in("elsewhere", "--config ../run/config.toml --train-iters 4 --save again").errors,
              HasSubstr("saved again"));
}

// config.toml says what run it is, not how this part of it was started.
TEST_F(ResumeCommands, TheSettingsOfAResumedRunStartANewOneLikeIt) {
  must(all_given("run", "2"));
  must({"train", "--load", path("run"), "--iteration", "2", "--train-iters", "4", "--override-data",
        "--override-opt-param-scheduler", "--json", path("result.json"), "--trace", path("trace.json")});
  fs::remove(path("result.json"));
  for (const char* file : {"run/config.toml", "run/iter_0000004/config.toml"}) {
    const std::string saved = read_file(path(file));
    for (const char* key : {"load =", "iteration =", "override_", "json =", "trace =", "model ="}) {
      EXPECT_THAT(saved, Not(HasSubstr("\n" + std::string(key)))) << file;
    }
    const std::string folder = path("like-it-" + std::to_string(saved.size()));
    const Outcome like_it = must({"train", "--config", path(file), "--save", folder});
    EXPECT_THAT(like_it.errors, AllOf(HasSubstr("starts from random weights"), HasSubstr("iteration 4/4")));
    EXPECT_EQ(TinyTraining::losses(folder).size(), 4U);
    EXPECT_FALSE(fs::exists(path("result.json"))) << "nor does it replace the other run's results";
  }
  EXPECT_THAT(must({"train", "--load", path("run"), "--config", path("run/config.toml"), "--train-iters", "5"}).errors,
              HasSubstr("resuming after iteration 4"));
}

// The weights that a run began with are part of what it is.
TEST_F(ResumeCommands, ARunFromAModelSaysSoWhenItIsResumedToo) {
  must(all_given("model", "1"));
  must({"train", "--finetune", path("model"), "--data-path", path("data"), "--seq-length", "8", "--train-iters", "2",
        "--save", path("run")});
  must({"train", "--load", path("run"), "--train-iters", "3"});
  EXPECT_THAT(must({"train", "--config", path("run/config.toml"), "--save", path("again")}).errors,
              HasSubstr("starts from the weights in '" + path("model")));
}

// A path is bytes, and TOML is UTF-8.
TEST_F(ResumeCommands, PathsOfAnyBytesAreGoneOnFrom) {
  const std::string odd = path("caf\xE9 100%\"\n\xFF");
  fs::create_directories(odd);
  for (const char* file : {"data.bin", "data.idx", "data.teratron.json"}) fs::copy(path(file), odd + "/" + file);
  fs::copy(path("tokenizer"), odd + "/tokenizer");
  must(all_given("whole", "4"));
  const auto odd_run = [&](const std::string& iterations) {
    return with(all_given("x", iterations),
                {"--data-path", odd + "/data", "--tokenizer", odd + "/tokenizer", "--save", odd + "/run",
                 "--tensorboard-dir", odd + "/curves", "--json", odd + "/r.json"});
  };
  must(odd_run("2"));
  must({"train", "--load", odd + "/run", "--train-iters", "4"});
  EXPECT_EQ(read_file(odd + "/run/iter_0000004/model.safetensors"),
            read_file(path("whole/iter_0000004/model.safetensors")));
  must({"train", "--config", odd + "/run/config.toml", "--save", odd + "/again", "--tensorboard-dir", ""});
}

TEST_F(ResumeCommands, ACheckpointDoesNotChooseWhereElseIsWrittenTo) {
  const std::string curves = path("curves");
  must(all_given("run", "1", {"--tensorboard-dir", curves}));
  must({"train", "--load", path("run"), "--train-iters", "2"});
  EXPECT_EQ(std::distance(fs::directory_iterator(curves), {}), 2) << "where the run has its records";
  fs::remove_all(curves);
  EXPECT_THAT(must({"train", "--load", path("run"), "--train-iters", "3"}).errors,
              HasSubstr("nothing is written to the checkpoint's --tensorboard-dir '" + curves));
  EXPECT_FALSE(fs::exists(curves));
  must({"train", "--load", path("run"), "--train-iters", "4", "--tensorboard-dir", curves});
  EXPECT_TRUE(fs::exists(curves));
}

TEST_F(ResumeCommands, TheCorpusNamesItsTokenizer) {
  const Words train = {"train", "--data-path",           path("data"), "--num-layers", "1", "--hidden-size",
                       "16",    "--num-attention-heads", "4",          "--seq-length", "8", "--train-iters",
                       "1"};
  must(train);
  fs::remove_all(path("tokenizer"));
  EXPECT_THAT(refused(train), HasSubstr("was made with '" + path("tokenizer") + "'"));
}

// <(...), /dev/stdin and - come once.
TEST_F(ResumeCommands, SettingsComeThroughPipesToo) {
  const Words words = all_given("run", "1", {"--json", "-"});
  std::string line = "set -eu; printf 'adam_beta2 = 0.5\\n' |";
  for (const std::string& word : with({TERATRON_BINARY}, words)) line += " '" + word + "'";
  for (const char* file : {"-", "/dev/stdin"}) {
    fs::remove_all(path("run"));
    const Outcome outcome = ChildProgram({"bash", "-c", line + " --config " + file}).wait();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr("adam-beta2 0.5")) << file;
  }
}

TEST_F(ResumeCommands, FlagsOverrideTheCheckpointAndWhatDiffersIsListed) {
  must(all_given("run", "2", {"--tp", "2", "--sequence-parallel"}));
  const Outcome resumed = must({"train", "--load", path("run"), "--train-iters", "4", "--clip-grad", "0.5", "--dp", "2",
                                "--global-batch-size", "8", "--json", "-"});
  for (const char* difference :
       {"clip-grad 0.7 -> 0.5", "train-iters 2 -> 4", "global-batch-size 6 -> 8", "tensor-model-parallel-size 2 -> 1",
        "data-parallel-size 1 -> 2", "sequence-parallel true -> false"}) {
    EXPECT_THAT(resumed.errors, HasSubstr(difference));
  }
  EXPECT_THAT(resumed.errors, Not(HasSubstr("weight-decay")));
  EXPECT_EQ(Json::parse(resumed.output).at("consumed_samples"), 2 * 6 + 2 * 8);
}

TEST_F(ResumeCommands, TheStartIsShorterThanAScreenAndVerboseShowsAllSettings) {
  const Words layout = {"--pp", "1", "--tp", "2", "--dp", "2", "--lr-warmup-iters", "1", "--split", "9,1"};
  const Outcome first = must(all_given("run", "2", layout));
  EXPECT_LE(lines_at_start(first.errors), 16) << first.errors;
  EXPECT_THAT(first.errors, AllOf(HasSubstr("1 layer, hidden 16, 4 heads"), HasSubstr("training samples of 8 tokens"),
                                  HasSubstr("6 samples an update, 2 at a time"), HasSubstr("4 ranks (tensor 2"),
                                  HasSubstr("memory of a rank"), HasSubstr("not the defaults: lr 0.003"),
                                  HasSubstr("clip-grad 0.7"), Not(HasSubstr("adam-beta2"))));
  const Outcome resumed = must({"train", "--load", path("run"), "--train-iters", "3", "--verbose"});
  EXPECT_GT(lines_at_start(resumed.errors), 61);
  EXPECT_THAT(resumed.errors, AllOf(HasSubstr("adam-beta2"), HasSubstr("log-interval")));
  const Words pipeline = {"--num-layers", "2", "--pp", "2", "--token-slices", "uniform:2", "--global-batch-size", "4"};
  EXPECT_LE(lines_at_start(must(all_given("pipeline", "1", pipeline)).errors), 24);
}

TEST_F(ResumeCommands, ARefusedOrFinishedResumeChangesNoFile) {
  must(all_given("run", "4", {"--save-interval", "2"}));
  const auto before = files_of(path("run"));
  const std::string run = path("run"), trace = path("trace.json");
  const Words load = {"train", "--load", run, "--train-iters", "8", "--trace", trace};
  succeed({"data", "tokenize", "--tokenizer", path("tokenizer"), "--out", path("other"), path("tokenizer/merges.txt")});
  for (const Words& wrong :
       {Words{"--seed", "3"}, Words{"--lr", "1"}, Words{"--hidden-size", "32"}, Words{"--split", "5,1"},
        Words{"--split-order", "file"}, Words{"--seq-length", "4"}, Words{"--iteration", "3"},
        Words{"--data-path", path("other")}, Words{"--tokenizer", path("nowhere")}, Words{"--tp", "3"}}) {
    refused(with(load, wrong));
    EXPECT_EQ(files_of(run), before) << wrong[0];
    EXPECT_FALSE(fs::exists(trace)) << wrong[0];
  }
  for (const Words& finished : {Words{}, Words{"--iteration", "2", "--train-iters", "2"}}) {
    const Outcome outcome = must(with({"train", "--load", run, "--json", "-"}, finished));
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("nothing to do: '" + run + "' has done "), Not(HasSubstr("resuming"))));
    EXPECT_TRUE(Json::parse(outcome.output).at("final_loss").is_null());
    EXPECT_EQ(files_of(run), before);
  }
}

TEST_F(ResumeCommands, ADamagedModelToStartFromLeavesNoFolder) {
  must(all_given("run", "1"));
  must({"convert", "--from", "teratron", "--to", "hf", path("run"), path("hf")});
  const std::string weights = read_file(path("hf/model.safetensors"));
  write_file_atomically(path("hf/model.safetensors"), weights.substr(0, weights.size() / 2));
  const Words tune = {"train", "--finetune", path("hf"), "--data-path", path("data"), "--train-iters", "1", "--save"};
  EXPECT_THAT(refused(with(tune, {path("new")})),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("copy or download it again")));
  EXPECT_FALSE(fs::exists(path("new")));
  fs::create_directories(path("old"));
  refused(with(tune, {path("old")}));
  EXPECT_TRUE(fs::is_empty(path("old")));
}

TEST_F(ResumeCommands, TheAdviceAfterDamageIsOneToFollow) {
  must(all_given("run", "6", {"--save-interval", "2"}));
  must(all_given("whole", "6"));
  const std::string weights = path("run/iter_0000006/model.safetensors");
  std::string bytes = read_file(weights);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(weights, bytes);
  const std::string errors = refused({"train", "--load", path("run"), "--train-iters", "8"});
  const std::string advice = "train --load " + path("run") + " --iteration 4";
  ASSERT_THAT(errors, HasSubstr(advice + " goes on from there"));
  ASSERT_THAT(errors, HasSubstr("--load " + path("run/iter_0000004") + " reads it"));
  EXPECT_THAT(succeed({"generate", "--load", path("run/iter_0000004"), "--prompt", "a", "--max-new-tokens", "1"}),
              Not(IsEmpty()));
  const Outcome resumed = must({"train", "--load", path("run"), "--iteration", "4"});
  EXPECT_THAT(resumed.errors, HasSubstr("1 later checkpoint set aside in '" + path("run/set_aside") + "'"));
  EXPECT_EQ(read_file(weights), read_file(path("whole/iter_0000006/model.safetensors")));
  EXPECT_EQ(read_file(path("run/set_aside/iter_0000006/model.safetensors")), bytes);
  EXPECT_EQ(TinyTraining::losses(path("run")), TinyTraining::losses(path("whole")));
  // So is a folder of one checkpoint, whether or not --save is repeated.
  must({"train", "--load", path("run/iter_0000002"), "--save", path("run")});
  EXPECT_EQ(read_file(weights), read_file(path("whole/iter_0000006/model.safetensors")));
}

TEST_F(ResumeCommands, AnOlderCheckpointSaysWhichFlagsItNeeds) {
  const fs::path golden = fs::path(TERATRON_SOURCE_DIR) / "tests/golden/checkpoint_0_1";
  fs::copy(golden / "run", path("run"), fs::copy_options::recursive);
  EXPECT_THAT(refused({"train", "--load", path("run")}),
              AllOf(HasSubstr("does not record its settings"), HasSubstr("--data-path"), HasSubstr("--train-iters"),
                    HasSubstr("--seed")));
  const Words needed = words_of(
      "--seq-length 8 --micro-batch-size 2 --global-batch-size 4 --train-iters 6 --lr-decay-iters 6 --lr 1e-2 --seed 7 "
      "--split 5,1");
  const Outcome resumed =
      must(with({"train", "--load", path("run"), "--data-path", (golden / "corpus").string()}, needed));
  EXPECT_THAT(resumed.errors, AllOf(HasSubstr("does not record its settings; those that are not given are defaults"),
                                    HasSubstr("resuming after iteration 3 of 6"), HasSubstr("saves nothing")));
}

TEST_F(ResumeCommands, FinetuneTakesShapeAndTokenizerFromACheckpointOrAHuggingFaceFolder) {
  must(all_given("source", "2"));
  succeed({"convert", "--from", "teratron", "--to", "hf", path("source"), path("hf")});
  std::string weights;
  for (const std::string from : {"source", "hf", "source/iter_0000002"}) {
    const std::string save = path("tuned-" + fs::path(from).filename().string());
    const Outcome tuned = must({"train", "--finetune", path(from), "--data-path", path("data"), "--train-iters", "3",
                                "--save", save, "--json", "-"});
    EXPECT_THAT(tuned.errors, AllOf(HasSubstr("1 layer, hidden 16, 4 heads, 8 positions, vocabulary 280"),
                                    HasSubstr("starts from the weights in '" + path(from) + "'")));
    EXPECT_EQ(Json::parse(tuned.output).at("consumed_samples"), 3 * 4);
    EXPECT_EQ(read_file(fs::path(save) / "iter_0000003/vocab.json"), read_file(path("tokenizer/vocab.json")));
    const std::string written = read_file(fs::path(save) / "iter_0000003/model.safetensors");
    EXPECT_TRUE(weights.empty() || written == weights) << from;
    weights = written;
  }
  EXPECT_THAT(refused({"train", "--load", path("hf"), "--data-path", path("data"), "--train-iters", "3"}),
              HasSubstr("train --finetune " + path("hf")));
}

TEST_F(ResumeCommands, AJobThatIsStartedAgainGoesOnAndDoesNotFinetuneAnew) {
  must(all_given("source", "2"));
  must({"train", "--finetune", path("source"), "--data-path", path("data"), "--train-iters", "6", "--save",
        path("whole"), "--lr-decay-iters", "6"});
  const auto job = [&](const std::string& iterations) {
    return must({"train", "--finetune", path("source"), "--data-path", path("data"), "--train-iters", iterations,
                 "--load", path("run"), "--save", path("run"), "--lr-decay-iters", "6"})
        .errors;
  };
  EXPECT_THAT(job("3"), HasSubstr("starts from the weights in"));
  EXPECT_THAT(job("6"), AllOf(HasSubstr("resuming after iteration 3 of 6"), Not(HasSubstr("starts from the weights"))));
  EXPECT_EQ(read_file(path("run/iter_0000006/model.safetensors")),
            read_file(path("whole/iter_0000006/model.safetensors")));
  EXPECT_THAT(refused({"train", "--finetune", path("source"), "--data-path", path("data"), "--train-iters", "3",
                       "--save", path("run")}),
              HasSubstr("already holds a run; go on with it by --load"));
}

}  // namespace
}  // namespace teratron::testing

// scripts/gpu_run, which tests and measures on a machine with a GPU, with packs of a few lines: what it says where
// something is missing, and that it tells whether tests passed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/child_program.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class GpuRun : public ::testing::Test {
 protected:
  GpuRun() {
    std::filesystem::create_directories(folder_ / "pack/bin");
    std::filesystem::copy_file(TERATRON_SOURCE_DIR "/scripts/gpu_run", folder_ / "run");
    for (const std::string name : {"ops_gpu_test", "training_gpu_test"}) {
      write_program("pack/bin/" + name,
                    "list='Every/Operations.\n  Agree/cuda_f32_add\n  Agree/cuda_bf16_add\n  "
                    "Agree/cuda_timed_f32_add\n  Agree/cuda_bf16_residual_add\n"
                    "Every/Repeating.\n  Same/cuda_f32_add\nSuite.\n  Test\n  Other\n'\n"
                    "[[ $1 != --gtest_list_tests ]] || { printf \"$list\"; exit; }\n"
                    "echo \"${0##*/} ${2#--gtest_filter=}\" >>$OUT/filters; echo '[  PASSED  ] 3 tests.'");
    }
    write_program("pack/bin/bench_train_step", "exit 0");
  }

  void write_program(const std::string& name, const std::string& lines) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, "#!/usr/bin/env bash\n" + lines + "\n");
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  // A program that the machine has: what the script finds before others of that name.
  void install(const std::string& name, const std::string& lines) { write_program("tools/" + name, lines); }

  Outcome run(const std::string& what, const std::string& version, const std::vector<std::string>& command = {}) {
    write_file_atomically(folder_ / "version", version);
    const std::string folder = folder_.path().string();
    Outcome packed = ChildProgram({"tar", "-C", folder + "/pack", "-czf", folder + "/pack.tar.gz", "."}).wait();
    EXPECT_EQ(packed.exit_code, 0) << packed.errors;
    const std::string path = folder + "/tools:" + std::getenv("PATH");
    std::vector<std::string> words = {
        "env", "PATH=" + path, "TMPDIR=" + folder, "OUT=" + folder + "/out", folder + "/run", what};
    words.insert(words.end(), command.begin(), command.end());
    return ChildProgram(words).wait();
  }

  // Filters of tests that a program's processes were given.
  std::vector<std::string> filters_of(const std::string& program) const {
    std::vector<std::string> filters;
    std::istringstream lines(read_file(folder_ / "out/filters"));
    for (std::string name, all; lines >> name >> all;) {
      std::istringstream words(name == program ? all : "");
      for (std::string filter; std::getline(words, filter, ':');) filters.push_back(filter);
    }
    return filters;
  }

  const TemporaryFolder folder_;
};

constexpr std::string_view kNoGpu =
    "error: this machine shows no NVIDIA GPU (nvidia-smi fails); run it on one that has a driver and a card\n";

TEST_F(GpuRun, SaysInOneLineThatThereIsNoGpu) {
  for (const std::string what : {"check", "bench", "deep"}) {
    install("nvidia-smi", "echo 'NVIDIA-SMI has failed'; echo more >&2; exit 9");
    const Outcome outcome = run(what, "abc\n");
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_EQ(outcome.output + outcome.errors, kNoGpu);
  }
}

TEST_F(GpuRun, SaysWhichLibrariesAreMissing) {
  install("nvidia-smi", "echo 'NVIDIA H100, 9.0'");
  install("find", "");  // which looks through the whole machine
  install("ldd", "printf '\\tlibcublasLt.so.13 => not found\\n\\tlibc.so.6 => /lib/libc.so.6 (0x1)\\n'");
  const Outcome outcome = run("check", "abc\n");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, HasSubstr("nowhere below /usr, /opt, /root and /home: libcublasLt.so.13; install"));
}

TEST_F(GpuRun, SaysThatAPackIsMissing) {
  const Outcome outcome = ChildProgram({folder_ / "run", "check"}, {"OUT=" + (folder_ / "out").string()}).wait();
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("scripts/gpu_pack makes one"));
}

TEST_F(GpuRun, RunsEachOperationOnceWithEveryTypeAndSaysThatAllPassed) {
  install("nvidia-smi", "echo 'NVIDIA H100, 9.0'");
  install("ldd", "");
  install("find", "");
  const Outcome outcome = run("check", "abc\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("all passed"));
  for (const std::string name : {"training-step", "ops_gpu_test-1", "training_gpu_test-1", "hidden-6144"}) {
    EXPECT_THAT(outcome.output, HasSubstr("passed  " + name + " "));
  }
  EXPECT_THAT(filters_of("ops_gpu_test"),
              UnorderedElementsAre("*/cuda_f32_add", "*/cuda_bf16_add", "*/cuda_timed_f32_add",
                                   "*/cuda_bf16_residual_add", "Suite.*"));
}

TEST_F(GpuRun, ExchangesBetweenCardsWhereThereAreSeveral) {
  install("nvidia-smi", "printf 'NVIDIA H100, 9.0\\nNVIDIA H100, 9.0\\nNVIDIA H100, 9.0\\n'");
  install("ldd", "");
  install("find", "");
  write_program("pack/bin/comm_gpu_program", "echo \"$* $RANK/$WORLD_SIZE\" >>$OUT/ranks; (( RANK != 1 ))");
  const Outcome outcome = run("check", "abc\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("1 failed: nccl-3-cards")) << "as one of its ranks";
  const std::string ranks = read_file(folder_ / "out/ranks");
  for (const std::string rank : {"0", "1", "2"}) EXPECT_THAT(ranks, HasSubstr("channels 3 " + rank + "/3\n"));
}

TEST_F(GpuRun, RehearsesWithOneType) {
  const Outcome outcome = run("check", "abc\nemulated\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(filters_of("ops_gpu_test"),
              UnorderedElementsAre("*/cuda_bf16_add", "*/cuda_bf16_residual_add", "Suite.*"));
}

TEST_F(GpuRun, FailsWhereATestDoesAndShowsWhatItSaid) {
  write_program("pack/bin/training_gpu_test",
                "[[ $1 != --gtest_list_tests ]] && { echo 'Failure: four'; exit 1; }\n"
                "printf 'Suite.\\n  Test\\n'");
  const Outcome outcome = run("check", "abc\nemulated\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("1 failed: training-Suite"));
  EXPECT_THAT(outcome.output, HasSubstr("Failure: four"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/failed.tar.gz"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("all passed")));
}

TEST_F(GpuRun, RunsTheGroupsOfAProcessThatFailsAlone) {
  write_program("pack/bin/ops_gpu_test",
                "[[ $1 != --gtest_list_tests ]] || { printf 'One.\n  Test\nTwo.\n  Test\nThree.\n  Test\n'; exit; }\n"
                "[[ $2 == *One* && $2 == *Three* ]] && exit 139; [[ $2 != *Two* ]]");
  const Outcome outcome = run("check", "abc\nemulated\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("passed  One "));
  EXPECT_THAT(outcome.output, HasSubstr("FAILED  Two "));
  EXPECT_THAT(outcome.output, HasSubstr("passed  Three "));
}

TEST_F(GpuRun, RunsAnyCommandWithThePacksPrograms) {
  write_program("pack/bin/teratron", "echo \"teratron $*\"; exit 7");
  const Outcome outcome = run("with", "abc\nemulated\n", {"bash", "-c", "teratron one; $TERATRON two"});
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.output, "teratron one\nteratron two\n");
  const Outcome without = run("with", "abc\nemulated\n");
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_EQ(without.errors, "error: .gpu/run with: which command?\n");
}

TEST_F(GpuRun, LooksIntoKernelsOfAnEmulatedGpuWithoutTools) {
  write_program("pack/bin/bench_gpu_ops", "echo \"models: ${@:2}\"");
  for (const std::string tool : {"compute-sanitizer", "ncu"}) install(tool, "echo started >>$OUT/tools");
  const Outcome outcome = run("deep", "abc\nemulated\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("models: tiny\n"));
  EXPECT_THAT(outcome.output, HasSubstr("passed  unwatched-cached_attention "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/tools"));
}

}  // namespace
}  // namespace teratron::testing

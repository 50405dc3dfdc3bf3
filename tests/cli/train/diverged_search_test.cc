// `finetune --search` where training diverges at some of its points, or at all.

#include "cli/binary.h"
#include "tasks/synthetic_tasks.h"

namespace teratron::testing {
namespace {

TEST(DivergedSearch, LeavesOutItsPointsAndFailsWhereNoneIsLeft) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  std::filesystem::create_directories(path("words"));
  put_file(path("words/vocab.txt"), task_vocabulary());
  put_file(path("train.jsonl"), task_file(TaskKind::kMnli, 24, 3));
  put_file(path("valid.jsonl"), task_file(TaskKind::kMnli, 12, 4));
  const Words model = {"--model", "bert-tiny", "--num-layers", "1", "--hidden-size", "8", "--num-attention-heads", "2"};
  const Words files = {"--train-data", path("train.jsonl"), "--valid-data", path("valid.jsonl"),
                       "--tokenizer",  path("words"),       "--json",       path("report.json")};
  const Words points = {"--seq-length", "24", "--epochs", "2", "--seeds", "1", "--search", "--search-batch-sizes", "8"};
  const auto search = [&](const char* run, const Words& rates) {
    const Words words = with(with({"finetune", "--task", "mnli", "--save", path(run)}, model), with(files, points));
    return run_teratron(with(with(words, {"--search-lrs"}), rates));
  };
  const Outcome some = search("some", {"1e30", "1e-3"});
  ASSERT_EQ(some.exit_code, 0) << some.errors;
  EXPECT_THAT(some.errors, AllOf(HasSubstr("diverged"), HasSubstr("search: point 2 of 2")));
  EXPECT_EQ(Json::parse(read_file(path("report.json"))).at("chosen").at("lr"), 1e-3);
  const Outcome none = search("none", {"1e30", "1e29"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.errors, AllOf(HasSubstr("training diverged at every point of --search"), HasSubstr("--search-lrs")));
}

}  // namespace
}  // namespace teratron::testing

// Chats from lines of JSON to answers: data chat, train --sft, eval loss and generate --chat.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class ChatCommands : public TrainingCommands<300> {
 protected:
  ChatCommands() {
    std::string lines;
    for (int i = 0; i < 8; ++i) {
      lines += R"({"messages": [{"role": "user", "content": "ranks"}, {"role": "assistant", "content": "sums"},)"
               R"( {"role": "user", "content": "layer"}, {"role": "assistant", "content": "waits"}]})"
               "\n";
    }
    write_file_atomically(path("chats.jsonl"), lines);
    write_file_atomically(path("tokenizer/chat_template.jinja"),
                          "{% for m in messages %}{% if m.role == 'assistant' %}={% generation %}{{ m.content }}"
                          "<|endoftext|>{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
                          "{% if add_generation_prompt %}={% endif %}");
  }
  Words chat(const Words& more) const {
    return with({"data", "chat", path("chats.jsonl"), "--tokenizer", path("tokenizer")}, more);
  }
  Outcome talk(const std::string& lines, const std::string& more = "") const {
    return ChildProgram({"bash", "-c",
                         fmt::format("printf '{}' | {} generate --load {} --chat --temperature 0 {}", lines,
                                     TERATRON_BINARY, path("run"), more)})
        .wait();
  }
  Outcome train(const std::string& run, const Words& more) const {
    const Words words = {"--data-path", path("chats"), "--sft",        "--split", "1",
                         "--save",      path(run),     "--seq-length", "40"};
    return run_teratron(training_.command(with(words, more)));
  }
};

TEST_F(ChatCommands, AModelAnswersAsItWasTaught) {
  EXPECT_THAT(succeed(chat({"--out", path("chats")})), AllOf(HasSubstr("8 conversations"), HasSubstr("to learn")));
  const Words learning = {"--train-iters", "300", "--lr", "0.02", "--hidden-dropout", "0", "--attention-dropout", "0"};
  const Outcome trained = train("run", learning);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_EQ(talk("ranks\\n\\nlayer\\n").output, "sums\nwaits\n");
  EXPECT_EQ(talk("ranks\\nlayer", "--tp 2").output, "sums\nwaits\n");
  const Words loss = {"eval", "loss", "--load", path("run"), "--data-path", path("chats"), "--split", "1"};
  EXPECT_THAT(succeed(with(loss, {"--part", "training"})),
              AllOf(HasSubstr("tokens to be learned"), HasSubstr("8 conversations in")));
  for (const auto& [more, says] : {std::pair{Words{"--part", "test"}, "there is no part 'test'"},
                                   {{"--part", "training", "--baselines"}, "chats, which are scored each by itself"},
                                   {{"--seed", "3"}, "--seed and --seq-length are of a BERT's samples"}}) {
    EXPECT_THAT(refused(with(loss, more)), HasSubstr(says));
  }
}

// The second answer is the first one again, whatever was asked, so it shows whether the model still reads the first.
TEST_F(ChatCommands, ALineThatIsTooLongIsNotSaidAndTheConversationGoesOn) {
  std::string lines;
  for (int i = 0; i < 8; ++i) {
    const auto& [question, answer] = i % 2 == 0 ? std::pair{"ranks", "sums"} : std::pair{"layer", "waits"};
    const auto turn = [](const char* role, const char* text) { return Json{{"role", role}, {"content", text}}; };
    lines += Json{{"messages",
                   {turn("user", question), turn("assistant", answer), turn("user", "a"), turn("assistant", answer)}}}
                 .dump() +
             "\n";
  }
  write_file_atomically(path("chats.jsonl"), lines);
  succeed(chat({"--out", path("chats")}));
  const Outcome trained =
      train("run", {"--train-iters", "300", "--lr", "0.02", "--hidden-dropout", "0", "--attention-dropout", "0"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  std::string too_long;
  for (int i = 0; i < 50; ++i) too_long += "layer ranks ";
  for (const auto& [question, answer] : {std::pair{"ranks", "sums\n"}, {"layer", "waits\n"}}) {
    const Outcome outcome = talk(std::string(question) + "\\n" + too_long + "\\na\\n");
    EXPECT_EQ(outcome.output, std::string(answer) + answer);
    EXPECT_THAT(outcome.errors, HasSubstr("this was not said: alone it has more than the "));
  }
  const Outcome many = talk("ranks\\nranks\\nranks\\nranks\\nranks\\nranks\\nranks\\nranks\\nranks\\n");
  EXPECT_EQ(many.exit_code, 0) << "the oldest exchanges go";
  EXPECT_THAT(many.errors, Not(HasSubstr("not said")));
}

TEST_F(ChatCommands, SamplesAreShownWithTheWordsToLearn) {
  const std::string sample = "\nranks=[[sums<|endoftext|>]]layer=[[waits<|endoftext|>]]\n";
  EXPECT_THAT(succeed(chat({"--show", "1"})), HasSubstr(sample));
  EXPECT_THAT(succeed(chat({"--show", "1", "--color", "always"})),
              HasSubstr("\nranks=\x1b[32msums<|endoftext|>\x1b[0mlayer=\x1b[32mwaits<|endoftext|>\x1b[0m\n"));
  const Outcome piped = must(chat({"--show", "3", "--json", "-"}));
  EXPECT_THAT(piped.errors, HasSubstr(sample)) << "beside the JSON";
  for (int time = 0; time < 2; ++time) succeed(chat({"--show", "3", "--json", path("samples")}));
  EXPECT_EQ(read_file(path("samples")), piped.output);
  const std::vector<Json> lines = json_lines(path("samples"));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[2].at("ids").size(), lines[2].at("learned").size());
  write_file_atomically(path("chats.jsonl"), "{\"text\": \"\\u001b[2Ja\"}\n");
  EXPECT_THAT(succeed(chat({"--show", "9"})), HasSubstr("[[\\x1b[2Ja<|endoftext|>]]"));
  std::string many;
  for (int i = 0; i < 5000; ++i) many += fmt::format("{{\"text\": \"sample {}\"}}\n", i);
  write_file_atomically(path("chats.jsonl"), many + "broken\n");
  const Outcome outcome = run_teratron(chat({"--show", "9999"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("sample 0")) << "documents are shown as they are read";
}

TEST_F(ChatCommands, LossesAreTheSameOnRanksAndInSlices) {
  succeed(chat({"--out", path("chats")}));
  const Words batch = {"--train-iters", "4", "--global-batch-size", "2"};
  ASSERT_EQ(train("alone", batch).exit_code, 0);
  const auto expected = TinyTraining::losses(path("alone"));
  for (const Words& layout : {Words{"--dp", "2", "--micro-batch-size", "1"}, Words{"--tp", "2", "--sequence-parallel"},
                              Words{"--pp", "2", "--token-slices", "15,25"}}) {
    const Outcome outcome = train("layout", with(batch, layout));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    SCOPED_TRACE(layout[0]);
    expect_near_losses(TinyTraining::losses(path("layout")), expected);
    std::filesystem::remove_all(path("layout"));
  }
}

TEST_F(ChatCommands, FaultsAreReported) {
  succeed(chat({"--out", path("chats")}));
  EXPECT_THAT(train("run", {"--train-iters", "1", "--reset-position-ids"}).errors,
              HasSubstr("--sft packs chats and keeps them apart"));
  EXPECT_THAT(refused(training_.command({"--data-path", path("chats"), "--train-iters", "1"})), HasSubstr("--sft"));
  EXPECT_THAT(refused(training_.command({"--sft", "--train-iters", "1"})), HasSubstr("data chat"));
  EXPECT_THAT(refused(chat({})), HasSubstr("--show N"));
  EXPECT_THAT(refused({"generate", "--load", path("run"), "--chat", "--prompt", "a"}), HasSubstr("--chat reads"));
}

}  // namespace
}  // namespace teratron::testing

#include "torture/scenarios.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/compressed.h"
#include "base/files/file.h"
#include "base/philox.h"
#include "tasks/synthetic_tasks.h"

namespace teratron::torture {
namespace {

namespace fs = std::filesystem;
using testing::with;

void require(const Words& words) {
  const testing::Outcome outcome = testing::run_teratron(words);
  if (outcome.exit_code != 0) throw std::runtime_error(fmt::format("{}\n{}", fmt::join(words, " "), outcome.errors));
}

std::string sentence(RandomSequence& random) {
  std::string text = testing::task_words(random, 4, 12) + ".";
  text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

// Documents of which some are nearly the same, some have a URL of another one, and some something to mend.
std::string documents(int count, RandomSequence& random) {
  std::string lines, text;
  for (int i = 0; i < count; ++i) {
    if (i % 5 != 4)
      text = i % 9 == 0 ? "Die Leute reden \u00c3\u00bcber das Wetter und den Wald." : "People talk &amp; walk.";
    for (std::uint64_t left = i % 5 != 4 ? 3 + random.below(6) : 0; left > 0; --left) text += " " + sentence(random);
    lines += nlohmann::json{{"text", text}, {"url", fmt::format("http://a.org/{}", random.below(300))}}.dump() + "\n";
  }
  return lines;
}

// Statistics without what no two runs have in common.
std::string without_costs(const std::string& content) {
  nlohmann::json json = nlohmann::json::parse(content.substr(1), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return content;
  json.erase("seconds");
  json.erase("peak_memory_bytes");
  return "=" + json.dump();
}

std::string pages(int count, RandomSequence& random) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    std::string html = fmt::format("<html><head><title>Page {}</title></head><body><nav>Menu</nav><article>", i);
    for (int paragraph = 0; paragraph < 4; ++paragraph)
      html += "<p>" + sentence(random) + " " + sentence(random) + "</p>";
    lines += nlohmann::json{{"html", html + "</article></body></html>"}}.dump() + "\n";
  }
  return lines;
}

}  // namespace

Workplace::Workplace(const fs::path& folder) : inputs_(folder / "inputs"), results_(folder / "results") {
  fs::create_directories(inputs_);
  fs::create_directories(results_);
  make_texts();
  make_models();
}

void Workplace::make_texts() const {
  RandomSequence random({.seed = 41});
  write_file_atomically(in("a.jsonl"), documents(120, random));
  write_file_atomically(in("b.jsonl.gz"), testing::gzip(documents(120, random)));
  write_file_atomically(in("evaluation.jsonl"), documents(5, random));
  write_file_atomically(in("pages.jsonl"), pages(40, random));
  fs::create_directory(in("words"));
  write_file_atomically(in("words/vocab.txt"), testing::task_vocabulary());
  for (const TaskKind task : all_tasks()) {
    write_file_atomically(in("train-" + testing::task_file_name(task)), testing::task_file(task, 12, 3));
    write_file_atomically(in("valid-" + testing::task_file_name(task)), testing::task_file(task, 6, 4));
  }
  require({"tokenizer", "train", "--vocab-size", "280", "--out", in("bpe"), in("a.jsonl")});
  require({"data", "tokenize", "--tokenizer", in("bpe"), "--out", in("tokens"), in("a.jsonl")});
  require({"data", "tokenize", "--tokenizer", in("bpe"), "--out", in("more"), in("b.jsonl.gz")});
  require(
      {"data", "tokenize", "--split-sentences", "--tokenizer", in("words"), "--out", in("sentences"), in("a.jsonl")});
}

namespace {

const Words kShape = {"--num-layers", "2", "--hidden-size", "16", "--num-attention-heads", "2"};
const Words kBatches = {"--seq-length",   "16",    "--micro-batch-size", "2", "--global-batch-size", "4",
                        "--lr",           "0.003", "--threads",          "2", "--eval-iters",        "1",
                        "--log-interval", "1",     "--peak-tflops",      "1", "--train-iters",       "5"};
const Words kSmall = with(kShape, kBatches);

}  // namespace

void Workplace::make_models() const {
  require(with(with({"train", "--data-path", in("tokens"), "--tokenizer", in("bpe")}, kSmall),
               {"--train-iters", "1", "--save", in("gpt2")}));
  require({"convert", "--from", "teratron", "--to", "hf", in("gpt2"), in("hf")});
  require(
      with(with({"train", "--finetune", in("gpt2"), "--data-path", in("tokens"), "--tokenizer", in("bpe")}, kBatches),
           {"--lora-rank", "2", "--train-iters", "1", "--save", in("adapters")}));
  require({"convert", "--from", "teratron", "--to", "peft", in("adapters"), in("peft")});
}

std::vector<Scenario> Workplace::trainings() const {
  const Words gpt2 = with({"train", "--data-path", in("tokens"), "--tokenizer", in("bpe")}, kSmall);
  const Words llama =
      with(with({"train", "--model-type", "llama", "--data-path", in("tokens"), "--tokenizer", in("bpe")}, kSmall),
           {"--num-query-groups", "1"});
  const Words bert =
      with({"train", "--model-type", "bert", "--data-path", in("sentences"), "--tokenizer", in("words")}, kSmall);
  const Words each = {"--save-interval", "1"}, every_second = {"--save-interval", "2"};
  struct Training {
    const char* name;
    Words model, more;
    int processes = 1;
  };
  const std::vector<Training> all = {
      {"gpt2", gpt2, with(each, {"--keep-last", "2"})},
      {"gpt2-tp2", gpt2, with(each, {"--tp", "2", "--sequence-parallel"})},
      {"gpt2-pp2-slices", gpt2, with(each, {"--pp", "2", "--token-slices", "uniform:2", "--keep-last", "1"})},
      {"gpt2-dp2-sharded-bf16", gpt2, with(every_second, {"--dp", "2", "--use-distributed-optimizer", "--bf16"})},
      {"gpt2-async", gpt2, with(each, {"--async-save", "--keep-last", "2"})},
      {"gpt2-async-tp2", gpt2, with(each, {"--async-save", "--tp", "2", "--bf16"})},
      {"gpt2-by-time", gpt2, {"--save-interval-in-mins", "0.0001"}},
      {"gpt2-muon", gpt2, with(every_second, {"--optimizer", "muon", "--tensorboard-dir", out("run/curves")})},
      {"llama-best", llama, with(every_second, {"--eval-interval", "1", "--save-best", "--keep-last", "1"})},
      {"llama-tp2-pp2", llama, with(every_second, {"--num-query-groups", "2", "--tp", "2", "--pp", "2"})},
      {"bert-dp2", bert, with(each, {"--dp", "2", "--use-distributed-optimizer", "--keep-last", "1"})},
      {"bert-async-best", bert,
       with(each, {"--async-save", "--eval-interval", "2", "--save-best", "--keep-last", "2"})},
      {"gpt2-finetune",
       with({"train", "--finetune", in("hf"), "--data-path", in("tokens"), "--tokenizer", in("bpe")},
            {"--lr", "0.003", "--micro-batch-size", "2", "--train-iters", "4", "--eval-iters", "1", "--peak-tflops",
             "1", "--threads", "2"}),
       each},
      {"gpt2-tp2-mpirun", gpt2, with(each, {"--tp", "2", "--keep-last", "2"}), 2},
  };
  std::vector<Scenario> scenarios;
  for (const Training& one : all) {
    scenarios.push_back({.name = one.name,
                         .command = with(with(one.model, one.more), {"--save", out("run")}),
                         .goes_on = {"train", "--load", out("run"), "--threads", "2"},
                         .run = "run",
                         .processes = one.processes});
  }
  return scenarios;
}

std::vector<Scenario> Workplace::tasks() const {
  std::vector<Scenario> scenarios;
  const auto add = [&](const std::string& name, TaskKind task, const Words& more) {
    const std::string file = testing::task_file_name(task);
    const Words words = {"finetune",
                         "--task",
                         std::string(name_of(task)),
                         "--tokenizer",
                         in("words"),
                         "--train-data",
                         in("train-" + file),
                         "--valid-data",
                         in("valid-" + file),
                         "--model",
                         "bert-tiny",
                         "--num-layers",
                         "1",
                         "--hidden-size",
                         "16",
                         "--num-attention-heads",
                         "2",
                         "--seq-length",
                         "24",
                         "--global-batch-size",
                         "6",
                         "--lr",
                         "0.003",
                         "--epochs",
                         "2",
                         "--peak-tflops",
                         "1",
                         "--threads",
                         "2",
                         "--save",
                         out("tuned")};
    scenarios.push_back({.name = name, .command = with(words, more), .run = "tuned"});
  };
  add("finetune-mnli", TaskKind::kMnli, {"--save-interval", "1"});
  add("finetune-squad2-tp2", TaskKind::kSquad2, {"--tp", "2", "--keep-last", "2"});
  add("finetune-race-seeds", TaskKind::kRace, {"--seeds", "2", "--ensemble"});
  scenarios.back().run += "/seed-1234";
  add("finetune-qqp-dp2", TaskKind::kQqp, {"--dp", "2", "--test-data", in("valid-qqp.tsv")});
  return scenarios;
}

std::vector<Scenario> Workplace::corpora() const {
  const Words journal = {"--batch-bytes", "4000", "--journal-seconds", "0", "--overwrite", "--threads", "2"};
  const Words both = {in("a.jsonl"), in("b.jsonl.gz")};
  const auto stream = [&](const std::string& name, const Words& stage, const Words& more) {
    return Scenario{.name = name, .command = with(with({"data"}, stage), with(with(both, journal), more))};
  };
  std::vector<Scenario> scenarios = {
      stream("clean-dedup", {"clean"},
             {"--min-tokens", "0", "--then", "dedup", "--dropped", out("dropped.jsonl"), "--out", out("o.jsonl"),
              "--json", out("s.json")}),
      stream("clean-zst", {"clean"},
             {"--min-tokens", "0", "--dropped", out("dropped.jsonl.zst"), "--out", out("o.jsonl.zst")}),
      stream("dedup", {"dedup"}, {"--out", out("o.jsonl")}),
      stream("decontaminate", {"decontaminate"}, {"--evaluation", in("evaluation.jsonl"), "--out", out("o.jsonl")}),
  };
  scenarios.back().before = {"data", "dedup", in("evaluation.jsonl"), "--out", out("o.jsonl")};
  if (testing::kHasTextTools) {
    scenarios.push_back({.name = "extract-langid-dedup",
                         .command = with({"data", "extract", in("pages.jsonl"), "--min-characters", "20", "--then",
                                          "langid,dedup", "--keep-unsure", "--out", out("o.jsonl")},
                                         journal)});
  }
  return scenarios;
}

std::vector<Scenario> Workplace::others() const {
  const Words tokenize = {"data",      "tokenize", "--overwrite", "--tokenizer", in("bpe"),
                          "--threads", "2",        "--out",       out("o")};
  return {
      {.name = "tokenize", .command = with(tokenize, {in("a.jsonl"), in("b.jsonl.gz")})},
      {.name = "tokenize-over-another",
       .command = with(tokenize, {in("b.jsonl.gz")}),
       .before = with(tokenize, {in("a.jsonl")})},
      {.name = "merge", .command = {"data", "merge", "--overwrite", "--out", out("o"), in("tokens"), in("more")}},
      {.name = "split-tokens",
       .command = {"data", "split", "--overwrite", "--parts", "train=0.8", "valid=0.2", "--out", out("o"), in("tokens"),
                   in("more")}},
      {.name = "split-lines",
       .command = {"data", "split", "--overwrite", "--parts", "train=0.8", "valid=0.2", "--out", out("o.jsonl.zst"),
                   in("a.jsonl")}},
      {.name = "sample",
       .command = {"data", "sample", "--overwrite", "--documents", "40", "--out", out("o.jsonl"), in("a.jsonl")}},
      {.name = "tokenizer",
       .command = {"tokenizer", "train", "--overwrite", "--vocab-size", "300", "--out", out("bpe"), in("a.jsonl")}},
      {.name = "tokenizer-over-another",
       .command = {"tokenizer", "train", "--overwrite", "--vocab-size", "300", "--out", out("bpe"), in("a.jsonl")},
       .before = {"tokenizer", "train", "--vocab-size", "290", "--out", out("bpe"), in("a.jsonl")}},
      {.name = "export",
       .command = {"convert", "--from", "teratron", "--to", "hf", "--max-file-size", "5000", in("gpt2"), out("hf")}},
      {.name = "import", .command = {"convert", "--from", "hf", "--to", "teratron", in("hf"), out("run")}},
      {.name = "import-nanogpt",
       .command = {"convert", "--from", "nanogpt", "--to", "teratron",
                   TERATRON_SOURCE_DIR "/tests/golden/foreign/nanogpt.pt", out("run")}},
      {.name = "gguf", .command = {"convert", "--from", "teratron", "--to", "gguf", in("gpt2"), out("model.gguf")}},
      {.name = "reshard", .command = {"checkpoint", "reshard", "--max-file-size", "8000", in("gpt2"), out("run")}},
      {.name = "merge-adapters",
       .command = {"convert", "--from", "teratron", "--to", "teratron", "--merge", in("adapters"), out("run")}},
      {.name = "export-adapters",
       .command = {"convert", "--from", "teratron", "--to", "peft", in("adapters"), out("peft")}},
      {.name = "import-adapters",
       .command = {"convert", "--from", "peft", "--to", "teratron", "--base", in("gpt2"), in("peft"), out("run")}},
  };
}

Tree results_in(const Tree& tree) {
  Tree results;
  for (const auto& [path, content] : tree) {
    const auto has = [&path = path](std::string_view part) { return path.find(part) != path.npos; };
    const bool is_of_a_start = path.ends_with("/config.toml") && !has("/iter_");
    const bool is_remains = has(".partial") || path.ends_with(".lock") || has(".journal") || has("set_aside");
    const bool is_of_its_time = has("metrics.jsonl") || has("/curves") || path.ends_with("/live.json");
    if (is_of_a_start || is_remains || is_of_its_time) continue;
    results[path] = path == "s.json" ? without_costs(content) : content;
  }
  return results;
}

std::vector<Scenario> Workplace::scenarios() const {
  std::vector<Scenario> all;
  for (const std::vector<Scenario>& kind : {trainings(), tasks(), corpora(), others()})
    all.insert(all.end(), kind.begin(), kind.end());
  return all;
}

}  // namespace teratron::torture

// Files of tasks that a disk or a person has spoilt: reading and scoring them is a UserError or a result, never a crash
// and never bytes from outside of the file. Worth most under the address sanitizer.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/philox.h"
#include "base/trials.h"
#include "checkpoint/damage.h"
#include "tasks/custom/table.h"
#include "tasks/glue/score.h"
#include "tasks/race/score.h"
#include "tasks/synthetic_tasks.h"
#include "tasks/tag/sentences.h"

namespace teratron::testing {
namespace {

const std::string kSoundMnli =
    "index\tsentence1\tsentence2\tgold_label\n0\tIt rains.\tIt is wet.\tentailment\n1\ta\tb\t-\n2\tc\td\tneutral\n";
const std::string kSoundQqp = "id\tquestion1\tquestion2\tis_duplicate\n7\tWho?\tWhat?\t0\n8\t\tb\t1\n9\tc\td\t1\n";
const std::string kSoundPredictions = "index\tprediction\n0\t1\n2\t0\n";
const std::string kSoundRace =
    R"({"id": "high1.txt", "article": "It rained.", "questions": ["It _ .", "Was it?"], "answers": ["A", "C"],)"
    R"( "options": [["a", "b", "c", "d"], ["e", "f", "g", "h"]]})";
const std::string kSoundSquad =
    R"({"data": [{"paragraphs": [{"context": "It rained, not snow.", "qas": [{"id": "q", "question": "Did it rain?",)"
    R"( "answers": [{"text": "rained", "answer_start": 3}]}, {"id": "r", "question": "?", "is_impossible": true,)"
    R"( "answers": []}]}]}]})";
const std::string kSoundTexts =
    "{\"text\": \"It rained.\", \"label\": \"a\"}\n{\"text\": \"\", \"label\": 2}\n{\"text\": \"c\"}\n";
const std::string kSoundTable = "text,label\nIt rained.,a\n\"c, \"\"d\"\"\",b\n,a\n";
const std::string kSoundWords =
    "{\"tokens\": [\"It\", \"rained\", \"in\"], \"ner_tags\": [\"O\", null, \"B-LOC\"]}\n{\"tokens\": [], "
    "\"ner_tags\": []}\n";
const std::string kSoundConll = "-DOCSTART- -X- O\n\nIt PRP O\nrained VB B-X\n\nNo. X I-X\n";
const std::string kSoundAnswers = R"({"high1.txt": ["A", "D"], "middle2.txt": []})";

// Each reader, and the score of what it read, of a sound file and of what `spoilt` makes of it, `trials` times.
void spoil(int trials, const std::function<std::string(const std::string&)>& spoilt) {
  const TemporaryFolder folder;
  const auto file = folder / "file.jsonl";
  const Tokenizer tokenizer = task_tokenizer(folder);
  int read = 0, refused = 0;
  const auto reads = [&](const std::string& content, const auto& body) {
    put_file(file, content);
    try {
      body();
      ++read;
    } catch (const UserError& error) {
      EXPECT_STRNE(error.what(), "");
      ++refused;
    }
  };
  const auto read_all = [&](const auto& change) {
    reads(change(kSoundMnli), [&] { score(glue::read_dataset(file, glue::Task::kMnli), {{0, 1}}); });
    reads(change(kSoundQqp), [&] { score(glue::read_dataset(file, glue::Task::kQqp), {{0, 1}}); });
    reads(change(kSoundPredictions), [&] { glue::read_predictions(file, glue::Task::kQqp); });
    const std::vector<std::filesystem::path> files = {file};
    const auto use = [&](TaskKind kind) {
      const TaskReading reading = {.seq_length = 12, .max_query_length = 4, .doc_stride = 2};
      const auto set = open_task(kind, files, tokenizer, with_columns_of(kind, reading), false);
      EXPECT_LE(set->examples().longest(), 12);
      if (!has_labels_of_files(kind) && set->has_labels()) {
        set->scores(right_outputs(set->examples(), shape_of(kind)));
      }
    };
    reads(change(kSoundMnli), [&] { use(TaskKind::kMnli); });
    reads(change(kSoundRace), [&] { use(TaskKind::kRace); });
    reads(change(kSoundSquad), [&] { use(TaskKind::kSquad2); });
    reads(change(kSoundTexts), [&] { use(TaskKind::kClassify); });
    reads(change(kSoundWords), [&] { use(TaskKind::kTag); });
    reads(change(kSoundConll), [&] {
      std::filesystem::rename(file, folder / "file.conll");
      tag::read_sentences(std::vector{folder / "file.conll"}, default_reading(TaskKind::kTag));
    });
    reads(change(kSoundTable), [&] {
      std::filesystem::rename(file, folder / "file.csv");
      custom::read_table(std::vector{folder / "file.csv"}, {.text = "text", .pair = {}, .label = "label"});
    });
    reads(change(kSoundRace), [&] { score(race::read_dataset(files), {{"high1.txt", {0, 1}}}); });
    reads(change(kSoundAnswers), [&] { race::read_predictions(file); });
  };
  read_all([](const std::string& sound) { return sound; });
  ASSERT_EQ(read, 12);
  for (int trial = 0; trial < trials; ++trial) read_all(spoilt);
  EXPECT_EQ(read + refused, 12 * (trials + 1));
  EXPECT_GT(refused, trials) << "most damage cannot be read as another file";
}

TEST(DamagedTaskFiles, RandomBytesAreRefusedOrRead) {
  RandomSequence random({.seed = 5});
  spoil(trials(1000), [&](const std::string& sound) {
    std::string bytes(random.below(sound.size()), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    return bytes;
  });
}

TEST(DamagedTaskFiles, FilesCutShortAreRefusedOrRead) {
  std::size_t length = 0;
  constexpr int kTrials = trials(250), kStep = 250 / kTrials;
  spoil(kTrials, [&](const std::string& sound) { return sound.substr(0, length++ / 5 * kStep % sound.size()); });
}

std::string edited(std::string text, RandomSequence& random) {
  static const std::string alphabet = "\t\t\n\n\r{}[]\",:_-01AE \xff\xc3\\" + std::string(1, '\0');
  for (std::uint64_t edits = 1 + random.below(4); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = random.below(text.size()), length = random.below(6);
    const char byte = alphabet[random.below(alphabet.size())];
    switch (random.below(4)) {
      case 0: text[at] = byte; break;
      case 1: text.insert(at, 1, byte); break;
      case 2: text.erase(at, length); break;
      default: text.insert(at, text.substr(random.below(text.size()), length)); break;
    }
  }
  return text;
}

TEST(DamagedTaskFiles, RandomEditsAreRefusedOrRead) {
  RandomSequence random({.seed = 6});
  spoil(trials(2000), [&](const std::string& sound) { return edited(sound, random); });
}

TEST(DamagedTaskFiles, SequencesAndScoresAreMadeOfWhatCanBeRead) {
  const TemporaryFolder folder;
  const Tokenizer tokenizer = task_tokenizer(folder);
  const std::vector<std::filesystem::path> files = {folder / "file.jsonl"};
  const TaskReading reading = {.seq_length = 12, .max_query_length = 4, .doc_stride = 2};
  RandomSequence random({.seed = 7});
  int read = 0, refused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    for (const auto& [kind, sound] :
         {std::pair(TaskKind::kMnli, &kSoundMnli), std::pair(TaskKind::kQqp, &kSoundQqp),
          std::pair(TaskKind::kRace, &kSoundRace), std::pair(TaskKind::kSquad2, &kSoundSquad)}) {
      put_file(files[0], trial == 0 ? *sound : edited(*sound, random));
      try {
        const auto set = open_task(kind, files, tokenizer, reading, false);
        EXPECT_LE(set->examples().longest(), 12);
        if (kind != TaskKind::kClassify && set->has_labels()) {
          set->scores(right_outputs(set->examples(), shape_of(kind)));
        }
        ++read;
      } catch (const UserError& error) {
        EXPECT_GT(trial, 0) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace teratron::testing

// Labels of words: their files, the sequences of their sentences, spans, and predictions with names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tasks/tag/predictions.h"
#include "tasks/tag/sentences.h"
#include "tasks/tag/spans.h"
#include "tasks/task_entry.h"
#include "tasks/task_files.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TagFiles : public TaskFiles {
 protected:
  TagFiles() {
    reading_.seq_length = 16;
    reading_.doc_stride = 4;
  }

  fs::path file(const std::string& name, const std::string& content) const {
    put_file(folder_ / name, content);
    return folder_ / name;
  }
  tag::Sentences read(const std::string& name, const std::string& content) const {
    return tag::read_sentences(std::vector{file(name, content)}, reading_);
  }
  std::string fault(const std::string& name, const std::string& content) const {
    return message_of<UserError>([&] { read(name, content); });
  }
  std::unique_ptr<TaskSet> open_file(const std::string& name, const std::string& content, bool training = false) {
    return open_task(TaskKind::kTag, std::vector{file(name, content)}, tokenizer_, reading_, training);
  }
  // "word/label/line" of each, with "|" between sentences.
  static std::string text_of(const tag::Sentences& sentences) {
    std::string text;
    for (std::size_t i = 0; i + 1 < sentences.begins.size(); ++i) {
      text += i == 0 ? "" : " |";
      for (std::size_t word = sentences.begins[i]; word < sentences.begins[i + 1]; ++word) {
        const custom::Row& row = sentences.words.rows[word];
        text += fmt::format(" {}/{}/{}", row.text, row.label, row.line);
      }
    }
    return text;
  }

  TaskReading reading_ = default_reading(TaskKind::kTag);
};

TEST_F(TagFiles, ConllFilesHaveAWordALineAndABlankLineAfterASentence) {
  const std::string words =
      "\xEF\xBB\xBF-DOCSTART- -X- O\r\n\r\nrain NN  I-X\r\nsnow VB O\r\n\r\n \r\nsun NN B-X\r\n-DOCSTART- -X- O\r\nfog "
      "NN O";
  EXPECT_EQ(text_of(read("a.conll", words)), " rain/I-X/3 snow/O/4 | sun/B-X/7 | fog/O/9");
  EXPECT_EQ(text_of(read("a.txt", "a b\tX\n\tO\n")), " a b/X/1 /O/2") << "columns between tabs have any spaces";
  EXPECT_EQ(text_of(read("a.conll", "rain\nsnow\n")), " rain//1 snow//2") << "one column has no labels";
  reading_.text_column = "2";
  reading_.label_column = "1";
  EXPECT_EQ(text_of(read("a.conll", "O rain x\nB-X sun x\n")), " rain/O/1 sun/B-X/2");
  reading_.label_column = "";
  EXPECT_EQ(text_of(read("a.conll", "O rain x\n")), " rain//1");
}

TEST_F(TagFiles, JsonLinesHaveListsOfWordsAndOfNamesOrNumbers) {
  EXPECT_EQ(text_of(read("a.jsonl", R"({"tokens": ["rain", "a b"], "ner_tags": ["O", "B-X"], "id": 7}
{"ner_tags": [null, -100], "tokens": ["sun", ""]}
{"tokens": []}
{"tokens": ["fog"]}
)")),
            " rain/O/1 a b/B-X/1 | sun//2 //2 | | fog//4");
  EXPECT_EQ(text_of(read("a.jsonl", R"({"tokens": ["-DOCSTART-"], "ner_tags": ["O"]}
{"tokens": ["-DOCSTART-", "rain"], "ner_tags": ["O", "B-X"]})")),
            " rain/B-X/2");
  EXPECT_EQ(text_of(read("a.jsonl", R"({"tokens": ["rain\ud83d", "\ud83d\ude00"]})")), " rain\uFFFD//1 \U0001F600//1");
  reading_.text_column = "words";
  reading_.label_column = "tags";
  reading_.label_names = {"O", "B-X"};
  EXPECT_EQ(text_of(read("a.json", R"([{"words": ["rain", "sun"], "tags": [1, 0]}])")), " rain/B-X/1 sun/O/1");
  reading_.label_names.clear();
  reading_.labels.names = {"B-X", "O"};
  EXPECT_EQ(text_of(read("a.json", R"([{"words": ["rain", "sun"], "tags": [1, 0]}])")), " rain/O/1 sun/B-X/1")
      << "the numbers of the model's labels";
}

TEST_F(TagFiles, FaultsNameTheLineAndTheRemedy) {
  EXPECT_THAT(fault("a.conll", "rain NN O\nsnow O\n"),
              AllOf(HasSubstr("a.conll:2: 2 columns, where the file's first line has 3"), HasSubstr("a blank line")));
  EXPECT_THAT(fault("a.conll", "rain O\nNew York O\n"), HasSubstr("a.conll:2: 3 columns"));
  EXPECT_THAT(fault("a.conll", "# text = rain\nrain O\n"), HasSubstr("comments, such as CoNLL-U's"));
  EXPECT_THAT(fault("a.conll", "\n\n-DOCSTART-\n"), HasSubstr("a.conll' has no sentence; write a word a line"));
  EXPECT_THAT(fault("a.conll", "rain \xff\n"), HasSubstr("UTF-8"));
  EXPECT_THAT(fault("a.jsonl", R"({"tokens": ["a", "b"], "ner_tags": ["O"]})"),
              HasSubstr("a.jsonl:1: 2 words under \"tokens\" and 1 label under \"ner_tags\"; each word has one"));
  EXPECT_THAT(
      fault("a.jsonl", "{\"tokens\": [\"a\"]}\n{\"words\": [\"b\"], \"tags\": []}\n"),
      HasSubstr("a.jsonl:2: there is no list of words under \"tokens\"; its keys are words, tags (--text-column"));
  EXPECT_THAT(fault("a.jsonl", R"({"tokens": "a b"})"), HasSubstr("a.jsonl:1: \"tokens\" is no list"));
  EXPECT_THAT(fault("a.jsonl", "{\"tokens\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}"),
              HasSubstr("\"tokens\" is no list"));
  EXPECT_THAT(fault("a.jsonl", R"({"tokens": ["a", 3]})"),
              HasSubstr("element 1 of \"tokens\", counted from 0, is no text"));
  EXPECT_THAT(fault("a.jsonl", R"({"tokens": ["a"], "ner_tags": [0.5]})"), HasSubstr("has 0.5, which is no label"));
  EXPECT_THAT(fault("a.jsonl", R"({"tokens": ["a"], "ner_tags": [2]})"),
              HasSubstr("a.jsonl:1: \"ner_tags\" has numbers; name them in their order, from 0 on: --label-names O"));
  reading_.label_names = {"O", "B-X"};
  EXPECT_THAT(fault("a.jsonl", R"({"tokens": ["a"], "ner_tags": [2]})"),
              HasSubstr("\"ner_tags\" has the number 2, and there are 2 names, counted from 0 (O, B-X)"));
  EXPECT_THAT(fault("a.jsonl", R"({"tokens": ["a"], "ner_tags": [-1]})"), HasSubstr("has the number -1"));
  EXPECT_THAT(message_of<UserError>([&] {
                labels_in_files(TaskKind::kTag, std::vector{file("a.conll", "rain O\nsun B-Y\n")}, reading_);
              }),
              HasSubstr("a.conll:2: 'B-Y' is none of the model's labels O, B-X"));
  reading_.label_column = "4";
  EXPECT_THAT(fault("a.conll", "rain O\n"),
              HasSubstr("a.conll:1: --label-column is 4, and there are 2 columns, counted from 1"));
  reading_.label_column = "ner";
  EXPECT_THAT(fault("a.conll", "rain O\n"),
              HasSubstr("--label-column is 'ner', and columns of a CoNLL file have numbers, from 1"));
}

TEST_F(TagFiles, LabelsAreThoseOfTheFilesOrInTheGivenOrder) {
  const auto labels = [&](const std::string& content) {
    return labels_in_files(TaskKind::kTag, std::vector{file("a.conll", content)}, reading_).names;
  };
  EXPECT_THAT(labels("rain O\nsun I-X\nfog B-X\n"), ElementsAre("B-X", "I-X", "O"));
  EXPECT_THAT(message_of<UserError>([&] { labels("rain O\nsun O\n"); }), HasSubstr("has the label 'O'"));
  reading_.label_names = {"O", "B-Y", "B-X", "I-X"};
  EXPECT_THAT(labels("rain O\nsun I-X\nfog B-X\n"), ElementsAre("O", "B-Y", "B-X", "I-X"));
}

TEST_F(TagFiles, ALabelIsThatOfAWordsFirstToken) {
  // "rain." is two tokens, as is "sun?".
  const auto set = open_file("a.conll", "rain. B-X\nsnow O\nsun? I-X\n\nfog O\n", true);
  const TaskExamples& all = set->examples();
  EXPECT_EQ(all.count(), 2);
  std::vector<std::int32_t> ids = {2};
  tokenizer_.encode_to("rain. snow sun?", ids);
  ids.push_back(3);
  EXPECT_THAT(all.sequence(0), ::testing::ElementsAreArray(ids));
  EXPECT_THAT(all.labels_of(0), ElementsAre(-1, 0, -1, 2, 1, -1, -1)) << "of B-X, I-X, O";
  EXPECT_THAT(all.labels_of(1), ElementsAre(-1, 2, -1));
  EXPECT_EQ(all.second(0), 7) << "all token types are 0";
  EXPECT_EQ(set->notes(), "2 sentences of 4 words; 2 X");
}

std::string words_of(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{} {}\n", kTaskWords[std::size_t(i) % 16], i % 3 == 0 ? "B-X" : "O");
  return text;
}

TEST_F(TagFiles, LongSentencesAreCutForTrainingAndReadInWindowsElsewhere) {
  reading_.doc_stride = 4;
  const auto training = open_file("a.conll", words_of(20), true);
  EXPECT_EQ(training->examples().count(), 1);
  EXPECT_EQ(training->examples().longest(), 16);
  EXPECT_EQ(training->notes(), "1 sentence of 20 words; 1 cut to 16 tokens, without 6 words; 7 X");
  const auto set = open_file("a.conll", words_of(20));
  const TaskExamples& all = set->examples();
  ASSERT_EQ(all.count(), 2) << "words 0 to 13, and 10 to 19";
  EXPECT_EQ(set->notes(), "1 sentence of 20 words; 1 read in windows of 16 tokens; 7 X");
  EXPECT_EQ(all.longest(), 16);
  EXPECT_EQ(std::ranges::count_if(all.labels, [](std::int32_t label) { return label >= 0; }), 20)
      << "each word has one place";
  // Words 10 and 11 have more on their poorer side in the first window, 12 and 13 in the second.
  EXPECT_THAT(all.labels_of(0).subspan(10, 6), ElementsAre(0, 1, 1, -1, -1, -1));
  EXPECT_THAT(all.labels_of(1).subspan(0, 6), ElementsAre(-1, -1, -1, 0, 1, 1));
  for (const TaskScore& score : set->scores(right_outputs(all, {TaskOutputs::kTokenLabels, 2}))) {
    EXPECT_EQ(score.value, 100) << score.name;
  }
}

TEST_F(TagFiles, WindowsThatShareAllOfTheirTokensAreRefused) {
  reading_.doc_stride = 13;
  open_file("a.conll", words_of(20));
  reading_.doc_stride = 14;
  EXPECT_THAT(message_of<UserError>([&] { open_file("a.conll", words_of(20)); }),
              HasSubstr("room for 14 of a sentence, and shares --doc-stride 14"));
}

TEST_F(TagFiles, EveryWordHasOnePlaceWhateverTheWindows) {
  RandomSequence random({.seed = 4});
  for (int trial = 0; trial < 60; ++trial) {
    reading_.seq_length = 3 + static_cast<std::int64_t>(random.below(20));
    reading_.doc_stride = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(reading_.seq_length - 2)));
    const auto words = static_cast<int>(2 + random.below(60));
    const auto set = open_file("a.conll", words_of(words));
    const auto known = [](std::int32_t label) { return label != kUnknownLabel; };
    EXPECT_EQ(std::ranges::count_if(set->examples().labels, known), words);
    EXPECT_LE(set->examples().longest(), reading_.seq_length);
    EXPECT_EQ(set->scores(right_outputs(set->examples(), {TaskOutputs::kTokenLabels, 2})).front().value, 100);
  }
}

TEST_F(TagFiles, SentencesAndWordsWithoutALabelAreLeftOutOfTrainingAndOfScores) {
  const std::string content = R"({"tokens": ["rain", "sun"], "ner_tags": ["O", null]}
{"tokens": ["fog"]}
{"tokens": ["hail", ""], "ner_tags": ["B-X", "O"]}
)";
  const auto training = open_file("a.jsonl", content, true);
  EXPECT_EQ(training->examples().count(), 2);
  EXPECT_EQ(training->notes(),
            "2 sentences of 4 words; 1 sentence without a label left out; 1 word without a token, taken for O; 2 words "
            "without a label; 1 X");
  const auto set = open_file("a.jsonl", content);
  EXPECT_EQ(set->examples().count(), 3);
  TaskOutputValues outputs = right_outputs(set->examples(), {TaskOutputs::kTokenLabels, 2});
  outputs[1][2] = 10;  // "fog", which has no label, is said to be an X
  EXPECT_EQ(set->scores(outputs)[0].value, 100);
  reading_.labels.names = {"B-X", "O"};
  const auto test = open_file("b.conll", "rain\nsun\n");
  EXPECT_FALSE(test->has_labels());
  EXPECT_EQ(test->notes(), "1 sentence of 2 words; no labels");
  EXPECT_THAT(message_of<UserError>([&] { open_file("b.conll", "rain\nsun\n", true); }),
              HasSubstr("no sentence to train on has a label (1 sentence read)"));
}

TEST_F(TagFiles, PredictionsComeBackFromScoreInBothFormats) {
  const std::string content = "rain B-X\nsnow I-X\n\nsun O\nfog B-Y\n\nhail B-X\n";
  const auto set = open_file("a.conll", content);
  TaskOutputValues outputs = right_outputs(set->examples(), {TaskOutputs::kTokenLabels, 4});
  std::ranges::fill(outputs[0], 0.0F);  // of B-X, B-Y, I-X, O the first: two X of a word
  const auto scores = set->scores(outputs);
  EXPECT_THAT(scores,
              ElementsAre(::testing::Field(&TaskScore::name, "f1"), ::testing::Field(&TaskScore::name, "precision"),
                          ::testing::Field(&TaskScore::name, "recall"), ::testing::Field(&TaskScore::name, "accuracy"),
                          ::testing::Field(&TaskScore::name, "f1_X"), ::testing::Field(&TaskScore::name, "f1_Y")));
  EXPECT_DOUBLE_EQ(scores[0].value, 100 * 2.0 * 2 / (3 + 4));
  EXPECT_DOUBLE_EQ(scores[1].value, 50);
  EXPECT_DOUBLE_EQ(scores[3].value, 80);
  for (const char* name : {"p.conll", "p.jsonl"}) {
    set->write_predictions(folder_ / name, outputs);
    const ScoreReport report =
        entry_of(TaskKind::kTag).scoring.score(std::vector{folder_ / "a.conll"}, folder_ / name, reading_);
    const auto json = nlohmann::json::parse(report.json);
    EXPECT_EQ(json["words"], 5);
    for (const TaskScore& score : scores) EXPECT_DOUBLE_EQ(json[score.name].get<double>(), score.value) << score.name;
    EXPECT_DOUBLE_EQ(json["by_type"]["X"]["recall"].get<double>(), 50);
    EXPECT_THAT(report.text, HasSubstr("2 spans   precision  33.3333   recall  50.0000   F1  40.0000"));
  }
  EXPECT_EQ(bytes_of_file(folder_ / "p.conll"), "rain\tB-X\nsnow\tB-X\n\nsun\tO\nfog\tB-Y\n\nhail\tB-X\n\n");
  EXPECT_THAT(bytes_of_file(folder_ / "p.jsonl"),
              HasSubstr("{\"tokens\":[\"rain\",\"snow\"],\"ner_tags\":[\"B-X\",\"B-X\"]}\n"));
  const auto refused = [&](const std::string& predictions) {
    put_file(folder_ / "p.conll", predictions);
    return message_of<UserError>([&] {
      entry_of(TaskKind::kTag).scoring.score(std::vector{folder_ / "a.conll"}, folder_ / "p.conll", reading_);
    });
  };
  EXPECT_THAT(refused("rain\tO\nsnow\tO\n"), HasSubstr("p.conll' has 1 sentence with words, and the data 3"));
  EXPECT_THAT(refused("rain\tO\nsnow\tO\n\nsun\tO\n\nhail\tO\n"),
              AllOf(HasSubstr("p.conll:4: a sentence of 1 word, which has 2 in the data"), HasSubstr("a.conll:4")));
}

TEST_F(TagFiles, PredictionsMayBeNumbersOfTheGivenNames) {
  const fs::path data = file("a.jsonl", R"({"tokens": ["rain", "sun"], "ner_tags": [0, 1]})"),
                 predictions = file("p.jsonl", R"({"tokens": ["rain", "sun"], "ner_tags": [0, 0]})");
  reading_.label_names = {"O", "B-X"};
  const ScoreReport report = entry_of(TaskKind::kTag).scoring.score(std::vector{data}, predictions, reading_);
  EXPECT_DOUBLE_EQ(nlohmann::json::parse(report.json)["accuracy"].get<double>(), 50);
}

TEST_F(TagFiles, LabelsThatAreNoneOfSpansAreScoredByTheirAccuracy) {
  const auto set = open_file("a.conll", "rain NOUN\nsnow VERB\nsun NOUN\n");
  const auto scores = set->scores(right_outputs(set->examples(), {TaskOutputs::kTokenLabels, 2}));
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0].name, "accuracy");
  EXPECT_EQ(scores[1].name, "f1_macro");
}

TEST(TagSpans, FollowConllevalWhereALabelBreaksTheScheme) {
  const std::vector<std::string> names = {"O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y", "B"};
  const tag::SpanLabels labels(names);
  EXPECT_THAT(labels.types(), ElementsAre("X", "Y", "_"));
  const auto spans = [&](const std::string& text) {
    std::vector<std::int32_t> numbers;
    std::istringstream words(text);
    for (std::string word; words >> word;)
      numbers.push_back(static_cast<std::int32_t>(std::ranges::find(names, word) - names.begin()));
    std::string found;
    for (const tag::Span& span : labels.spans_in(numbers))
      found += fmt::format("{}{}-{} ", labels.types()[static_cast<std::size_t>(span.type)], span.begin, span.end);
    return found;
  };
  EXPECT_EQ(spans("B-X I-X O B-Y"), "X0-2 Y3-4 ");
  EXPECT_EQ(spans("I-X I-X B-X I-X"), "X0-2 X2-4 ") << "IOB1";
  EXPECT_EQ(spans("O I-X I-Y"), "X1-2 Y2-3 ") << "an I after O, or of another type";
  EXPECT_EQ(spans("B-X E-X I-X S-X E-X"), "X0-2 X2-3 X3-4 X4-5 ") << "IOBES";
  EXPECT_EQ(spans("B-X I-Y I-Y B"), "X0-1 Y1-3 _3-4 ");
  EXPECT_EQ(spans("O O"), "");
  EXPECT_FALSE(tag::SpanLabels(std::vector<std::string>{"O", "L-X"}).are_spans());
  EXPECT_FALSE(tag::SpanLabels(std::vector<std::string>{"O", ""}).are_spans());
  EXPECT_FALSE(tag::SpanLabels(std::vector<std::string>{"NOUN", "Ix"}).are_spans());
}

}  // namespace
}  // namespace teratron::testing

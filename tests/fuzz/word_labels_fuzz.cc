// Sentences whose words have labels, and predictions of them; the first byte chooses the formats.
#include <array>

#include "fuzz.h"
#include "tasks/custom/labels.h"
#include "tasks/tag/predictions.h"
#include "tasks/tag/sentences.h"
#include "tasks/tag/spans.h"

void teratron::fuzz::parse(std::string_view input) {
  constexpr std::array<const char*, 3> kNames = {"a.conll", "a.jsonl", "a.json"};
  const unsigned choice = take_byte(input);
  const auto parts = parts_of(input, '\x1e');
  const std::array files = {put(kNames[choice % kNames.size()], parts.front())};
  const auto predicted = put(choice / 4 % 2 == 0 ? "b.conll" : "b.jsonl", parts.back());
  TaskReading reading = default_reading(TaskKind::kTag);
  if (choice / 8 % 2 == 1) reading.label_names = {"O", "B-X"};
  const tag::Sentences sentences = tag::read_sentences(files, reading);
  require(sentences.begins.back() == sentences.words.rows.size(), "sentences hold all words");
  try {
    const LabelSet labels = custom::labels_in(sentences.words, LabelKind::kNames);
    const tag::SpanLabels spans(labels.names);
    const custom::LabelWords numbers(labels);
    std::vector<std::int32_t> known;
    for (const custom::Row& word : sentences.words.rows) {
      if (const std::int32_t label = numbers.of(word, sentences.words); label != kUnknownLabel) known.push_back(label);
    }
    if (spans.are_spans()) require(spans.spans_in(known).size() <= known.size(), "a span has a word");
  } catch (const UserError&) {
  }
  tag::read_predictions(predicted, sentences);
}

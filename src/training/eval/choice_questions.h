// Questions with several answers to choose from, as published sets store them: a JSON object a line. The prompts are
// those of EleutherAI's lm-evaluation-harness.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace teratron {

struct ChoiceQuestion {
  std::string context;               // a space stands between it and a choice
  std::vector<std::string> choices;  // two at least, none of them blank
  std::int64_t answer = 0;           // index of the right choice
  std::int64_t line = 0;             // in its file, from 1; of a JSON array: the element
};

// Reads a file, compressed or not; "-" is standard input. The members of an object tell its form:
// - context, choices, answer: as they are;
// - ctx (or activity_label, ctx_a and ctx_b), endings, label: HellaSwag's, without its notes in brackets;
// - goal, sol1, sol2, label: PIQA's, as "Question: GOAL", "Answer:";
// - question, choices {text, label}, answerKey: ARC's, likewise; with question_stem in place of question OpenBookQA's,
//   whose stem is the context;
// - question, choices, answer, and subject where it is known: MMLU's, whose context lists the choices, A to Z, whose
//   letters are chosen between.
// An answer or a label is a number from 0, also as text, or a letter from A.
// UserError, with file and line: an object of none of these forms, or without a right answer among its choices; a file
// without questions.
std::vector<ChoiceQuestion> read_choice_questions(const std::filesystem::path& file);

}  // namespace teratron

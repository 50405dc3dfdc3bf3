// Questions with several answers, of all forms.
#include "eval/choice_questions.h"
#include "eval/wikitext.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  detokenize_wikitext(input);
  count_wikitext_words(input);
  read_choice_questions(put("a.jsonl", input));
}

// The marks that end sentences in scripts other than Latin: Unicode's property Sentence_Terminal.
#pragma once

namespace teratron {

bool is_sentence_terminal(char32_t code);

}  // namespace teratron

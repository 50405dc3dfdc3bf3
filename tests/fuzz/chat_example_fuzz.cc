// A line of chats, and of pairs of answers, in all the forms that are read.
#include "data/chats/chat_example.h"

#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  try {
    read_chat_example(input);
  } catch (const UserError&) {
  }
  read_preference_example(input);
}

// Reads files of chats as tokens, with the words to learn marked, and writes them as a corpus.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "data/chats/chat_tokens.h"
#include "data/text/document_reader.h"

namespace teratron {

enum class ChatForm {
  kChats,  // read_chat_example
  kPairs,  // read_preference_example
};

struct ChatCounts {
  std::int64_t examples = 0, unanswered = 0;                         // unanswered: left out
  std::int64_t equal = 0;                                            // pairs of two equal answers
  std::int64_t rewritten = 0;                                        // chats of several documents (ChatTokenizer)
  std::int64_t documents = 0, tokens = 0, learned = 0, longest = 0;  // longest: tokens of a document
};

class ChatReader {
 public:
  // `tokenizer` outlives it. UserError: as DocumentReader.
  ChatReader(const ChatTokenizer& tokenizer, std::span<const std::filesystem::path> files,
             ChatForm form = ChatForm::kChats, std::int64_t batch_bytes = std::int64_t{1} << 22);

  // Reads the documents of the next examples, in their order, with all threads; two for each pair. Returns false at the
  // end. UserError, with file and line of the first faulty example: as the form's function and ChatTokenizer::tokenize.
  bool next(std::vector<ChatTokens>& documents);
  ChatForm form() const { return form_; }
  const ChatCounts& counts() const { return counts_; }
  double share_read() const;  // 0 to 1; pipes do not count

 private:
  std::vector<ChatTokens> tokenize(const RawDocument& document) const;

  const ChatTokenizer& tokenizer_;
  ChatForm form_;
  DocumentReader reader_;
  DocumentBatch batch_;
  std::int64_t bytes_read_ = 0;
  ChatCounts counts_;
};

// Writes the rest of the documents as a corpus of chats or of pairs (SequenceUnit::kTurn, kPair), whole or not at all.
// UserError: as ChatReader::next and IndexedDatasetWriter; or there is no answer.
void write_chats(ChatReader& reader, const ChatTokenizer& tokenizer, const std::filesystem::path& prefix,
                 const std::string& tokenizer_name, const std::function<void(double share)>& progress);

}  // namespace teratron

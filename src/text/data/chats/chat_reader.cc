#include "data/chats/chat_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/host/threads.h"
#include "data/indexed/indexed_dataset_writer.h"

namespace teratron {
namespace {

struct ReadExample {
  std::vector<ChatTokens> documents;
  std::string error;  // kept, so that of several bad lines the first one is reported
};

// In turn context and words to learn, context first; two of each in a pair, which is a document.
void add_turns(const ChatTokens& chat, IndexedDatasetWriter& writer) {
  const std::span tokens(chat.ids);
  bool learns = false;
  for (std::size_t begin = 0; begin < tokens.size(); learns = !learns) {
    std::size_t end = begin;
    while (end < tokens.size() && chat.learned[end] == learns) ++end;
    writer.add_sequence(tokens.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace

ChatReader::ChatReader(const ChatTokenizer& tokenizer, std::span<const std::filesystem::path> files, ChatForm form,
                       std::int64_t batch_bytes)
    : tokenizer_(tokenizer), form_(form), reader_(files, batch_bytes, TextFormat::kAuto) {
  reader_.advise_flag("");
}

std::vector<ChatTokens> ChatReader::tokenize(const RawDocument& document) const {
  if (document.line == 0) throw_user_error("this is plain text; chats are JSON lines, an object a line");
  return form_ == ChatForm::kPairs ? tokenizer_.tokenize(read_preference_example(document.bytes))
                                   : tokenizer_.tokenize(read_chat_example(document.bytes));
}

bool ChatReader::next(std::vector<ChatTokens>& documents) {
  documents.clear();
  if (!reader_.next(batch_)) return false;
  bytes_read_ += batch_.bytes_read;
  std::vector<ReadExample> read(batch_.documents.size());
  parallel_for(std::ssize(read), 8, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const RawDocument& document = batch_.documents[i];
      try {
        read[i].documents = tokenize(document);
      } catch (const UserError& error) {
        read[i].error = fmt::format("{}: {}", place_of(*document.file, document.line, document.unit), error.what());
      }
    }
  });
  for (ReadExample& example : read) {
    if (!example.error.empty()) throw UserError(example.error);
    ++counts_.examples;
    counts_.unanswered += example.documents.empty() ? 1 : 0;
    counts_.rewritten += form_ == ChatForm::kChats && example.documents.size() > 1 ? 1 : 0;
    if (form_ == ChatForm::kPairs && example.documents.size() == 2) {
      counts_.equal += example.documents[0].ids == example.documents[1].ids ? 1 : 0;
    }
    for (ChatTokens& document : example.documents) {
      const std::int64_t tokens = std::ssize(document.ids);
      ++counts_.documents;
      counts_.tokens += tokens;
      counts_.learned += std::ranges::count(document.learned, true);
      counts_.longest = std::max(counts_.longest, tokens);
      documents.push_back(std::move(document));
    }
  }
  return true;
}

double ChatReader::share_read() const {
  const std::int64_t total = reader_.total_bytes();
  return bytes_read_ <= total && total > 0 ? static_cast<double>(bytes_read_) / static_cast<double>(total) : 0;
}

void write_chats(ChatReader& reader, const ChatTokenizer& tokenizer, const std::filesystem::path& prefix,
                 const std::string& tokenizer_name, const std::function<void(double share)>& progress) {
  if (prefix.has_parent_path()) make_folders(prefix.parent_path());
  const bool has_pairs = reader.form() == ChatForm::kPairs;
  IndexedDatasetWriter writer(prefix, tokenizer.tokenizer().vocab_size());
  for (std::vector<ChatTokens> documents; reader.next(documents);) {
    for (std::size_t i = 0; i < documents.size(); ++i) {
      add_turns(documents[i], writer);
      if (!has_pairs || i % 2 == 1) writer.end_document();
    }
    progress(reader.share_read());
  }
  if (writer.documents() == 0) {
    throw_user_error("no example has an answer of an assistant; examples read: {}. Nothing was written",
                     reader.counts().examples);
  }
  writer.commit(identity_of(tokenizer.tokenizer(), tokenizer_name),
                has_pairs ? SequenceUnit::kPair : SequenceUnit::kTurn);
}

}  // namespace teratron

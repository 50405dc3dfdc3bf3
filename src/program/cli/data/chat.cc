// teratron data chat, data preferences: chats, and pairs of answers, to a corpus that says which words a model learns;
// and samples of it for people.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/host/monotonic_clock.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/threads_field.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "console/term_list.h"
#include "data/chats/chat_reader.h"
#include "data/indexed/corpus_sidecar.h"
#include "options/reading.h"

namespace teratron {
namespace {

struct DataChatOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path tokenizer, chat_template, out, json;
  std::int64_t show = 0, threads = 0;
  bool overwrite = false;
  Colours color = Colours::kAuto;

  Faults faults() const {
    Faults faults;
    faults.add_if(is_standard_stream(out), "{} is two files, and standard output is one; name a PREFIX", Flag{"out"});
    faults.add_if(out.empty() == (show == 0), "give either {} PREFIX, to write a corpus, or {} N, to look at examples",
                  Flag{"out"}, Flag{"show"});
    return faults;
  }
};

struct DataPreferencesOptions : DataChatOptions {};

FieldList fields_of(DataChatOptions& o, const std::string& members, const std::string& trained_by) {
  FieldList list;
  list.add_positional(&o.files, "FILE",
                      "JSON lines or Parquet, an object a line or row: " + members + "; -: standard input");
  list.add("tokenizer", &o.tokenizer, "DIR", "folder with the model's tokenizer and chat template").required = true;
  list.add("chat-template", &o.chat_template, "FILE", "template in place of the tokenizer's");
  list.add("out", &o.out, "PREFIX", "writes PREFIX.bin, PREFIX.idx and PREFIX.teratron.json, for train " + trained_by)
      .writes(FileContent::kOwn, corpus_files());
  add_overwrite_field(list, o.overwrite);
  list.add("show", &o.show, "N",
           "writes nothing, and shows the first N documents, with the words to learn in green, or in [[ ]] where there "
           "are no colours")
      .between(0, std::numeric_limits<std::int32_t>::max());
  add_color_field(list, o.color, "colours of --show");
  add_threads_field(list, o.threads);
  add_json_field(list, o.json);
  list.field_of(o.json).writes(FileContent::kJsonLines);  // with --show, a line for each document
  return list;
}

FieldList fields_of(DataChatOptions& o) {
  return fields_of(
      o,
      "\"messages\" (OpenAI), \"conversations\" (ShareGPT), \"prompt\" and \"completion\", \"instruction\" and "
      "\"output\" (Alpaca), or \"text\"",
      "--sft");
}

FieldList fields_of(DataPreferencesOptions& o) {
  return fields_of(o,
                   "\"chosen\" and \"rejected\", texts or messages, after \"prompt\", \"messages\" or "
                   "\"conversations\", or after what both begin with",
                   "--dpo");
}

std::string shown(const ChatTokens& chat, const Tokenizer& tokenizer, bool has_colours) {
  const std::string_view begin = has_colours ? "\x1b[32m" : "[[", end = has_colours ? "\x1b[0m" : "]]";
  std::string text;
  for (std::size_t at = 0; at < chat.ids.size();) {
    const bool learned = chat.learned[at];
    std::string piece;
    for (; at < chat.ids.size() && chat.learned[at] == learned; ++at) piece += tokenizer.bytes_of(chat.ids[at]);
    text += learned ? fmt::format("{}{}{}", begin, printable(piece), end) : printable(piece);
  }
  return text;
}

// Prints documents as they are read, beside their JSON.
class ShownDocuments {
 public:
  ShownDocuments(const DataChatOptions& options, const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), json_goes_out_(is_standard_stream(options.json)) {
    if (!options.json.empty() && !json_goes_out_) file_.emplace(options.json);
    if (options.color != Colours::kAuto) set_colours(options.color);
    has_colours_ = style_for(json_goes_out_ ? stderr : stdout).has_colours;
  }

  void add(const std::string& name, const ChatTokens& chat) {
    const std::string text = fmt::format("--- {}: {}, {} to learn\n{}\n", name, counted(std::ssize(chat.ids), "token"),
                                         std::ranges::count(chat.learned, true), shown(chat, tokenizer_, has_colours_));
    json_goes_out_ ? fmt::print(stderr, "{}", text) : print_result(text);
    if (!json_goes_out_ && !file_) return;
    const std::string line = json_text(nlohmann::ordered_json({{"ids", chat.ids}, {"learned", chat.learned}})) + "\n";
    file_ ? file_->write(line) : print_result(line);
  }
  void finish() {
    if (file_) file_->commit();
  }

 private:
  const Tokenizer& tokenizer_;
  const bool json_goes_out_;
  bool has_colours_ = false;
  std::optional<AtomicFile> file_;
};

void show(const DataChatOptions& options, const ChatTokenizer& tokenizer, ChatForm form) {
  ChatReader reader(tokenizer, options.files, form, 1 << 16);
  ShownDocuments documents(options, tokenizer.tokenizer());
  const bool has_pairs = form == ChatForm::kPairs;
  const std::int64_t most = has_pairs ? 2 * options.show : options.show;
  std::int64_t number = 0;
  for (std::vector<ChatTokens> read; number < most && reader.next(read);) {
    for (const ChatTokens& chat : read) {
      if (number == most) break;
      ++number;
      documents.add(has_pairs ? fmt::format("{}, {}", (number + 1) / 2, number % 2 == 1 ? "chosen" : "rejected")
                              : fmt::format("{}", number),
                    chat);
    }
  }
  if (number == 0) {
    throw_user_error("no example has an answer of an assistant; examples read: {}", reader.counts().examples);
  }
  documents.finish();
}

std::string text_of(const ChatCounts& counts, const DataChatOptions& options, ChatForm form, double seconds) {
  const bool has_pairs = form == ChatForm::kPairs;
  const std::string documents =
      has_pairs ? counted(counts.documents / 2, "pair") : counted(counts.documents, "conversation");
  std::string text = fmt::format("{}, {}, {} of them to learn, in {}: {}\n", documents, counted(counts.tokens, "token"),
                                 readable_integer(counts.learned), readable_duration(seconds), options.out.string());
  text += fmt::format("the longest has {}\n", counted(counts.longest, "token"));
  if (counts.unanswered > 0) {
    text +=
        fmt::format("{} without an answer left out\n", counted(counts.unanswered, has_pairs ? "pair" : "conversation"));
  }
  if (counts.equal > 0)
    text += fmt::format("{} whose answers are equal, which teach nothing\n", counted(counts.equal, "pair"));
  if (counts.rewritten > 0) {
    text += fmt::format(
        "{}: the template writes their earlier answers otherwise than their last, so each answer is one of its own\n",
        counted(counts.rewritten, "conversation"));
  }
  return text;
}

void run(const DataChatOptions& options, ChatForm form) {
  use_threads(options.threads);
  if (!options.out.empty()) require_free(files_of_corpus(options.out), options.overwrite);
  const double start = monotonic_seconds();
  const Tokenizer tokens = Tokenizer::load(options.tokenizer);
  const ChatTokenizer tokenizer(tokens,
                                find_chat_rules(options.tokenizer, options.tokenizer, options.chat_template, tokens));
  if (options.show > 0) return show(options, tokenizer, form);
  ChatReader reader(tokenizer, options.files, form);
  write_chats(reader, tokenizer, options.out, options.tokenizer.string(), show_share("tokenising"));
  const ChatCounts& counts = reader.counts();
  const double seconds = monotonic_seconds() - start;
  nlohmann::ordered_json json = {{"examples", counts.examples},   {"unanswered", counts.unanswered},
                                 {"rewritten", counts.rewritten}, {"documents", counts.documents},
                                 {"tokens", counts.tokens},       {"learned", counts.learned},
                                 {"longest", counts.longest},     {"seconds", seconds}};
  if (form == ChatForm::kPairs) json["equal"] = counts.equal;
  report(options.json, text_of(counts, options, form, seconds), json);
}

}  // namespace

Command data_chat_command() {
  return make_command<DataChatOptions>("data chat", "turns chats into token files whose answers alone are learned",
                                       [](const DataChatOptions& options) { run(options, ChatForm::kChats); });
}

Command data_preferences_command() {
  return make_command<DataPreferencesOptions>(
      "data preferences", "turns pairs of answers into token files, the chosen one beside the rejected one",
      [](const DataPreferencesOptions& options) { run(options, ChatForm::kPairs); });
}

}  // namespace teratron

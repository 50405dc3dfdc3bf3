// teratron data info: the contents of a tokenised corpus.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "data/indexed/dataset_info.h"

namespace teratron {
namespace {

struct DataInfoOptions {
  std::vector<std::filesystem::path> prefixes;
  std::filesystem::path json;
};

FieldList fields_of(DataInfoOptions& o) {
  FieldList list;
  list.add_positional(&o.prefixes, "PREFIX", "the corpus is PREFIX.bin and PREFIX.idx; several are its shards");
  add_json_field(list, o.json);
  return list;
}

// "u16"; "u16, i32" if shards differ.
std::string stored_as(const DatasetInfo& info) {
  std::string text;
  for (const TokenType type : info.token_types) text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(type));
  return text;
}

std::string table_of(const DatasetInfo& info) {
  TextTable table({Align::kLeft, Align::kRight});
  if (info.shards > 1) table.row({"shards", readable_integer(info.shards)});
  table.row({"documents", readable_integer(info.documents)});
  table.row({"empty documents", readable_integer(info.empty_documents)});
  table.row({info.has_sentences() ? "sentences" : "sequences", readable_integer(info.sequences)});
  if (info.sequences > info.documents) {
    table.row({fmt::format("documents of two {} or more", info.has_sentences() ? "sentences" : "sequences"),
               readable_integer(info.documents_of_pairs)});
  }
  table.row({"tokens", readable_integer(info.tokens)});
  table.row({"tokens a document, fewest", readable_integer(info.shortest_document)});
  table.row({"median", readable_integer(info.median_document)});
  table.row({"most", readable_integer(info.longest_document)});
  table.row({"largest token id", info.tokens > 0 ? readable_integer(info.largest_token) : "none"});
  table.row({"stored as", stored_as(info)});
  table.row({"size of .bin", readable_bytes(static_cast<std::uint64_t>(info.bin_bytes))});
  table.row({"size of .idx", readable_bytes(static_cast<std::uint64_t>(info.idx_bytes))});
  if (info.sidecar) {
    table.row({"tokenizer", info.sidecar->tokenizer.name});
    table.row({"its hash", info.sidecar->tokenizer.hash});
    table.row({"its tokens", readable_integer(info.sidecar->tokenizer.vocab_size)});
  } else {
    table.row({"tokenizer", "unknown"});
  }
  return table.text(0);
}

void run(const DataInfoOptions& options) {
  const DatasetInfo info = dataset_info(
      options.prefixes, show_share(fmt::format("reading '{}'", bin_path(options.prefixes.front()).string())));
  nlohmann::ordered_json json = {{"shards", info.shards},
                                 {"documents", info.documents},
                                 {"empty_documents", info.empty_documents},
                                 {"sequences", info.sequences},
                                 {"sequences_are_sentences", info.has_sentences()},
                                 {"documents_of_two_sequences", info.documents_of_pairs},
                                 {"tokens", info.tokens},
                                 {"shortest_document", info.shortest_document},
                                 {"median_document", info.median_document},
                                 {"longest_document", info.longest_document},
                                 {"largest_token", info.largest_token},
                                 {"token_type", stored_as(info)},
                                 {"bin_bytes", info.bin_bytes},
                                 {"idx_bytes", info.idx_bytes},
                                 {"tokenizer", nullptr}};
  if (info.sidecar) {
    json["tokenizer"] = {{"name", info.sidecar->tokenizer.name},
                         {"hash", info.sidecar->tokenizer.hash},
                         {"vocab_size", info.sidecar->tokenizer.vocab_size}};
  }
  report(options.json, table_of(info), json);
}

}  // namespace

Command data_info_command() {
  return make_command<DataInfoOptions>("data info", "shows what a tokenised corpus holds", run);
}

}  // namespace teratron

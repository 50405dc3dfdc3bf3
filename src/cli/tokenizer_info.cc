// teratron tokenizer info: what a tokenizer's files hold.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

struct TokenizerInfoOptions {
  std::filesystem::path tokenizer, json;
};

FieldList fields_of(TokenizerInfoOptions& o) {
  FieldList list;
  list.add_positional(&o.tokenizer, "DIR", "folder with the tokenizer's files, or one of them");
  add_json_field(list, o.json);
  return list;
}

void run(const TokenizerInfoOptions& options) {
  const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
  const BpeModel& model = tokenizer.model();
  std::size_t longest = 0;
  for (const std::string& token : model.tokens) longest = std::max(longest, token.size());

  nlohmann::ordered_json json = {{"vocab_size", tokenizer.vocab_size()},
                                 {"merges", model.merges.size()},
                                 {"longest_token_bytes", longest},
                                 {"end_of_text", nullptr},
                                 {"special_tokens", nlohmann::ordered_json::object()}};
  TextTable table({Align::kLeft, Align::kRight});
  table.row({"vocabulary", readable_integer(tokenizer.vocab_size())});
  table.row({"merges", readable_integer(static_cast<std::int64_t>(model.merges.size()))});
  table.row({"longest token, in bytes", readable_integer(static_cast<std::int64_t>(longest))});
  if (tokenizer.end_of_text()) json["end_of_text"] = *tokenizer.end_of_text();
  for (const std::int32_t id : model.special) {
    const std::string& text = model.tokens[static_cast<std::size_t>(id)];
    json["special_tokens"][text] = id;
    table.row({"special " + text, fmt::format("{}", id)});
  }
  report(options.json, table.text(0), json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

Command tokenizer_info_command() {
  return make_command<TokenizerInfoOptions>("tokenizer info", "shows what a tokenizer holds", run);
}

}  // namespace teratron

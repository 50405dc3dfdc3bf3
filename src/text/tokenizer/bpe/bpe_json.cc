// BPE in a tokenizer.json.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"

namespace teratron {
namespace {

namespace dom = simdjson::dom;

class BpeJson {
 public:
  BpeJson(dom::object root, std::string file) : root_(root), file_(std::move(file)) {}

  BpeSource read() const {
    dom::object model;
    if (root_["model"].get(model)) refuse("it has no \"model\"");
    check_model(model);
    BpeSource source;
    source.pipeline = read_bpe_pipeline(root_, file_);
    source.vocabulary_file = source.merges_file = file_;
    source.merge_unit = "merge";
    read_vocabulary(model, source);
    read_merges(model, source);
    take_added_tokens(read_added_tokens(root_, file_), file_, source);
    return source;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    refuse_bpe(file_, fmt::format(format, std::forward<Args>(args)...));
  }

  void check_model(dom::object model) const {
    for (const char* option : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text_or(model[option], "").empty()) refuse("its model sets \"{}\"", option);
    }
    double dropout = 0;
    if (!model["dropout"].get(dropout) && dropout != 0) refuse("its model drops merges at random (\"dropout\")");
  }

  void read_vocabulary(dom::object model, BpeSource& source) const {
    dom::object vocabulary;
    if (model["vocab"].get(vocabulary)) refuse("its model has no object \"vocab\"");
    source.vocabulary = read_json_vocabulary(vocabulary, file_);
  }

  // A merge is "left right" or, since 2024, ["left", "right"].
  void read_merges(dom::object model, BpeSource& source) const {
    dom::array merges;
    if (model["merges"].get(merges)) refuse("its model has no list \"merges\"");
    std::size_t number = 0;
    for (const dom::element merge : merges) {
      ++number;
      std::string_view text, left, right;
      dom::array pair;
      if (!merge.get(text)) {
        left = text.substr(0, text.find(' '));
        right = text.substr(std::min(left.size() + 1, text.size()));
      } else if (!merge.get(pair) && pair.size() == 2) {
        left = text_or(pair.at(0), "");
        right = text_or(pair.at(1), "");
      }
      if (left.empty() || right.empty()) throw_user_error("{}, merge {}: two tokens are needed", file_, number);
      source.merges.push_back({std::string(left), std::string(right), number});
    }
  }

  dom::object root_;
  std::string file_;  // in quotes, for messages
};

}  // namespace

BpeModel read_bpe_json(dom::object root, const std::string& file, const TokenizerConfig& config) {
  BpeSource source = BpeJson(root, file).read();
  take_config(config, source, /*is_pair=*/false);
  BpeModel model = build_bpe_model(source);
  config.require_tokens(model.tokens);
  require_tokens_of_class(config, model);
  return model;
}

}  // namespace teratron

// Byte-level BPE in a tokenizer.json.
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
    check_pipeline();
    BpeSource source;
    source.vocabulary_file = source.merges_file = file_;
    source.merge_unit = "merge";
    source.add_prefix_space = is_true(root_["pre_tokenizer"]["add_prefix_space"], true);
    read_vocabulary(model, source);
    read_merges(model, source);
    take_added_tokens(read_added_tokens(root_, file_), file_, source);
    return source;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw_user_error("{} is not a byte-level BPE tokenizer with GPT-2's splitter, the kind supported: {}", file_,
                     fmt::format(format, std::forward<Args>(args)...));
  }

  void check_model(dom::object model) const {
    for (const char* option : {"byte_fallback", "ignore_merges"}) {
      if (is_true(model[option], false)) refuse("its model sets \"{}\"", option);
    }
    for (const char* option : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text_or(model[option], "").empty()) refuse("its model sets \"{}\"", option);
    }
    double dropout = 0;
    if (!model["dropout"].get(dropout) && dropout != 0) refuse("its model drops merges at random (\"dropout\")");
  }

  void check_pipeline() const {
    if (const std::string_view type = type_of_step(root_, "normalizer"); !type.empty())
      refuse("its normalizer is '{}'", type);
    if (const std::string_view type = type_of_step(root_, "pre_tokenizer"); type != "ByteLevel") {
      refuse("its pre_tokenizer is '{}'", type.empty() ? "null" : type);
    }
    const auto splitter = root_["pre_tokenizer"];
    if (!is_true(splitter["use_regex"], true)) refuse("its pre_tokenizer does not split (\"use_regex\" is false)");
    if (const std::string_view type = type_of_step(root_, "decoder"); !type.empty() && type != "ByteLevel") {
      refuse("its decoder is '{}'", type);
    }
    dom::element post_processor;
    if (!root_["post_processor"].get(post_processor) && !post_processor.is_null()) check_adds_nothing(post_processor);
  }

  // ByteLevel changes offsets only. transformers 5 writes a template that is the sequence itself.
  void check_adds_nothing(dom::element processor) const {
    const std::string_view type = text_or(processor["type"], "of unknown type");
    if (type == "ByteLevel") return;
    if (type == "Sequence") {
      dom::array processors;
      if (processor["processors"].get(processors)) refuse("its post_processor is a Sequence without a list");
      for (const dom::element member : processors) check_adds_nothing(member);
      return;
    }
    if (type != "TemplateProcessing") refuse("its post_processor is '{}'", type);
    dom::array pieces;
    if (processor["single"].get(pieces)) refuse("its post_processor is a template without a list \"single\"");
    std::size_t sequences = 0;
    for (const dom::element piece : pieces) {
      if (!piece["SpecialToken"].error()) {
        refuse("its post_processor adds '{}' to every text", text_or(piece["SpecialToken"]["id"], "a token"));
      }
      if (text_or(piece["Sequence"]["id"], "") == "A") ++sequences;
    }
    if (sequences != 1 || pieces.size() != 1) refuse("its post_processor's template is more than the text itself");
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
  return model;
}

}  // namespace teratron

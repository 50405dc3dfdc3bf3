// Hugging Face's tokenizer.json (github.com/huggingface/tokenizers): a pipeline of steps, of which we take the one that
// is GPT-2's and refuse every other by name, since it would give other tokens.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/bpe_files.h"

namespace teratron {
namespace {

namespace dom = simdjson::dom;

class TokenizerJson {
 public:
  TokenizerJson(dom::object root, std::string file) : root_(root), file_(std::move(file)) {}

  BpeSource read() const {
    dom::object model;
    if (root_["model"].get(model)) refuse("it has no \"model\"");
    check_model(model);
    check_pipeline();
    BpeSource source;
    source.vocabulary_file = source.merges_file = file_;
    source.merge_unit = "merge";
    read_vocabulary(model, source);
    read_merges(model, source);
    read_added_tokens(source);
    return source;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw_user_error("{} is not a byte-level BPE tokenizer with GPT-2's splitter, the kind supported: {}", file_,
                     fmt::format(format, std::forward<Args>(args)...));
  }

  static std::string_view text_or(simdjson::simdjson_result<dom::element> value, std::string_view otherwise) {
    std::string_view text;
    return value.get(text) ? otherwise : text;
  }

  static bool is_true(simdjson::simdjson_result<dom::element> value, bool if_absent) {
    bool flag = false;
    return value.get(flag) ? if_absent : flag;
  }

  // The "type" of a step of the pipeline; empty where there is no such step.
  std::string_view type_of(const char* step) const {
    dom::element value;
    if (root_[step].get(value) || value.is_null()) return {};
    return text_or(value["type"], "of unknown type");
  }

  void check_model(dom::object model) const {
    // Files of before 2021 name no type; then the merges tell.
    const std::string_view type = text_or(model["type"], model["merges"].error() ? "of unknown type" : "BPE");
    if (type != "BPE") refuse("its model is '{}'", type);
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
    if (const std::string_view type = type_of("normalizer"); !type.empty()) refuse("its normalizer is '{}'", type);
    if (const std::string_view type = type_of("pre_tokenizer"); type != "ByteLevel") {
      refuse("its pre_tokenizer is '{}'", type.empty() ? "null" : type);
    }
    const auto splitter = root_["pre_tokenizer"];
    if (is_true(splitter["add_prefix_space"], true)) refuse("its pre_tokenizer sets \"add_prefix_space\"");
    if (!is_true(splitter["use_regex"], true)) refuse("its pre_tokenizer does not split (\"use_regex\" is false)");
    if (const std::string_view type = type_of("decoder"); !type.empty() && type != "ByteLevel") {
      refuse("its decoder is '{}'", type);
    }
    dom::element post_processor;
    if (!root_["post_processor"].get(post_processor) && !post_processor.is_null()) check_adds_nothing(post_processor);
  }

  // ByteLevel moves offsets alone. transformers 5 writes a template that is the sequence itself.
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
    for (const auto [text, value] : vocabulary) {
      std::int64_t id = 0;
      if (value.get(id)) throw_user_error("{}: the id of token '{}' is not a whole number", file_, text);
      source.vocabulary.push_back({std::string(text), id});
    }
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

  void read_added_tokens(BpeSource& source) const {
    dom::array added;
    if (root_["added_tokens"].get(added)) return;
    for (const dom::element token : added) {
      std::int64_t id = 0;
      const std::string_view text = text_or(token["content"], "");
      if (text.empty() || token["id"].get(id)) {
        throw_user_error("{}: an added token needs a \"content\" that is not empty and an \"id\"", file_);
      }
      for (const char* option : {"lstrip", "rstrip", "single_word"}) {
        if (is_true(token[option], false)) refuse("its added token '{}' sets \"{}\"", text, option);
      }
      source.added.push_back({std::string(text), id});
    }
  }

  dom::object root_;
  std::string file_;  // in quotes, for messages
};

}  // namespace

BpeModel read_tokenizer_json(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  dom::parser parser;
  dom::object root;
  if (const auto error = parser.parse(content).get(root)) {
    throw_user_error("'{}' is not a tokenizer.json: {}", path.string(), simdjson::error_message(error));
  }
  return build_bpe_model(TokenizerJson(root, fmt::format("'{}'", path.string())).read());
}

}  // namespace teratron

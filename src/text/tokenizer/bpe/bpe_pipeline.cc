// The steps beside the model in a tokenizer.json: exactly those of the families in README.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/bpe/roberta.h"
#include "tokenizer/tokenizer_json.h"

namespace teratron {
namespace {

namespace dom = simdjson::dom;

struct Expression {
  BpeSplitter splitter;
  std::string_view text;
};
constexpr auto kExpressions = std::to_array<Expression>(
    {{BpeSplitter::kLlama3,
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
     {BpeSplitter::kQwen2,
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}});

std::string_view type_of(const dom::element& step) { return text_or(step["type"], "of unknown type"); }

class PipelineReader {
 public:
  PipelineReader(dom::object root, std::string_view file) : root_(root), file_(file) {}

  BpePipeline read() {
    pipeline_.ignore_merges = is_true(root_["model"]["ignore_merges"], false);
    is_true(root_["model"]["byte_fallback"], false) ? read_sentence_piece() : read_byte_level();
    if (const auto processor = step("post_processor")) read_post_processor(*processor);
    return pipeline_;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    refuse_bpe(file_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::optional<dom::element> step(const char* name) const {
    dom::element value;
    if (root_[name].get(value) || value.is_null()) return std::nullopt;
    return value;
  }
  // The members of a Sequence, or the step itself; none if there is no such step.
  std::vector<dom::element> members(const char* name, const char* list) const {
    const std::optional<dom::element> whole = step(name);
    if (!whole) return {};
    dom::array array;
    if (type_of(*whole) != "Sequence") return {*whole};
    if ((*whole)[list].get(array)) refuse("its {} is a Sequence without a list \"{}\"", name, list);
    return {array.begin(), array.end()};
  }
  // Refuses a step by its kind, or by those of a Sequence's members.
  [[noreturn]] void refuse_step(const char* name, const std::vector<dom::element>& steps) const {
    std::string types;
    for (const dom::element& one : steps) types += fmt::format("{}'{}'", types.empty() ? "" : ", ", type_of(one));
    const bool is_sequence = type_of_step(root_, name) == "Sequence";
    refuse("its {} is {}", name,
           is_sequence     ? fmt::format("'Sequence' of {}", types.empty() ? "nothing" : types)
           : types.empty() ? "'null'"
                           : types);
  }

  void read_byte_level() {
    const std::vector<dom::element> normalizers = members("normalizer", "normalizers");
    pipeline_.nfc = normalizers.size() == 1 && type_of(normalizers[0]) == "NFC";
    if (!normalizers.empty() && !pipeline_.nfc) refuse_step("normalizer", normalizers);
    const std::vector<dom::element> steps = members("pre_tokenizer", "pretokenizers");
    if (steps.empty() || steps.size() > 2 || type_of(steps.back()) != "ByteLevel") refuse_step("pre_tokenizer", steps);
    const bool adds_space = is_true(steps.back()["add_prefix_space"], true);
    bool needs_expression = true;
    if (steps.size() == 2) {
      if (adds_space) refuse("its pre_tokenizer puts a space before each part (\"add_prefix_space\")");
      if (type_of(steps[0]) == "Split") {
        pipeline_.splitter = splitter_of(steps[0]);
        needs_expression = false;
      } else if (type_of(steps[0]) == "Digits" && is_true(steps[0]["individual_digits"], false)) {
        pipeline_.splitter = BpeSplitter::kDigits;
      } else {
        refuse_step("pre_tokenizer", steps);
      }
    }
    if (is_true(steps.back()["use_regex"], true) != needs_expression) {
      refuse("its pre_tokenizer {}", needs_expression ? "does not split (\"use_regex\" is false)"
                                                      : "splits a second time (\"use_regex\" is true)");
    }
    if (adds_space) pipeline_.prefix = BpePrefix::kUnlessSpace;
    const std::string_view decoder = type_of_step(root_, "decoder");
    if (!decoder.empty() && decoder != "ByteLevel") refuse("its decoder is '{}'", decoder);
  }

  BpeSplitter splitter_of(const dom::element& split) const {
    const std::string_view text = text_or(split["pattern"]["Regex"], "");
    const auto known = std::ranges::find(kExpressions, text, &Expression::text);
    if (known == kExpressions.end()) {
      refuse("its pre_tokenizer splits by another expression than Llama 3's and Qwen 2's: '{}'", text);
    }
    if (text_or(split["behavior"], "") != "Isolated" || is_true(split["invert"], false)) {
      refuse("its pre_tokenizer's Split is not \"Isolated\", or inverted");
    }
    return known->splitter;
  }

  void read_sentence_piece() {
    if (pipeline_.ignore_merges) refuse("its model sets \"ignore_merges\" and \"byte_fallback\"");
    pipeline_.splitter = BpeSplitter::kSentencePiece;
    const std::vector<dom::element> normalizers = members("normalizer", "normalizers");
    const std::vector<dom::element> steps = members("pre_tokenizer", "pretokenizers");
    if (steps.empty()) {
      const bool prepends = !normalizers.empty() && type_of(normalizers[0]) == "Prepend" &&
                            text_or(normalizers[0]["prepend"], "") == kSpaceSign;
      if (normalizers.size() != (prepends ? 2 : 1) || !is_replacement(normalizers.back(), " ", kSpaceSign)) {
        refuse_step("normalizer", normalizers);
      }
      pipeline_.prefix = prepends ? BpePrefix::kAlways : BpePrefix::kNever;
    } else {
      if (!normalizers.empty()) refuse_step("normalizer", normalizers);
      if (steps.size() != 1 || type_of(steps[0]) != "Metaspace") refuse_step("pre_tokenizer", steps);
      read_metaspace(steps[0]);
    }
    read_sentence_piece_decoder();
  }

  static bool is_replacement(const dom::element& step, std::string_view from, std::string_view to) {
    return type_of(step) == "Replace" && text_or(step["pattern"]["String"], "") == from &&
           text_or(step["content"], "") == to;
  }

  void read_metaspace(const dom::element& metaspace) {
    if (text_or(metaspace["replacement"], "") != kSpaceSign) refuse("its Metaspace replaces by another sign than ▁");
    const bool adds_space = is_true(metaspace["add_prefix_space"], true);  // before 2024, in place of the scheme
    const std::string_view scheme = text_or(metaspace["prepend_scheme"], adds_space ? "always" : "never");
    if (scheme != "always" && scheme != "first" && scheme != "never") refuse("its prepend_scheme is '{}'", scheme);
    pipeline_.prefix = scheme == "always"  ? BpePrefix::kUnlessSpace
                       : scheme == "first" ? BpePrefix::kUnlessSpaceAtStart
                                           : BpePrefix::kNever;
    if (is_true(metaspace["split"], true)) pipeline_.splitter = BpeSplitter::kMetaspace;
  }

  void read_sentence_piece_decoder() {
    const std::vector<dom::element> steps = members("decoder", "decoders");
    const bool begins_well = steps.size() >= 3 && steps.size() <= 4 && is_replacement(steps[0], kSpaceSign, " ") &&
                             type_of(steps[1]) == "ByteFallback" && type_of(steps[2]) == "Fuse";
    if (!begins_well) refuse_step("decoder", steps);
    if (steps.size() == 3) return;
    std::int64_t start = 0, stop = -1;
    if (type_of(steps[3]) != "Strip" || steps[3]["start"].get(start) || steps[3]["stop"].get(stop) || start != 1 ||
        stop != 0 || text_or(steps[3]["content"], "") != " ") {
      refuse_step("decoder", steps);
    }
    pipeline_.strips_space = true;
  }

  // ByteLevel changes offsets only. A template may put one token before the text; transformers 5 also writes a template
  // that is the text alone.
  void read_post_processor(const dom::element& processor) {
    const std::string_view type = type_of(processor);
    if (type == "ByteLevel") return;
    if (type == "Sequence") {
      dom::array processors;
      if (processor["processors"].get(processors)) refuse("its post_processor is a Sequence without a list");
      for (const dom::element member : processors) read_post_processor(member);
      return;
    }
    if (type == "RobertaProcessing") return read_roberta_frame(processor);
    if (type != "TemplateProcessing") refuse("its post_processor is '{}'", type);
    dom::array pieces;
    if (processor["single"].get(pieces)) refuse("its post_processor is a template without a list \"single\"");
    std::size_t texts = 0;
    for (const dom::element piece : pieces) {
      if (text_or(piece["Sequence"]["id"], "") == "A") {
        ++texts;
        continue;
      }
      const std::string_view token = text_or(piece["SpecialToken"]["id"], "");
      if (texts > 0 || token.empty() || !pipeline_.beginning.empty()) {
        refuse("its post_processor adds '{}' to every text, and one token before it is the most", token);
      }
      require_id(processor, token);
      pipeline_.beginning = token;
    }
    if (texts != 1) refuse("its post_processor's template is more than the text itself");
  }

  // Checks RoBERTa's frame, <s> and </s>. The pipeline keeps nothing of it: the vocabulary implies it (bpe/roberta.h).
  void read_roberta_frame(const dom::element& processor) const {
    for (const auto& [name, text] : {std::pair<const char*, std::string_view>{"cls", "<s>"}, {"sep", "</s>"}}) {
      if (is_framing_token(processor[name], text, id_of_added(text))) continue;
      refuse("its post_processor frames texts by other tokens than <s> and </s> (\"{}\")", name);
    }
    for (const std::string_view text : {std::string_view("<pad>"), kRobertaMask}) {
      if (id_of_added(text) < 0) refuse("its post_processor is RoBERTa's, and it has no token {}", text);
    }
  }

  // The id of an added token; -1: there is none.
  std::int64_t id_of_added(std::string_view text) const {
    for (const AddedToken& added : read_added_tokens(root_, file_)) {
      if (added.token.text == text) return added.token.id;
    }
    return -1;
  }

  // Refuses a template whose own list gives the token another id than the vocabulary does.
  void require_id(const dom::element& processor, std::string_view token) const {
    std::int64_t id = -1;
    const std::int64_t listed = id_of_added(token);
    dom::object tokens;
    dom::array ids;
    const bool has_ids = !processor["special_tokens"].get(tokens) && !tokens[token]["ids"].get(ids) && ids.size() == 1;
    if (!has_ids || ids.at(0).get(id) || id != listed) {
      refuse("its post_processor adds '{}' to every text, which is no added token with the same id", token);
    }
  }

  dom::object root_;
  std::string_view file_;
  BpePipeline pipeline_;
};

std::string byte_level_json(bool adds_space, bool uses_expression) {
  return fmt::format(R"({{"type": "ByteLevel", "add_prefix_space": {}, "trim_offsets": true, "use_regex": {}}})",
                     adds_space, uses_expression);
}

std::string pre_tokenizer_json(const BpePipeline& pipeline) {
  if (pipeline.splitter == BpeSplitter::kGpt2) return byte_level_json(pipeline.prefix != BpePrefix::kNever, true);
  if (pipeline.splitter == BpeSplitter::kDigits) {
    return fmt::format(
        R"({{"type": "Sequence", "pretokenizers": [{{"type": "Digits", "individual_digits": true}}, {}]}})",
        byte_level_json(false, true));
  }
  const auto* const known = std::ranges::find(kExpressions, pipeline.splitter, &Expression::splitter);
  if (known != kExpressions.end()) {
    return fmt::format(R"({{"type": "Sequence", "pretokenizers": [{{"type": "Split", "pattern": {{"Regex": {}}}, )"
                       R"("behavior": "Isolated", "invert": false}}, {}]}})",
                       json_string(known->text), byte_level_json(false, false));
  }
  if (pipeline.prefix == BpePrefix::kAlways) return "null";
  return fmt::format(R"({{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{}", "split": {}}})",
                     pipeline.prefix == BpePrefix::kNever         ? "never"
                     : pipeline.prefix == BpePrefix::kUnlessSpace ? "always"
                                                                  : "first",
                     pipeline.splitter == BpeSplitter::kMetaspace);
}

std::string normalizer_json(const BpePipeline& pipeline) {
  if (pipeline.nfc) return R"({"type": "NFC"})";
  if (pipeline.prefix != BpePrefix::kAlways) return "null";
  return R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, )"
         R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})";
}

std::string decoder_json(const BpePipeline& pipeline) {
  if (!pipeline.is_sentence_piece()) return byte_level_json(pipeline.prefix != BpePrefix::kNever, true);
  return fmt::format(R"({{"type": "Sequence", "decoders": [{{"type": "Replace", "pattern": {{"String": "▁"}}, )"
                     R"("content": " "}}, {{"type": "ByteFallback"}}, {{"type": "Fuse"}}{}]}})",
                     pipeline.strips_space ? R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})" : "");
}

std::string post_processor_json(const BpePipeline& pipeline, std::optional<std::int32_t> beginning) {
  const std::string byte_level = byte_level_json(pipeline.prefix != BpePrefix::kNever, true);
  if (!beginning) return pipeline.is_sentence_piece() ? "null" : byte_level;
  const std::string token = json_string(pipeline.beginning);
  const std::string put_before = fmt::format(
      R"({{"type": "TemplateProcessing", "single": [{{"SpecialToken": {{"id": {0}, "type_id": 0}}}}, )"
      R"({{"Sequence": {{"id": "A", "type_id": 0}}}}], "pair": [{{"SpecialToken": {{"id": {0}, "type_id": 0}}}}, )"
      R"({{"Sequence": {{"id": "A", "type_id": 0}}}}, {{"SpecialToken": {{"id": {0}, "type_id": 1}}}}, )"
      R"({{"Sequence": {{"id": "B", "type_id": 1}}}}], "special_tokens": {{{0}: )"
      R"({{"id": {0}, "ids": [{1}], "tokens": [{0}]}}}}}})",
      token, *beginning);
  if (pipeline.is_sentence_piece()) return put_before;
  return fmt::format(R"({{"type": "Sequence", "processors": [{}, {}]}})", byte_level, put_before);
}

}  // namespace

void refuse_bpe(std::string_view file, std::string_view why) {
  throw_user_error(
      "{} is not a BPE tokenizer of a kind that is supported (GPT-2, GPT-NeoX, Llama 2 and 3, Mistral, Qwen 2 and 3, "
      "RoBERTa, SmolLM): {}",
      file, why);
}

BpePipeline read_bpe_pipeline(dom::object root, std::string_view file) { return PipelineReader(root, file).read(); }

std::string bpe_pipeline_json(const BpeModel& model, std::optional<std::int32_t> beginning) {
  const BpePipeline& pipeline = model.pipeline;
  const std::optional<RobertaTokens> roberta = roberta_tokens(model);
  return fmt::format("\"normalizer\": {},\n\"pre_tokenizer\": {},\n\"post_processor\": {},\n\"decoder\": {}",
                     normalizer_json(pipeline), pre_tokenizer_json(pipeline),
                     roberta ? roberta_post_processor_json(model, *roberta) : post_processor_json(pipeline, beginning),
                     decoder_json(pipeline));
}

}  // namespace teratron

#include "cli/generate/embed_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/report.h"
#include "cli/text_format.h"

namespace teratron {
namespace {

std::vector<std::pair<std::string, Pooling>> pooling_choices() {
  return {std::begin(kPoolingNames), std::end(kPoolingNames)};
}

}  // namespace

Faults EmbedOptions::faults() const {
  Faults faults = layout.faults();
  faults.add(backend.faults());
  add_output_faults(faults, "--out", out, json);
  return faults;
}

FieldList fields_of(EmbedOptions& o) {
  FieldList list;
  list.add_positional(&o.text, "TEXT",
                      "texts, one a line, or JSON lines; plain or compressed (gzip, zstd); -: standard input");
  list.add("load", &o.load, "DIR", "checkpoint of a BERT, or a folder of Hugging Face's").required = true;
  list.add("out", &o.out, "FILE", "the vectors, [lines, hidden] in float32, as NumPy's .npy; -: standard output")
      .writes()
      .required = true;
  add_overwrite_field(list, o.overwrite);
  list.add("tokenizer", &o.tokenizer, "DIR", "the one saved with the model if not given");
  add_text_format_fields(list, o.format, o.json_key);
  // A folder of sentence-transformers says what the next three are where they are not given.
  list.add_choice("pooling", o.vectors.pooling, pooling_choices(),
                  "a text's vector: the mean of all its tokens', that of [CLS] before it, ... as sentence-transformers "
                  "calls them; without the flag, as its folders say")
      .when_set = [&o] { o.gives_pooling = true; };
  list.add("normalize", &o.vectors.normalize, "",
           "vectors have length 1, so that products are cosines; --normalize=false: not even where the folder says so")
      .when_set = [&o] { o.gives_normalize = true; };
  list.add("seq-length", &o.seq_length, "N",
           "tokens of a text at most, with [CLS] and [SEP]; 0: as the folder says, else the model's positions")
      .between(0);
  list.add("batch-size", &o.batch, "N", "texts computed at a time").between(1, 1 << 16);
  add_model_parallel_fields(list, o.layout);
  add_process_fields(list, o.layout);
  add_json_field(list, o.json);
  add_loaded_precision_fields(list, o.backend);
  add_backend_fields(list, o.backend);
  return list;
}

std::string take_from(const SentenceTransformer& folder, EmbedOptions& options) {
  std::string given;
  const auto choose = [&](bool is_given, auto& value, const auto& there, const std::string& flag) {
    if (!is_given) value = there;
    if (is_given && value != there) given += (given.empty() ? "" : " ") + flag;
  };
  choose(options.gives_pooling, options.vectors.pooling, folder.pooling,
         fmt::format("--pooling {}", name_of(options.vectors.pooling)));
  choose(options.gives_normalize, options.vectors.normalize, folder.normalize,
         fmt::format("--normalize={}", options.vectors.normalize));
  choose(options.seq_length > 0, options.seq_length, folder.max_tokens,
         fmt::format("--seq-length {}", options.seq_length));
  std::string text = fmt::format("'{}' is a sentence-transformer: --pooling {}{}", options.load.string(),
                                 name_of(folder.pooling), folder.normalize ? " --normalize" : "");
  if (folder.max_tokens > 0) text += fmt::format(" --seq-length {}", folder.max_tokens);
  if (!folder.prompt.empty()) text += fmt::format(", and its prompt \"{}\" before each text", folder.prompt);
  return given.empty() ? text : fmt::format("{}; but {}, as given", text, given);
}

void require_positions(const EmbedOptions& options, const WeightSource& source) {
  const std::int64_t positions = source.model.max_position_embeddings;
  if (options.seq_length <= positions && options.seq_length != 1) return;
  throw_user_error("--seq-length {} must be from 2 to the {} positions of the model in '{}'", options.seq_length,
                   positions, source.folder.string());
}

std::int64_t most_tokens(const EmbedOptions& options, const WeightSource& source) {
  const std::int64_t positions = source.model.max_position_embeddings;
  return options.seq_length == 0 ? positions : std::min(options.seq_length, positions);
}

}  // namespace teratron

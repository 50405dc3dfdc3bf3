// teratron convert: checkpoints to and from the folders that Hugging Face's transformers read and write.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/initial_weights.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/long_task.h"
#include "runtime/loaded_model.h"

namespace teratron {
namespace {

enum class Format { kHuggingFace, kTeratron };

struct ConvertOptions {
  Format from = Format::kHuggingFace, to = Format::kTeratron;
  std::filesystem::path in, out, json;

  Faults faults() const {
    Faults faults;
    faults.add_if(from == to, "{} and {} name the same format; one is hf, the other teratron", Flag{"from"},
                  Flag{"to"});
    return faults;
  }
};

FieldList fields_of(ConvertOptions& o) {
  FieldList list;
  list.add_positional(&o.in, "IN", "folder to read");
  list.add_positional(&o.out, "OUT", "folder to write, new or empty");
  list.add_choice("from", o.from, {{"hf", Format::kHuggingFace}, {"teratron", Format::kTeratron}}, "format of IN")
      .required = true;
  list.add_choice("to", o.to, {{"hf", Format::kHuggingFace}, {"teratron", Format::kTeratron}}, "format of OUT")
      .required = true;
  add_json_field(list, o.json);
  return list;
}

// Its files are copied as they are, and what cannot be used later is told now.
void check_tokenizer(const std::filesystem::path& folder, std::int64_t vocab_size) {
  if (!holds_tokenizer(folder)) return;
  const auto refuse = [&](std::string_view why) {
    throw_user_error("the tokenizer in '{}' cannot go along: {}; to convert the weights alone, move its files away",
                     folder.string(), why);
  };
  std::int64_t tokens = 0;
  try {
    tokens = Tokenizer::load(folder).vocab_size();
  } catch (const UserError& error) {
    refuse(error.what());
  }
  if (tokens > vocab_size) refuse(fmt::format("it has {} tokens, and the model {}", tokens, vocab_size));
}

void run(const ConvertOptions& options) {
  std::filesystem::path written = options.out;
  std::optional<LongTask> told(std::in_place, fmt::format("converting '{}'", options.in.string()));
  if (options.to == Format::kHuggingFace) {
    const CheckpointInfo checkpoint = read_checkpoint_info(options.in);
    check_tokenizer(checkpoint.folder, checkpoint.model.vocab_size);
    export_to_hugging_face(options.in, options.out);
  } else {
    const HuggingFaceFolder source(options.in);
    check_tokenizer(options.in, source.model().vocab_size);
    if (!source.drawn().empty()) fmt::print(stderr, "{}\n", text_of_drawn(options.in, source.drawn()));
    written = import_from_hugging_face(options.in, options.out);
  }
  told.reset();
  const nlohmann::ordered_json json = {{"from", options.in.string()}, {"to", written.string()}};
  report(options.json, fmt::format("'{}' written from '{}'\n", written.string(), options.in.string()), json.dump());
}

}  // namespace

Command convert_command() {
  return make_command<ConvertOptions>("convert", "converts checkpoints to and from Hugging Face's format", run);
}

}  // namespace teratron

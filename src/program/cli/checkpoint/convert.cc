// teratron convert: checkpoints to and from the folders that Hugging Face's transformers read and write.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/output_lock.h"
#include "base/host/standard_streams.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/checkpoint.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "runtime/loaded_model.h"
#include "telemetry/checkpoint_progress.h"

namespace teratron {
namespace {

enum class Format { kHuggingFace, kTeratron };

constexpr std::int64_t kFileBytes = 5'000'000'000;
constexpr Flag kMaxFileSize{"max-file-size"};

struct ConvertOptions {
  Format from = Format::kHuggingFace, to = Format::kTeratron;
  std::filesystem::path in, out, json;
  std::int64_t max_file_size = kFileBytes;

  Faults faults() const {
    Faults faults;
    faults.add_if(from == to, "{} and {} name the same format; one is hf, the other teratron", Flag{"from"},
                  Flag{"to"});
    faults.add_if(max_file_size < 0, "{} is {}; it must be at least 0 (0: one file)", kMaxFileSize, max_file_size);
    faults.add_if(to == Format::kTeratron && max_file_size != kFileBytes, "{} is for {} hf", kMaxFileSize, Flag{"to"});
    return faults;
  }
};

FieldList fields_of(ConvertOptions& o) {
  FieldList list;
  list.add_positional(&o.in, "IN", "folder to read");
  list.add_positional(&o.out, "OUT", "folder to write, new or empty").writes();
  list.add_choice("from", o.from, {{"hf", Format::kHuggingFace}, {"teratron", Format::kTeratron}}, "format of IN")
      .required = true;
  list.add_choice("to", o.to, {{"hf", Format::kHuggingFace}, {"teratron", Format::kTeratron}}, "format of OUT")
      .required = true;
  list.add("max-file-size", &o.max_file_size, "BYTES",
           "most bytes of tensors in a file, to hf; a larger tensor has its own; 0: one file");
  add_json_field(list, o.json);
  return list;
}

// Checks a tokenizer before its files are copied as they are.
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

std::string doing(const ConvertOptions& options) { return fmt::format("converting '{}'", options.in.string()); }

std::uint64_t bytes_of_weights(const ModelConfig& model) {
  return static_cast<std::uint64_t>(model.parameters()) * sizeof(float);
}

std::filesystem::path to_hugging_face(const ConvertOptions& options) {
  const CheckpointInfo checkpoint = read_checkpoint_info(options.in);
  check_tokenizer(checkpoint.folder, checkpoint.model.vocab_size);
  if (checkpoint.model.head == ModelHead::kClassification && checkpoint.model.label_names.empty()) {
    fmt::print(stderr, "note: the labels of '{}' have no names; id2label will have LABEL_0, LABEL_1, ..\n",
               checkpoint.folder.string());
  }
  const std::uint64_t bytes = bytes_of_weights(checkpoint.model);
  // Half of the progress is comparing checksums, the other half writing to the new folder.
  const LongTask progress(doing(options), [&, compared = share_of_checksums(bytes)] {
    const double written = static_cast<double>(bytes_of_folder(options.out)) / static_cast<double>(bytes);
    return (compared() + written) / 2;
  });
  export_to_hugging_face(options.in, options.out, static_cast<std::uint64_t>(options.max_file_size));
  return options.out;
}

std::filesystem::path to_teratron(const ConvertOptions& options) {
  const HuggingFaceFolder source(options.in);
  check_tokenizer(options.in, source.model().vocab_size);
  if (!source.drawn().empty()) report_to_user(text_of_drawn(options.in, source.drawn()));
  if (std::error_code error; std::filesystem::exists(options.in / "modules.json", error)) {
    report_to_user(fmt::format(
        "warning: what modules.json in '{}' says of vectors does not go along; give `teratron embed` that folder, "
        "or --pooling, --normalize and --seq-length",
        options.in.string()));
  }
  const LongTask progress(doing(options), share_of_checksums(bytes_of_weights(source.model())));
  return import_from_hugging_face(options.in, options.out);
}

void run(const ConvertOptions& options) {
  const OutputLock lock(options.out);
  const std::filesystem::path written =
      options.to == Format::kHuggingFace ? to_hugging_face(options) : to_teratron(options);
  const nlohmann::ordered_json json = {{"from", options.in.string()}, {"to", written.string()}};
  report(options.json, fmt::format("'{}' written from '{}'\n", written.string(), options.in.string()),
         json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

Command convert_command() {
  return make_command<ConvertOptions>("convert", "converts checkpoints to and from Hugging Face's format", run);
}

}  // namespace teratron

// teratron convert: checkpoints to and from the folders that Hugging Face's transformers read and write, to the files
// of llama.cpp, and from those of nanoGPT, llm.c and Megatron-LM.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "base/host/standard_streams.h"
#include "checkpoint/adapter_files.h"
#include "checkpoint/foreign/foreign_model.h"
#include "checkpoint/gguf/gguf.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/tokenizer_files.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "runtime/loaded_model.h"
#include "telemetry/checkpoint_progress.h"
#include "tokenizer/chat_template_file.h"
#include "tokenizer/gguf_vocabulary.h"

namespace teratron {
namespace {

enum class Format { kHuggingFace, kTeratron, kGguf, kPeft, kNanoGpt, kLlmC, kMegatron };

// Format of a program whose files are read alone.
std::optional<ForeignFormat> foreign_format(Format format) {
  switch (format) {
    case Format::kNanoGpt: return ForeignFormat::kNanoGpt;
    case Format::kLlmC: return ForeignFormat::kLlmC;
    case Format::kMegatron: return ForeignFormat::kMegatron;
    default: return std::nullopt;
  }
}

constexpr std::int64_t kFileBytes = 5'000'000'000;
constexpr Flag kMaxFileSize{"max-file-size"}, kMerge{"merge"}, kBaseModel{"base"};

struct ConvertOptions {
  Format from = Format::kHuggingFace, to = Format::kTeratron;
  GgufType type = GgufType::kF32;
  bool gives_type = false;
  std::filesystem::path in, out, json;
  std::filesystem::path base;  // of kPeft
  bool merge = false;
  std::int64_t max_file_size = kFileBytes;

  Faults faults() const {
    Faults faults;
    add_name_fault(faults, "OUT", out);
    faults.add_if(from == to && !merge, "{} and {} name the same format; choose another to write", Flag{"from"},
                  Flag{"to"});
    faults.add_if(max_file_size < 0, "{} is {}; it must be at least 0 (0: one file)", kMaxFileSize, max_file_size);
    faults.add_if(to != Format::kHuggingFace && max_file_size != kFileBytes, "{} is for {} hf", kMaxFileSize,
                  Flag{"to"});
    faults.add_if(gives_type && to != Format::kGguf, "{} is for {} gguf; other formats keep the weights' type",
                  Flag{"type"}, Flag{"to"});
    faults.add_if(merge && (from != Format::kTeratron || to != Format::kTeratron),
                  "{} makes a whole model of a checkpoint of adapters: {} teratron {} teratron", kMerge, Flag{"from"},
                  Flag{"to"});
    const bool is_peft = from == Format::kPeft || to == Format::kPeft;
    faults.add_if(is_peft && from != Format::kTeratron && to != Format::kTeratron,
                  "peft is a format of adapters, and becomes teratron, or is made of it");
    faults.add_if(foreign_format(from) && to != Format::kTeratron,
                  "nanogpt, llmc and megatron become teratron: {} teratron; what that writes converts to the others",
                  Flag{"to"});
    faults.add_if(from == Format::kPeft && base.empty(), "{} peft needs the model that the adapters are beside: {} DIR",
                  Flag{"from"}, kBaseModel);
    faults.add_if(from != Format::kPeft && !base.empty(), "{} is for {} peft", kBaseModel, Flag{"from"});
    return faults;
  }
};

FieldList fields_of(ConvertOptions& o) {
  FieldList list;
  list.add_positional(&o.in, "IN", "folder to read; of nanogpt, llmc and megatron a file, or the folder that has it");
  list.add_positional(&o.out, "OUT", "folder to write; of hf new or empty, of gguf a new file").writes();
  list.add_choice("from", o.from,
                  {{"hf", Format::kHuggingFace},
                   {"teratron", Format::kTeratron},
                   {"peft", Format::kPeft},
                   {"nanogpt", Format::kNanoGpt},
                   {"llmc", Format::kLlmC},
                   {"megatron", Format::kMegatron}},
                  "format of IN; peft: adapters; nanogpt: ckpt.pt; llmc: gpt2_124M.bin; megatron: model_optim_rng.pt")
      .required = true;
  list.add_choice("to", o.to,
                  {{"hf", Format::kHuggingFace},
                   {"teratron", Format::kTeratron},
                   {"gguf", Format::kGguf},
                   {"peft", Format::kPeft}},
                  "format of OUT")
      .required = true;
  list.add("merge", &o.merge, "", "make a whole model of adapters and the model that they are beside");
  list.add("base", &o.base, "DIR", "from peft: the model that the adapters are beside");
  list.add("max-file-size", &o.max_file_size, "BYTES",
           "most bytes of tensors in a file, to hf; a larger tensor has its own; 0: one file");
  list.add_choice("type", o.type,
                  {{"f32", GgufType::kF32},
                   {"f16", GgufType::kF16},
                   {"bf16", GgufType::kBf16},
                   {"q8_0", GgufType::kQ8},
                   {"q4_0", GgufType::kQ4}},
                  "of a GGUF file's matrices; vectors stay f32")
      .when_set = [&o] { o.gives_type = true; };
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
  if (tells_labels(checkpoint.model.head) && checkpoint.model.num_labels > 1 && checkpoint.model.label_names.empty()) {
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

std::filesystem::path from_foreign(const ConvertOptions& options, ForeignFormat format) {
  const ForeignModel source(format, options.in);
  const bool is_folder = std::filesystem::is_directory(options.in);
  const std::filesystem::path folder = is_folder ? options.in : "." / options.in.parent_path();
  check_tokenizer(folder, source.model().vocab_size);
  if (source.lacks_biases()) {
    report_to_user(fmt::format(
        "note: '{}' has no biases; here they are zeros, with which it computes the same, and training changes them",
        options.in.string()));
  }
  const LongTask progress(doing(options), share_of_checksums(bytes_of_weights(source.model())));
  return import_foreign(source, folder, options.out);
}

void require_new_file(const std::filesystem::path& out) {
  std::error_code error;
  const auto type = std::filesystem::status(out, error).type();
  if (type == std::filesystem::file_type::not_found) return require_writable(out);
  throw_user_error("OUT must be a new file: '{}' is there already, and nothing is overwritten", out.string());
}

GgufVocabulary vocabulary_in(const std::filesystem::path& folder, std::int64_t vocab_size) {
  try {
    return gguf_vocabulary(Tokenizer::load(folder), vocab_size);
  } catch (const UserError& error) {
    throw_user_error("the tokenizer in '{}' cannot go along: {}; to convert the weights alone, move its files away",
                     folder.string(), error.what());
  }
}

// Metadata of the tokenizer in `folder`, or that there is none. Adds to `notes` what llama.cpp does otherwise.
// UserError: llama.cpp has no such tokenizer.
GgufMetadata gguf_tokenizer(const std::filesystem::path& folder, std::int64_t vocab_size,
                            std::vector<std::string>& notes) {
  if (!holds_tokenizer(folder)) {
    notes.emplace_back("there is no tokenizer to go along: llama.cpp takes token ids alone from the file");
    return {{"tokenizer.ggml.model", std::string("none")}};
  }
  GgufVocabulary vocabulary = vocabulary_in(folder, vocab_size);
  notes.insert(notes.end(), vocabulary.notes.begin(), vocabulary.notes.end());
  GgufMetadata values = {{"tokenizer.ggml.model", vocabulary.model},
                         {"tokenizer.ggml.tokens", std::move(vocabulary.tokens)},
                         {"tokenizer.ggml.token_type", std::move(vocabulary.types)},
                         {"tokenizer.ggml.add_bos_token", vocabulary.adds_beginning},
                         {"tokenizer.ggml.add_eos_token", false},
                         {"tokenizer.ggml.add_space_prefix", vocabulary.adds_space},
                         {"tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(vocabulary.end_of_text)}};
  const auto add_id = [&](const char* key, std::optional<std::int32_t> id) {
    if (id) values.emplace_back(key, static_cast<std::uint32_t>(*id));
  };
  add_id("tokenizer.ggml.bos_token_id", vocabulary.beginning);
  add_id("tokenizer.ggml.unknown_token_id", vocabulary.unknown);
  if (auto chat = find_chat_template(folder)) values.emplace_back("tokenizer.chat_template", std::move(chat->text));
  if (!vocabulary.scores.empty()) values.emplace_back("tokenizer.ggml.scores", std::move(vocabulary.scores));
  if (vocabulary.splitter.empty()) return values;
  values.emplace_back("tokenizer.ggml.pre", vocabulary.splitter);
  values.emplace_back("tokenizer.ggml.merges", std::move(vocabulary.merges));
  return values;
}

std::filesystem::path to_gguf(const ConvertOptions& options) {
  require_new_file(options.out);
  const bool is_checkpoint = options.from == Format::kTeratron;
  const WeightSource source = is_checkpoint ? source_of(read_checkpoint_info(options.in)) : find_weights(options.in);
  check_tokenizer(source.folder, source.model.vocab_size);
  std::vector<std::string> notes;
  const GgufMetadata tokenizer = gguf_tokenizer(source.folder, source.model.vocab_size, notes);
  const std::uint64_t bytes = bytes_of_weights(source.model);
  const std::filesystem::path partial = AtomicFile::partial_of(options.out);
  const LongTask progress(doing(options), [=] {
    std::error_code error;
    const std::uintmax_t written = std::filesystem::file_size(partial, error);
    return error ? 0 : static_cast<double>(written) / static_cast<double>(bytes);
  });
  const std::vector<std::string> more =
      export_to_gguf(is_checkpoint ? GgufSource::kCheckpoint : GgufSource::kHuggingFace, options.in, options.out,
                     options.type, tokenizer);
  notes.insert(notes.end(), more.begin(), more.end());
  for (const std::string& note : notes) report_to_user("note: " + note);
  return options.out;
}

std::filesystem::path to_peft(const ConvertOptions& options) {
  export_to_peft(options.in, options.out);
  return options.out;
}

std::filesystem::path convert(const ConvertOptions& options) {
  if (options.merge) return merge_adapters(options.in, options.out);
  if (const auto format = foreign_format(options.from)) return from_foreign(options, *format);
  if (options.from == Format::kPeft) return import_from_peft(options.in, options.base, options.out);
  switch (options.to) {
    case Format::kHuggingFace: return to_hugging_face(options);
    case Format::kTeratron: return to_teratron(options);
    case Format::kGguf: return to_gguf(options);
    case Format::kPeft: return to_peft(options);
    default: break;
  }
  return {};
}

void run(const ConvertOptions& options) {
  const OutputLock lock(options.out);
  const std::filesystem::path written = convert(options);
  const nlohmann::ordered_json json = {{"from", options.in.string()}, {"to", written.string()}};
  report(options.json, fmt::format("'{}' written from '{}'\n", written.string(), options.in.string()), json);
}

}  // namespace

Command convert_command() {
  return make_command<ConvertOptions>("convert", "converts checkpoints to and from the formats of other programs", run);
}

}  // namespace teratron

// teratron convert: checkpoints to and from the folders that Hugging Face's transformers read and write.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/hugging_face/hugging_face.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/long_task.h"

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
  list.add_positional(&o.out, "OUT", "folder to write");
  list.add_choice("from", o.from, {{"hf", Format::kHuggingFace}, {"teratron", Format::kTeratron}}, "format of IN")
      .required = true;
  list.add_choice("to", o.to, {{"hf", Format::kHuggingFace}, {"teratron", Format::kTeratron}}, "format of OUT")
      .required = true;
  add_json_field(list, o.json);
  return list;
}

void run(const ConvertOptions& options) {
  std::filesystem::path written = options.out;
  std::optional<LongTask> told(std::in_place, fmt::format("converting '{}'", options.in.string()));
  if (options.to == Format::kHuggingFace) {
    export_to_hugging_face(options.in, options.out);
  } else {
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

// teratron checkpoint info: model and progress of a checkpoint, by its checkpoint.json alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "checkpoint/native/checkpoint.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "model/family.h"

namespace teratron {
namespace {

struct CheckpointInfoOptions {
  std::filesystem::path checkpoint, json;
};

FieldList fields_of(CheckpointInfoOptions& o) {
  FieldList list;
  list.add_positional(&o.checkpoint, "DIR", "folder that was saved to, or one checkpoint in it");
  add_json_field(list, o.json);
  return list;
}

std::string table_of(const CheckpointInfo& info) {
  const ModelConfig& model = info.model;
  TextTable table({Align::kLeft, Align::kLeft});
  table.row({"checkpoint", info.folder.string()});
  table.row({"written by", fmt::format("{}, {}", info.written_by, text_of(info.run))});
  table.row(
      {"model", fmt::format("{}, {} parameters: {}, hidden size {}, {}, vocabulary {}, {}", model.family().title,
                            readable_count(static_cast<double>(model.parameters())), counted(model.num_layers, "layer"),
                            model.hidden_size, counted(model.num_attention_heads, "head"),
                            readable_integer(model.vocab_size), counted(model.max_position_embeddings, "position"))});
  table.row({"trained", fmt::format("{}, {}, {}", counted(info.state.iteration, "update"),
                                    counted(info.state.consumed_samples, "sample"),
                                    counted(info.state.consumed_tokens, "token"))});
  table.row({"training can go on", info.has_optimizer ? "yes" : "no, it has no optimizer state"});
  for (const CheckpointFileInfo& file : info.files) {
    const std::string tensors = file.tensors > 0 ? fmt::format(", {}", counted(file.tensors, "tensor")) : "";
    table.row({file.name, readable_bytes(file.bytes) + tensors});
  }
  table.row({"all checkpoints here", fmt::format("{}", fmt::join(info.iterations, ", "))});
  return table.text(0);
}

nlohmann::ordered_json json_of(const CheckpointInfo& info) {
  const ModelConfig& model = info.model;
  nlohmann::ordered_json json = {{"folder", info.folder.string()},
                                 {"written_by", info.written_by},
                                 {"run", text_of(info.run)},
                                 {"iteration", info.state.iteration},
                                 {"consumed_samples", info.state.consumed_samples},
                                 {"consumed_tokens", info.state.consumed_tokens},
                                 {"seed", info.state.seed},
                                 {"learning_rate", info.state.learning_rate},
                                 {"has_optimizer", info.has_optimizer},
                                 {"iterations", info.iterations}};
  json["model"] = {{"model_type", model.family().name},
                   {"parameters", model.parameters()},
                   {"num_layers", model.num_layers},
                   {"hidden_size", model.hidden_size},
                   {"num_attention_heads", model.num_attention_heads},
                   {"vocab_size", model.vocab_size},
                   {"max_position_embeddings", model.max_position_embeddings}};
  json["files"] = nlohmann::ordered_json::array();
  for (const CheckpointFileInfo& file : info.files) {
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"tensors", file.tensors}, {"values", file.values}});
  }
  return json;
}

void run(const CheckpointInfoOptions& options) {
  const CheckpointInfo info = read_checkpoint_info(options.checkpoint);
  report(options.json, table_of(info), json_of(info));
}

}  // namespace

Command checkpoint_info_command() {
  return make_command<CheckpointInfoOptions>("checkpoint info", "shows what a checkpoint holds", run);
}

}  // namespace teratron

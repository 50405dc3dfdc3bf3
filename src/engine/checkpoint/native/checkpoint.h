// Checkpoints that any layout can read. Under the folder of --save:
//   iter_0000100/model.safetensors       weights by global name, without the padding rows of the vocabulary; of a
//                                        mixed-precision run the fp32 ones, so that nothing is lost; of a model with
//                                        adapters those alone
//   iter_0000100/optimizer.safetensors   "<name>.<slot>" for each slot of the optimizer;
//                                        either may be cut: model-00001-of-00003.safetensors (reshard.h)
//   iter_0000100/vocab.json, ...         the tokenizer's files, so that the folder is all that `generate` needs
//   iter_0000100/config.toml             the settings of the training that wrote it, where known
//                                        (train/config/resume_rules.h)
//   iter_0000100/checkpoint.json         the model's shape, the training state, and the checksums of all of the above
//   latest_checkpointed_iteration.txt    which of them is current (Megatron-LM's name), and a checksum
//   best                                 a link to that of the lowest validation loss, or a task's highest score
//
// A folder is written under another name, brought to the disk, and renamed; the tracker file follows last. So whatever
// ends a save half-way (a crash, a full disk), the checkpoint before it is intact and current.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "model/config.h"
#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

// State from which a run continues bit for bit. Numbers come back exactly; they need not be finite.
struct TrainingState {
  std::int64_t iteration = 0;  // updates done
  std::int64_t consumed_samples = 0, consumed_tokens = 0;
  std::uint64_t seed = 0;
  double learning_rate = 0;                      // of the last update
  std::map<std::string, std::int64_t> counters;  // whatever else a trainer counts or measures
  std::map<std::string, double> values;
  std::int64_t counter(const std::string& name, std::int64_t otherwise = 0) const {
    const auto found = counters.find(name);
    return found == counters.end() ? otherwise : found->second;
  }
  bool operator==(const TrainingState&) const = default;
};

// The command that wrote a checkpoint, and so what can be done with it.
enum class RunKind {
  kTraining,    // train
  kFinetuning,  // finetune
  kConversion,  // convert: weights without a run
};

// The model that a checkpoint's adapters are beside (checkpoint/adapter_base.h).
struct AdapterBase {
  std::filesystem::path folder;  // empty: the checkpoint holds a whole model
  std::string checksum;          // of its weights
  bool operator==(const AdapterBase&) const = default;
};

struct RunOrigin {
  RunKind kind = RunKind::kTraining;
  std::string task;  // of kFinetuning, as its --task names it; empty: older checkpoints do not say
  AdapterBase base = {};
  // How a task's files were read: the flags that the run gave, {"pair-column", "other"}.
  std::map<std::string, std::string> reading = {};
  bool operator==(const RunOrigin&) const = default;
};
std::string text_of(const RunOrigin& origin);  // "finetune --task mnli"

struct SaveOptions {
  RunOrigin run;
  bool optimizer = true;                 // the optimizer's slots too, without which training cannot resume
  std::filesystem::path tokenizer;       // a folder with tokenizer files (or one such file) to copy; empty: none
  std::string settings;                  // what config.toml says; empty: no such file
  std::int64_t keep_last = 0;            // checkpoints kept of those up to this iteration, the new one included; 0: all
  bool best = false;                     // the link `best` is set to this one; its target is never deleted
  std::optional<std::int64_t> replaces;  // the iteration of a checkpoint that the new one makes superfluous
};

// Returns the new checkpoint's folder; one of the same iteration is replaced. Host memory: a few MB, whatever the
// model's size. EnvironmentError: a full disk, no permission. UserError: `tokenizer` holds no tokenizer. `parameters`
// are those of the whole model, in the order of the files. Where they lie on several ranks, every rank of `mesh`
// (nullptr: the caller alone) calls it, those that another stage holds (Parameter::stage) without memory, and rank 0
// writes; it returns when the checkpoint stands, on all of them. UserError, on all of them: a value is not finite;
// checkpoints that stand stay as they are.
std::filesystem::path save_checkpoint(const std::filesystem::path& root, const ModelConfig& config,
                                      std::span<Parameter* const> parameters, Backend& backend,
                                      const TrainingState& state, const SaveOptions& options = {},
                                      const Mesh* mesh = nullptr);

struct LoadOptions {
  bool optimizer = true;  // its slots too
  bool verify = true;     // compare every checksum, and refuse values that are not finite
};

// `path` is a folder that was saved to (its current checkpoint is taken) or one checkpoint's folder. Fills the values
// and slots of all parameters that have memory, padding rows with zero. A checkpoint of any layout can be read by any
// other; each rank reads its own parts. Stored values of another floating type are converted. `parameters` are those of
// the whole model, or some of them; from a checkpoint of adapters, these alone are filled. UserError: no checkpoint
// there; another model (all differences at once); damage (which file and tensor, and which earlier checkpoint is
// intact); values that are not finite; no optimizer state where it was asked for. After an error the parameters are
// undefined.
TrainingState load_checkpoint(const std::filesystem::path& path, const ModelConfig& config,
                              std::span<Parameter* const> parameters, Backend& backend,
                              const LoadOptions& options = {});

struct CheckpointFileInfo {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t tensors = 0, values = 0;  // 0 for files that hold no tensors
};

struct CheckpointInfo {
  std::filesystem::path folder;  // of the one checkpoint
  std::string written_by;        // "teratron 0.1.0"
  RunOrigin run;
  ModelConfig model;
  TrainingState state;
  bool has_optimizer = false;
  std::optional<std::filesystem::path> settings;  // its config.toml, intact; nothing: saved without
  std::vector<CheckpointFileInfo> files;
  std::vector<std::int64_t> iterations;  // of all checkpoints beside it and itself, ascending
};

// Reads checkpoint.json, and compares config.toml with it. UserError as load_checkpoint.
CheckpointInfo read_checkpoint_info(const std::filesystem::path& path);

struct CheckpointVerification {
  std::filesystem::path folder;
  std::int64_t files = 0, tensors = 0;
  std::uint64_t bytes = 0;          // read and compared
  std::vector<std::string> faults;  // damages, one line each
  bool intact() const { return faults.empty(); }
};

// Reads every byte and lists all damage. UserError: no checkpoint there.
CheckpointVerification verify_checkpoint(const std::filesystem::path& path);

}  // namespace teratron

#include "train/config/output_settings.h"

#include <cmath>
#include <limits>
#include <utility>

#include "checkpoint/native/folders.h"

namespace teratron {

std::filesystem::path OutputSettings::checkpoint() const {
  return load.empty() || iteration == 0 ? load : iteration_folder(load, iteration);
}

Faults OutputSettings::faults() const {
  constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();
  constexpr Flag kSaveInterval{"save-interval"}, kSaveBest{"save-best"}, kEarlyStop{"early-stop"};
  Faults faults;
  faults.need_between(kSaveInterval, save_interval, 0, kMostCount);
  faults.need_between({"iteration"}, iteration, 0);
  faults.add_if(iteration > 0 && load.empty(), "{} {} needs the folder that its checkpoint lies in: {} DIR",
                Flag{"iteration"}, iteration, Flag{"load"});
  faults.need_between({"keep-last"}, keep_last, 0, kMostCount);
  faults.need_between({"log-interval"}, log_interval, 1, kMostCount);
  faults.need_between({"eval-interval"}, eval_interval, 0, kMostCount);
  faults.need_between({"eval-iters"}, eval_iters, 1, kMostCount);
  faults.need_between({"sample-tokens"}, sample_tokens, 1, kMostCount);
  faults.need_between({"check-replicas"}, check_replicas, 0, kMostCount);
  faults.need_between(kEarlyStop, early_stop, 0, kMostCount);
  const auto need_minutes = [&](Flag flag, double minutes, const char* zero) {
    faults.add_if(!(minutes >= 0 && std::isfinite(minutes)), "{} is {}; it must be at least 0 ({})", flag, minutes,
                  zero);
  };
  need_minutes({"save-interval-in-mins"}, save_interval_in_mins, "0: no checkpoints by time");
  need_minutes({"exit-duration-in-mins"}, exit_duration_in_mins, "0: no limit");
  faults.add_if(!(peak_tflops >= 0 && std::isfinite(peak_tflops)), "{} is {}; it must be at least 0 (0: measured)",
                Flag{"peak-tflops"}, peak_tflops);
  faults.add_if(save_best && save.empty(), "{} needs a place to save: {} DIR", kSaveBest, Flag{"save"});
  for (const auto& [flag, asked] : {std::pair{kSaveBest, save_best}, std::pair{kEarlyStop, early_stop > 0}}) {
    faults.add_if(asked && eval_interval == 0,
                  "{} compares validations, and there is one, at the end; say how often "
                  "by {} N",
                  flag, Flag{"eval-interval"});
  }
  faults.add_if(async_save && save.empty(), "{} needs a place to save: {} DIR", Flag{"async-save"}, Flag{"save"});
  faults.add_if(save_interval > 0 && save.empty(), "{} {} needs a place to save: {} DIR", kSaveInterval, save_interval,
                Flag{"save"});
  return faults;
}

void add_output_fields(FieldList& list, OutputSettings& s) {
  list.group("Checkpoints and reports");
  list.add("save", &s.save, "DIR", "where checkpoints, metrics.jsonl and config.toml go").of(FieldScope::kCommand);
  list.add("load", &s.load, "DIR",
           "checkpoint to go on from: its settings hold where nothing else is given, and it is saved there again")
      .of(FieldScope::kStart);
  list.add("iteration", &s.iteration, "N",
           "go on from that checkpoint of --load; saving there sets later ones aside. 0: the current one")
      .of(FieldScope::kStart)
      .alias = "ckpt-step";
  list.add("finetune", &s.finetune, "DIR",
           "start a new run from the weights, shape and tokenizer of a checkpoint or a Hugging Face folder; where "
           "--load has a checkpoint, that counts")
      .of(FieldScope::kCommand);
  list.add("override-opt-param-scheduler", &s.override_schedule, "",
           "let a resumed run follow the learning rate of the flags, not that of its checkpoint")
      .of(FieldScope::kStart);
  list.add("save-interval", &s.save_interval, "N", "updates between checkpoints; 0: --save-interval-in-mins");
  list.add("save-interval-in-mins", &s.save_interval_in_mins, "X",
           "without --save-interval: minutes between checkpoints, each of which replaces the one before; 0: one at the "
           "end");
  list.add("async-save", &s.async_save, "",
           "write checkpoints beside training, from a copy in the memory of the first rank's host");
  list.add("keep-last", &s.keep_last, "N", "checkpoints kept, older ones are deleted; 0: all");
  list.add("log-interval", &s.log_interval, "N", "updates between lines of the log");
  list.add("eval-interval", &s.eval_interval, "N", "updates between validations; 0: one at the end");
  list.add("eval-iters", &s.eval_iters, "N", "batches a validation");
  list.add("check-replicas", &s.check_replicas, "N",
           "updates between comparisons of what ranks hold in common; a difference ends the run. 0: none");
  list.add(
      "trace-numerics", &s.trace_numerics, "",
      "keep norms and extremes of every layer, in numerics.jsonl of --save; if the loss jumps or is not finite, go "
      "back to the last checkpoint, replay, and name the rank, the layer and the documents at fault");
  list.add("save-best", &s.save_best, "", "save after each validation with the lowest loss so far, as --save/best");
  list.add("early-stop", &s.early_stop, "N", "end after so many validations in a row without a lower loss; 0: go on");
  list.add("exit-duration-in-mins", &s.exit_duration_in_mins, "X",
           "end after the update in which the command has run this long; 0: go on")
      .of(FieldScope::kCommand);
  list.add("json", &s.json, "FILE", "results as JSON; - is standard output")
      .writes(FileContent::kJson)
      .of(FieldScope::kStart);
  list.add("tensorboard-dir", &s.tensorboard_dir, "DIR", "curves for TensorBoard, by Megatron-LM's names");
  list.add("sample-prompt", &s.sample_prompts, "TEXT",
           "text that the model continues at every validation, for those who watch; may be given several times")
      .repeats = true;
  list.add("sample-tokens", &s.sample_tokens, "N",
           "by at most so many tokens, each of which takes a forward pass of the text so far");
  list.add("peak-tflops", &s.peak_tflops, "X",
           "what MFU is counted against: 10^12 operations a second of a rank's device; 0: what its largest matrix "
           "products have ever reached here");
  list.add("trace", &s.trace, "FILE",
           "what every stage did when in the last iterations, for Perfetto or chrome://tracing")
      .writes()
      .of(FieldScope::kStart);
  list.add("verbose", &s.verbose, "", "show all settings at the start").of(FieldScope::kCommand);
}

}  // namespace teratron

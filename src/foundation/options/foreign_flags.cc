#include "options/foreign_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace teratron {
namespace {

using enum ForeignProgram;

// Names are those of the programs' own help: Megatron-LM's arguments.py, transformers' TrainingArguments and
// run_clm.py and generate(), nanoGPT's train.py and sample.py, llm.c's train_gpt2.cu.
constexpr ForeignFlag kFlags[] = {
    {kMegatron, "train-samples", "--train-iters N", "updates, not samples"},
    {kMegatron, "lr-decay-samples", "--lr-decay-iters N", "updates, not samples"},
    {kMegatron, "lr-warmup-samples", "--lr-warmup-iters N", "updates, not samples"},
    {kMegatron, "lr-warmup-fraction", "--lr-warmup-iters N", "updates, not a share of them"},
    {kMegatron, "num-layers-per-virtual-pipeline-stage", "--virtual-stages V",
     "cells of a stage, not layers of a cell"},
    {kMegatron, "context-parallel-size", "",
     "sequences are not split over ranks here; --token-slices cuts long ones, slice after slice", true},
    {kMegatron, "num-experts", "", "there is no mixture of experts here", true},
    {kMegatron, "expert-model-parallel-size", "", "there is no mixture of experts here", true},
    {kMegatron, "vocab-file", "--tokenizer DIR", "a folder with vocab.json and merges.txt"},
    {kMegatron, "merge-file", "--tokenizer DIR", "a folder with vocab.json and merges.txt"},
    {kMegatron, "tokenizer-model", "--tokenizer DIR", "a folder with the tokenizer's files"},
    {kMegatron, "tokenizer-type", "--tokenizer DIR", "byte-level BPE"},
    {kMegatron, "train-data-path", "--data-path", "with --valid-data-path"},
    {kMegatron, "recompute-activations", "--recompute-granularity selective", ""},
    {kMegatron, "checkpoint-activations", "--recompute-granularity full", ""},
    {kMegatron, "recompute-method", "--recompute-granularity full", "block's is full:N"},
    {kMegatron, "recompute-num-layers", "--recompute-granularity full:N", "of each cell, the first ones"},
    {kMegatron, "overlap-grad-reduce", "", "always on"},
    {kMegatron, "overlap-param-gather", "", "weights are gathered after the update"},
    {kMegatron, "use-flash-attn", "", "attention never holds the matrix of scores"},
    {kMegatron, "attention-backend", "", "attention never holds the matrix of scores"},
    {kMegatron, "use-mcore-models", "", "each model has one implementation"},
    {kMegatron, "ckpt-format", "", "every layout reads and writes one format"},
    {kMegatron, "transformer-impl", "--backend cpu|cuda", ""},
    {kMegatron, "distributed-backend", "--backend cpu|cuda", "MPI between CPUs, NCCL between GPUs"},
    {kMegatron, "num-workers", "", "batches are read as they are needed"},
    {kMegatron, "log-throughput", "", "always on"},
    {kMegatron, "tensorboard-log-interval", "", "every update is written"},
    {kMegatron, "exit-signal-handler", "", "always on: SIGTERM saves and ends the run"},
    {kMegatron, "exit-interval", "--train-iters N", ""},
    {kMegatron, "group-query-attention", "--num-query-groups N", ""},
    {kMegatron, "swiglu", "--model-type llama", "a family has its activation, norms, positions and biases"},
    {kMegatron, "normalization", "--model-type llama", "a family has its activation, norms, positions and biases"},
    {kMegatron, "position-embedding-type", "--model-type llama",
     "a family has its activation, norms, positions and biases"},
    {kMegatron, "use-rotary-position-embeddings", "--model-type llama",
     "a family has its activation, norms, positions and biases"},
    {kMegatron, "disable-bias-linear", "--model-type llama",
     "a family has its activation, norms, positions and biases"},
    {kMegatron, "qk-layernorm", "--model-type qwen3", ""},
    {kMegatron, "no-load-optim", "--finetune DIR", "weights only"},
    {kMegatron, "no-load-rng", "", "dropout depends on seed and sample alone"},
    {kMegatron, "prompt-file", "--prompts FILE", ""},
    {kMegatron, "muon-num-ns-steps", "", "five, with the quintic's coefficients"},
    {kMegatron, "muon-extra-scale-factor", "", "0.2 sqrt(max(rows, columns)), so that --lr is AdamW's"},
    {kMegatron, "muon-split-qkv", "", "always on"},
    {kHuggingFace, "model-name-or-path", "--finetune DIR", "to train; --load DIR to evaluate and generate"},
    {kHuggingFace, "tokenizer-name", "--tokenizer DIR", ""},
    {kHuggingFace, "train-file", "--data-path PREFIX", "made by teratron data tokenize"},
    {kHuggingFace, "validation-file", "--valid-data-path PREFIX", "made by teratron data tokenize"},
    {kHuggingFace, "dataset-name", "--data-path PREFIX", "made by teratron data tokenize of its Parquet files"},
    {kHuggingFace, "dataloader-num-workers", "", "batches are read as they are needed"},
    {kHuggingFace, "block-size", "--seq-length N", ""},
    {kHuggingFace, "per-device-train-batch-size", "--micro-batch-size N",
     "with --global-batch-size for the samples of an update"},
    {kHuggingFace, "per-device-eval-batch-size", "--micro-batch-size N", ""},
    {kHuggingFace, "gradient-accumulation-steps", "--global-batch-size N",
     "samples of an update: micro-batch times steps times copies"},
    {kHuggingFace, "learning-rate", "--lr X", ""},
    {kHuggingFace, "lr-scheduler-type", "--lr-decay-style cosine|linear|constant|wsd", ""},
    {kHuggingFace, "warmup-steps", "--lr-warmup-iters N", ""},
    {kHuggingFace, "warmup-ratio", "--lr-warmup-iters N", "updates, not a share of them"},
    {kHuggingFace, "max-steps", "--train-iters N", ""},
    {kHuggingFace, "num-train-epochs", "--train-iters N", "updates; the start-up says how many samples an epoch has"},
    {kHuggingFace, "max-grad-norm", "--clip-grad X", ""},
    {kHuggingFace, "adam-epsilon", "--adam-eps X", ""},
    {kHuggingFace, "optim", "--optimizer adamw|muon", ""},
    {kHuggingFace, "gradient-checkpointing", "--recompute-granularity full", ""},
    {kHuggingFace, "output-dir", "--save DIR", ""},
    {kHuggingFace, "overwrite-output-dir", "--save DIR", "a folder that holds a run is never overwritten"},
    {kHuggingFace, "resume-from-checkpoint", "--load DIR", ""},
    {kHuggingFace, "save-strategy", "--save-interval N", "updates; without it a checkpoint comes every ten minutes"},
    {kHuggingFace, "save-steps", "--save-interval N", ""},
    {kHuggingFace, "save-total-limit", "--keep-last N", ""},
    {kHuggingFace, "load-best-model-at-end", "--save-best", "it is in --save/best"},
    {kHuggingFace, "do-train", "", "train and finetune do nothing else"},
    {kHuggingFace, "do-eval", "--eval-interval N", "validation after the last update needs no flag"},
    {kHuggingFace, "eval-strategy", "--eval-interval N", "updates"},
    {kHuggingFace, "evaluation-strategy", "--eval-interval N", "updates"},
    {kHuggingFace, "eval-steps", "--eval-interval N", ""},
    {kHuggingFace, "logging-steps", "--log-interval N", ""},
    {kHuggingFace, "logging-dir", "--tensorboard-dir DIR", ""},
    {kHuggingFace, "report-to", "--tensorboard-dir DIR", "and metrics.jsonl in --save"},
    {kHuggingFace, "use-cpu", "--backend cpu", ""},
    {kHuggingFace, "torch-compile", "", "there is nothing to compile"},
    {kHuggingFace, "max-length", "--max-new-tokens N", "without the prompt's"},
    {kHuggingFace, "num-return-sequences", "--num-samples N", ""},
    {kHuggingFace, "do-sample", "--temperature X", "0 takes the likeliest token"},
    {kNanoGpt, "init-from", "--finetune DIR", "--load DIR to resume"},
    {kNanoGpt, "dataset", "--data-path PREFIX", "made by teratron data tokenize"},
    {kNanoGpt, "batch-size", "--micro-batch-size N", "with --global-batch-size for the samples of an update"},
    {kNanoGpt, "n-layer", "--num-layers N", ""},
    {kNanoGpt, "n-head", "--num-attention-heads N", ""},
    {kNanoGpt, "n-embd", "--hidden-size N", ""},
    {kNanoGpt, "dropout", "--hidden-dropout P --attention-dropout P", ""},
    {kNanoGpt, "max-iters", "--train-iters N", ""},
    {kNanoGpt, "warmup-iters", "--lr-warmup-iters N", ""},
    {kNanoGpt, "beta1", "--adam-beta1 X", ""},
    {kNanoGpt, "beta2", "--adam-beta2 X", ""},
    {kNanoGpt, "grad-clip", "--clip-grad X", ""},
    {kNanoGpt, "decay-lr", "--lr-decay-style constant", "if it is False there"},
    {kNanoGpt, "out-dir", "--save DIR", ""},
    {kNanoGpt, "always-save-checkpoint", "--save-interval N", "--save-best for the other case"},
    {kNanoGpt, "dtype", "--bf16", "or --fp16; fp32 without either"},
    {kNanoGpt, "device", "--backend cpu|cuda", ""},
    {kNanoGpt, "compile", "", "there is nothing to compile"},
    {kNanoGpt, "wandb-log", "--tensorboard-dir DIR", "and metrics.jsonl in --save"},
    {kNanoGpt, "start", "--prompt TEXT", ""},
    {kLlmC, "i", "--data-path PREFIX", "made by teratron data tokenize"},
    {kLlmC, "j", "--valid-data-path PREFIX", "made by teratron data tokenize"},
    {kLlmC, "e", "--finetune DIR", "a descriptor such as d12 is --num-layers 12, and so on"},
    {kLlmC, "o", "--save DIR", ""},
    {kLlmC, "y", "--load DIR", "to resume"},
    {kLlmC, "b", "--micro-batch-size N", ""},
    {kLlmC, "t", "--seq-length N", ""},
    {kLlmC, "d", "--global-batch-size N", "samples, not tokens"},
    {kLlmC, "l", "--lr X", ""},
    {kLlmC, "k", "--lr-decay-style cosine|linear|constant|wsd", ""},
    {kLlmC, "u", "--lr-warmup-iters N", ""},
    {kLlmC, "q", "--min-lr X", "the rate itself, not a share of --lr"},
    {kLlmC, "c", "--weight-decay X", ""},
    {kLlmC, "x", "--train-iters N", ""},
    {kLlmC, "v", "--eval-interval N", ""},
    {kLlmC, "m", "--eval-iters N", ""},
    {kLlmC, "n", "--save-interval N", ""},
    {kLlmC, "z", "--use-distributed-optimizer", "stage 1"},
    {kLlmC, "r", "--recompute-granularity selective", ""},
    {kOthers, "resume", "--load DIR", ""},
    {kOthers, "epochs", "--train-iters N", "updates; the start-up says how many samples an epoch has"},
    {kOthers, "num-epochs", "--train-iters N", "updates; the start-up says how many samples an epoch has"},
    {kOthers, "wandb", "--tensorboard-dir DIR", "and metrics.jsonl in --save; nothing is sent to Weights & Biases"},
    {kOthers, "wandb-project", "--tensorboard-dir DIR",
     "and metrics.jsonl in --save; nothing is sent to Weights & Biases"},
    {kOthers, "wandb-name", "--tensorboard-dir DIR",
     "and metrics.jsonl in --save; nothing is sent to Weights & Biases"},
    {kOthers, "num-workers", "--threads N", "of data commands; training reads batches as it needs them"},
    {kOthers, "lora", "--lora-rank N", "with --finetune DIR"},
    {kOthers, "lora-r", "--lora-rank N", "with --finetune DIR"},
    {kOthers, "lora-target-modules", "--lora-targets NAMES", "with commas between"},
    {kOthers, "use-rslora", "--rslora", ""},
    {kOthers, "use-lora", "--lora-rank N", "with --finetune DIR"},
    {kOthers, "use-peft", "--lora-rank N", "with --finetune DIR"},
    {kOthers, "beta", "--dpo-beta X", "with --dpo"},
    {kOthers, "pref-beta", "--dpo-beta X", "with --dpo"},
    {kOthers, "load-in-8bit", "", "not in training; generate, serve, embed, eval: --weights q8_0", true},
    {kOthers, "load-in-4bit", "", "not in training; generate, serve, embed, eval: --weights q4_0", true},
    {kOthers, "deepspeed", "--use-distributed-optimizer", "with --dp N: ZeRO's stage 1"},
    {kOthers, "fsdp", "--use-distributed-optimizer", "with --dp N: ZeRO's stage 1"},
};

std::string with_hyphens(std::string_view text) {
  std::string out(text);
  std::ranges::replace(out, '_', '-');
  return out;
}

std::string sentence_of(const ForeignFlag& flag) {
  if (flag.is_missing) return std::string(flag.note);
  const std::string note = flag.note.empty() ? "" : fmt::format(" ({})", flag.note);
  if (flag.ours.empty()) return fmt::format("{}'s is not needed here{}; leave it out", name_of(flag.program), note);
  return fmt::format("what {} call{} so is {} here{}", name_of(flag.program), flag.program == kOthers ? "" : "s",
                     flag.ours, note);
}

}  // namespace

std::string_view name_of(ForeignProgram program) {
  switch (program) {
    case kMegatron: return "Megatron-LM";
    case kHuggingFace: return "Hugging Face";
    case kNanoGpt: return "nanoGPT";
    case kLlmC: return "llm.c";
    case kOthers: return "others";
  }
  return "";
}

std::span<const ForeignFlag> foreign_flags() { return kFlags; }

std::vector<std::string> our_flags(const ForeignFlag& flag) {
  std::istringstream words{std::string(flag.ours)};
  std::vector<std::string> names;
  for (std::string word; words >> word;) {
    if (word.starts_with("--")) names.push_back(word.substr(2));
  }
  return names;
}

std::string foreign_flag_hint(std::string_view flag, const std::function<bool(const std::string&)>& has_flag) {
  const std::string name = with_hyphens(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  const bool is_letter = name.size() == 1;
  std::string otherwise;
  for (const ForeignFlag& known : kFlags) {
    if (known.name != name || (is_letter && flag.starts_with("--"))) continue;
    // What training does not need may have an equal in other commands.
    if (known.ours.empty() && !has_flag("micro-batch-size")) {
      if (otherwise.empty()) otherwise = sentence_of(known);
    } else if (std::ranges::all_of(our_flags(known), has_flag)) {
      return sentence_of(known);
    }
  }
  return otherwise;
}

}  // namespace teratron

#include "cli/generate/generate_options.h"

#include <algorithm>

#include "base/files/free_place.h"
#include "cli/report.h"
#include "runtime/loaded_model.h"

namespace teratron {

Faults GenerateOptions::faults() const {
  Faults faults = settings.sampling.faults();
  faults.add(layout.faults());
  faults.add(backend.faults());
  faults.add_if(!prompts.empty() && !prompt.empty(), "{} and {} exclude each other", Flag{"prompt"}, Flag{"prompts"});
  faults.add_if(std::ranges::count(stop_texts, "") > 0, "{} is empty; leave it out, or give a text", Flag{"stop"});
  return faults;
}

FieldList fields_of(GenerateOptions& o) {
  FieldList list;
  list.group("Prompts");
  list.add("load", &o.load, "DIR", "checkpoint to generate with, or a folder of Hugging Face's").required = true;
  list.add("prompt", &o.prompt, "TEXT", "text to continue; empty: start of a document");
  list.add("prompts", &o.prompts, "FILE",
           "many of them, one a line; - is standard input. Blank lines count for nothing");
  list.add_choice("prompts-format", o.prompt_format,
                  {{"auto", TextFormat::kAuto},
                   {"lines", TextFormat::kText},
                   {"jsonl", TextFormat::kJsonLines},
                   {"text", TextFormat::kText}},
                  "lines or text: a prompt a line; jsonl: {\"prompt\": TEXT} or {\"text\": TEXT} a line; auto: what is "
                  "seen in FILE, whatever its name")
      .alias = "format";
  list.add_choice("truncate-prompt", o.long_prompt,
                  {{"no", LongPrompt::kRefuse}, {"left", LongPrompt::kCutLeft}, {"right", LongPrompt::kCutRight}},
                  "where a prompt longer than the context loses what is too much; no: it is an error");
  list.add("tokenizer", &o.tokenizer, "DIR", "the one saved with the checkpoint if not given");
  list.group("Generation");
  list.add("max-new-tokens", &o.settings.max_new_tokens, "N", "most tokens to add").between(0);
  list.add("num-samples", &o.samples, "N", "texts for each prompt").between(1, 1 << 24);
  list.add("stop", &o.stop_texts, "TEXT", "ends a text where TEXT would come; may be given several times").repeats =
      true;
  list.add("ignore-end-of-text", &o.ignore_end, "", "go on after an end of text");
  list.add("temperature", &o.settings.sampling.temperature, "X", "0: always the likeliest token");
  list.add("top-k", &o.settings.sampling.top_k, "N", "draw from the N likeliest; 0: from all");
  list.add("top-p", &o.settings.sampling.top_p, "P", "then from the likeliest that together reach P");
  list.add("repetition-penalty", &o.settings.sampling.repetition_penalty, "X",
           "above 1: tokens that were there become less likely (arXiv 1909.05858)");
  list.add("seed", &o.seed, "N", "of the draws");
  list.add("prompt-logprobs", &o.settings.prompt_log_probabilities, "", "those of the prompt, too, in the JSON");
  list.add("batch-size", &o.batch, "N", "texts at a time, which changes none; 0: at most 32 that take a GiB")
      .between(0);
  add_model_parallel_fields(list, o.layout);
  add_process_fields(list, o.layout);
  list.add("json", &o.json, "LINES",
           "a file of an object a line for each text, in order; - is standard output, and nothing else")
      .writes(FileContent::kJsonLines)
      .when_set = [&o] { require_writable(o.json); };
  add_loaded_precision_fields(list, o.backend);
  add_backend_fields(list, o.backend);
  return list;
}

}  // namespace teratron

// Model files of llm.c.
#include "checkpoint/foreign/foreign_model.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  const ForeignModel model(ForeignFormat::kLlmC, put("a.bin", input));
  for (std::size_t i = 0; i < model.parameters().size(); ++i) model.pass_on(i, [](std::span<const std::byte>) {});
}

#include "cli/scoring.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cli/report.h"
#include "telemetry/readable.h"

namespace teratron {

std::vector<std::string> ScoringOptions::faults() const {
  std::vector<std::string> faults;
  if (stride < 0) faults.push_back(fmt::format("--overlapping-eval is {}; it must not be negative", stride));
  if (batch < 1) faults.push_back(fmt::format("--micro-batch-size is {}; it must be at least 1", batch));
  if (threads < 0) faults.push_back(fmt::format("--threads is {}; 0 is one a core", threads));
  return faults;
}

void add_scoring_fields(FieldList& list, ScoringOptions& o, std::string stride_help) {
  list.add("tokenizer", &o.tokenizer, "DIR", "the one saved with the checkpoint if not given");
  list.add("overlapping-eval", &o.stride, "N", std::move(stride_help));
  list.add("micro-batch-size", &o.batch, "N", "windows computed at a time");
  list.add("threads", &o.threads, "N", "0: one a core");
  add_json_field(list, o.json);
  list.add("guard-memory", &o.guard_memory, "", "keep tensors unreadable outside of operations (a test)").role =
      FieldRole::kHiddenFlag;
}

ScoringProgress::ScoringProgress(std::int64_t targets) : targets_(targets), live_(::isatty(STDERR_FILENO) != 0) {}

ScoringProgress::~ScoringProgress() {
  if (live_) fmt::print(stderr, "\r\033[K");
}

void ScoringProgress::show(std::int64_t scored, double sum) const {
  if (!live_) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double left = seconds / static_cast<double>(scored) * static_cast<double>(targets_ - scored);
  fmt::print(stderr, "\r\033[Kscored {} of {} targets, loss {:.4f}, {} left", scored, targets_,
             sum / static_cast<double>(scored), readable_duration(left));
}

}  // namespace teratron

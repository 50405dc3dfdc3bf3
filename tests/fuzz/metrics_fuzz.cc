// metrics.jsonl: two files compared, and one that a resumed run goes on with.
#include "fuzz.h"
#include "telemetry/metrics_comparison.h"
#include "telemetry/metrics_log.h"

void teratron::fuzz::parse(std::string_view input) {
  const auto parts = parts_of(input, '\x1e');
  const auto a = put("a.jsonl", parts.front()), b = put("b.jsonl", parts.back());
  try {
    const MetricsComparison same = compare_metrics(a, a);
    require(!same.first_difference, "a file is as itself");
    compare_metrics(a, b, 0.5);
  } catch (const UserError&) {
  }
  MetricsLog log(b, 2, {"loss"});
  log.write(2, {{"loss", 1.5}});
}

// Sections of a run's page that draw something: curves, layout, data, evaluations.
#pragma once

#include <string>
#include <vector>

#include "html/page.h"
#include "html/run_record.h"
#include "html/run_report.h"

namespace teratron {

// Whole number of a log, for people; a log may hold any value.
std::string readable_whole(double value);

// Charts of the numbers of the logs that vary, losses first, and of memory even where it does not; a curve a run.
void add_curves(HtmlPage& page, const std::vector<RunRecord>& runs);

// Ranks of one copy of the model: a column a stage with its layers, a row a tensor rank.
void add_layout(HtmlPage& page, const RunRecord& run, bool with_name);

// Sizes of the corpora whose files are still there, and how much of them was read.
void add_data(HtmlPage& page, const std::vector<RunRecord>& runs);

// Numbers of evaluations; those of the Megatron-LM paper beside its own (section 5.3 of arXiv 1909.08053).
void add_evaluations(HtmlPage& page, const std::vector<EvaluationResult>& evaluations);

}  // namespace teratron

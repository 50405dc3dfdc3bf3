// teratron plan --html: a page of planned steps, with more and fewer devices and sequences, on other clusters and of
// other models.
#pragma once

#include "cli/plan/plan_options.h"

namespace teratron {

// Plans a step for a quarter to four times the cluster's devices (of one host no more than it has) and for half and
// twice the batch's sequences, of a preset's model and cluster also of their neighbours, and writes the page.
void write_plan_page(const PlanOptions& given);

}  // namespace teratron

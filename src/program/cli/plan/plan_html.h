// teratron plan --html: the planned steps of more and fewer devices and sequences, as a page.
#pragma once

#include "cli/plan/plan_options.h"

namespace teratron {

// Plans a step for a quarter to four times the cluster's devices and the batch's sequences, and writes the page.
void write_plan_page(const PlanOptions& options);

}  // namespace teratron

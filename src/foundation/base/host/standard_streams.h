// Standard input, output and error as the program finds them: any of them may be closed, full, or a pipe whose reader
// is gone.
#pragma once

#include <string_view>

namespace teratron {

// Opens those of descriptors 0, 1 and 2 that are closed, or the next files that the program opens would get these
// numbers, and progress would be written into them. What is opened can be neither read nor written: a result that is
// lost is an error still. The first thing that main does.
void open_closed_standard_streams();

// SIGPIPE (a pipe whose reader is gone) and SIGXFSZ (a file that reaches the limit of its size) no longer end the
// process where it has no handlers of its own: the write fails, and who wrote decides what that means.
void make_failed_writes_errors();

// A line for people on standard error. Where it cannot be written, it is lost, and nothing else is.
void report_to_user(std::string_view line);

}  // namespace teratron

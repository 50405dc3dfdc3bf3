// Standard input, output and error, any of which may be closed, full, or a pipe whose reader has ended.
#pragma once

#include <string_view>

namespace teratron {

// Opens those of descriptors 0, 1 and 2 that are closed. Otherwise files that the program opens would get these
// numbers, and progress would be written into them. The opened ones can be neither read nor written: a lost result is
// still an error. main() calls it first.
void open_closed_standard_streams();

// Keeps SIGPIPE (a pipe whose reader has ended) and SIGXFSZ (a file at its size limit) from ending the process where it
// has no handlers for them. The write fails, and its caller decides.
void make_failed_writes_errors();

// Writes a line for people to standard error. A line that cannot be written is lost.
void report_to_user(std::string_view line);

}  // namespace teratron

// The files that a command's fields name: those that it writes may not be those that it reads.
#pragma once

#include <string>
#include <vector>

#include "options/fields.h"

namespace teratron {

// Field::written_endings of a corpus, PREFIX.bin and the rest, and of a NAME that may be a file of JSON lines, too.
std::vector<std::string> corpus_files();
std::vector<std::string> corpus_or_lines();

// For `fields` with their values, before the command does anything. UserError: a file to write is one to read, by any
// name, or is written twice; --json would replace a file that holds something else than JSON; standard input, or
// another pipe, is named twice. A folder or pattern stands for the files that commands read of it.
void require_separate_files(const FieldList& fields);

}  // namespace teratron

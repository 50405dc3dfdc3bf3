// teratron man: the manual page, made from the same list of flags as --help.
#include <fmt/format.h>

#include <string>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/report.h"

namespace teratron {
namespace {

struct ManOptions {};

FieldList fields_of(ManOptions&) { return {}; }

std::string section_of(const Command& command) {
  return fmt::format(".SS teratron {}\n.B teratron {}\n{}\n.PP\n{}.\n{}", command.name, command.name,
                     roff_escaped(command.text(usage_text)), roff_escaped("It " + command.summary),
                     command.text(man_text));
}

void run(const ManOptions&) {
  std::string page = fmt::format(
      ".\\\" Made by `teratron man`.\n"
      ".TH TERATRON 1 \"\" \"Teratron {}\" \"User Commands\"\n"
      ".SH NAME\nteratron \\- trains, evaluates and serves transformers: GPT\\-2, Llama, BERT\n"
      ".SH SYNOPSIS\n.B teratron\n.I COMMAND\n[\\fB\\-\\-flag\\fR \\fIvalue\\fR ...]\n.br\n"
      ".B teratron\n.I COMMAND\n.B \\-\\-help\n.RB [ \\-\\-color\n.IR WHEN ]\n.br\n.B teratron \\-\\-version\n"
      ".SH DESCRIPTION\n"
      "A flag may also be written \\fB\\-\\-flag\\fR=\\fIvalue\\fR. After \\fB\\-\\-\\fR there are no more flags. "
      "The value in brackets holds where a flag is not given. "
      "\\fB\\-\\-color\\fR before a command or beside \\fB\\-\\-help\\fR is "
      "auto (on a terminal), always or never.\n"
      ".SH COMMANDS\n",
      kVersion);
  for (const Command& command : all_commands()) page += section_of(command);
  page +=
      ".SH ENVIRONMENT\n"
      ".TP\n.B OMP_NUM_THREADS\nthreads of a process without \\fB\\-\\-threads\\fR\n"
      ".TP\n.B TERATRON_INSTRUCTIONS\nthe processor\\(aqs instructions that kernels use, for the bits of a smaller "
      "processor: "
      "baseline, avx2, avx512, avx512\\-bf16; neon, bfmmla\n"
      ".TP\n.B XDG_CACHE_HOME\nwhere measurements of this machine are kept, in teratron/ (~/.cache)\n"
      ".TP\n.B NO_COLOR\nno colours, unless \\fB\\-\\-color\\fR asks for them\n"
      ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\na bug of Teratron\n.TP\n.B 2\nwrong input\n"
      ".TP\n.B 3\nthe machine failed: disk, memory, permission\n"
      ".TP\n.B 128 + N\nended in good order after signal N\n";
  print_result(page);
}

}  // namespace

Command man_command() { return make_command<ManOptions>("man", "prints the manual page, for man -l -", run); }

}  // namespace teratron

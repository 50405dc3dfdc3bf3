// A paper's published figures (data/papers/NAME.toml): tables of cells, each with the run that it is of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/embedded_file.h"
#include "reproduction/reproduction.h"
#include "train/config/config.h"

namespace teratron::plan {

std::span<const EmbeddedFile> paper_files();  // data/papers, which the program holds

// Value of a TeraPipe cell. Cells of other papers have the value that their unit names (kOfUnit).
enum class CellValue { kOfUnit, kLayer, kWhole, kSliced, kSpeedUp, kSlices, kEven, kBestEven };

struct PaperCell {
  ReproducedCell cell;            // as published; ours is still to be found
  bool is_out_of_memory = false;  // in place of a published number
  std::string beside;  // if not empty: the cell is a ratio, of the cell of its name to this one, both above it
  TrainConfig run;     // by the paper's program
  std::optional<TrainConfig> teratrons_run;         // by Teratron's; none: it cannot run it
  std::optional<TrainConfig> base, teratrons_base;  // the run beside which a share or a speed-up is, by either program
  std::int64_t context = 1;                         // ranks that split each sequence, of which `run` has a share
  std::int64_t updates = 0;                         // of a whole run
  CellValue value = CellValue::kOfUnit;
  std::int64_t number = 0;  // of its slices or tokens
};

// Curve over the runs of some tables.
struct PaperCurve {
  Curve curve;  // without points
  std::vector<std::string> tables;
};

struct Paper {
  std::string title, cluster;
  std::vector<Constant> constants;  // of the paper's program, beside the cluster's
  bool counts_recompute = false;    // operations have the forward that is made again (arXiv 2104.04473)
  std::vector<PaperCell> cells;     // table by table
  std::vector<PaperCurve> curves;
};

// UserError: a setting that `teratron train` has not, or a word that is unknown.
Paper read_paper(const EmbeddedFile& file);
Paper read_paper(std::string_view name);  // of data/papers

// The paper's cells by the cost model.
Reproduction reproduce_paper(const Paper& paper);
Reproduction reproduce_terapipe(Paper paper);

}  // namespace teratron::plan

// Prediction of a published run by the cost model: its program's step on its cluster, with constants of the card's
// generation and of the program, and the memory of its fullest GPU.
#pragma once

#include <string>
#include <string_view>

#include "cluster/cluster.h"
#include "reproduction/published_runs.h"
#include "train/config/config.h"

namespace teratron::plan {

// The scope of a fitted constant (run_constants()) is a generation of cards ("Hopper"), a card ("L40S") or a program
// ("llmq"). Two are no constants of the cost model: "power", the share of a data sheet's rates that a card keeps under
// its limit of power, and "host_share", that of PCIe's rate which the update of state in the host's memory reaches.

// The generation of a preset's card: "Volta", "Ampere", "Hopper", "Ada", "Blackwell".
std::string_view generation_of(std::string_view card);

// The run's machines with the constants of its scopes. A constant is fitted only if `constants` names it.
Cluster cluster_of(const PublishedRun& run, const RunConstants& constants);
// Machines of the run as Teratron's program would use them: the card's constants alone.
Cluster teratrons_cluster_of(const PublishedRun& run, const RunConstants& constants);
TrainConfig config_of(const PublishedRun& run);

// The scope of the run's program: torchtitan without torch.compile, and Megatron-LM on H100, have one of their own; DGX
// Cloud's recipes run NeMo.
std::string program_scope_of(const PublishedRun& run);

// Predicted seconds of an update, and the speeds that follow from them, in the published units.
double step_seconds_of(const PublishedRun& run, const RunConstants& constants);
double tokens_per_second_of(const PublishedRun& run, double seconds);  // of a GPU
double teraflops_of(const PublishedRun& run, double seconds);          // of a GPU, as its program counts them

}  // namespace teratron::plan

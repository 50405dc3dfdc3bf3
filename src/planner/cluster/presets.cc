// Data sheets, as their makers publish them:
// - V100: "NVIDIA Tesla V100 GPU accelerator" (SXM2: 125 TFLOP/s of fp16, 15.7 of fp32, 900 GB/s, six NVLinks of 25
//   GB/s a direction); "NVIDIA DGX-2H" (16 V100-32GB at 450 W, 2.1 PFLOP/s together, twelve NVSwitches, eight EDR
//   InfiniBand cards of 100 Gb/s); AWS "Amazon EC2 P3 instances" (p3.16xlarge: 8 V100-16GB, 25 Gb/s).
// - A100: "NVIDIA A100 80GB" (312 and 19.5 TFLOP/s, 2039 GB/s, NVLink of 300 GB/s a direction); "NVIDIA DGX A100"
//   (eight HDR InfiniBand cards of 200 Gb/s for computing).
// - H100: "NVIDIA H100 SXM5" (989.4 and 66.9 TFLOP/s without sparsity, 3350 GB/s, NVLink of 450 GB/s a direction);
//   "NVIDIA DGX H100" (eight NDR cards of 400 Gb/s). H200: "NVIDIA H200" (the same, 141 GB at 4800 GB/s). Meta's
//   Grand Teton has H100 of 96 GB at 2400 GB/s and 500 W (torchtitan, benchmarks/).
// - A100 of 40 GB: "NVIDIA A100" (1555 GB/s).
// - B200: "NVIDIA DGX B200" (eight: 18 PFLOP/s of dense bf16, 36 of fp8, 1440 GB at 64 TB/s, NVLink of 900 GB/s a
//   direction), eight ports of 400 Gb/s.
// - Ada: "NVIDIA Ada GPU architecture" (RTX 4090: 165.2 TFLOP/s of fp16 with fp32 sums, 330.3 of fp8, 82.6 of fp32,
//   1008 GB/s); "NVIDIA L40S" (362 and 733 TFLOP/s, 91.6 of fp32, 864 GB/s).
// - Blackwell: "NVIDIA RTX Blackwell GPU architecture" (RTX 5090: 209.5, 419 and 104.8 TFLOP/s, 1792 GB/s; RTX 5060
//   Ti, 16 GB: 36 of the 5070's 48 multiprocessors at 2572 MHz, 448 GB/s); "NVIDIA RTX PRO 6000" (503.8, 1007.6 and
//   125 TFLOP/s, 1792 GB/s).
//
// A rank may take what the driver reports less 1 GiB, for the CUDA context, libraries and buffers of communication.
// NVLink spends 1/8 of its bytes on packets' headers and credits: a port carries 7/8 of its rate.
#include <array>

#include "cluster/presets.h"

namespace teratron {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kLinkShare = 7.0 / 8;

LinkLevel nvlink(std::string name, std::int64_t devices, double data_sheet) {
  return {.name = std::move(name),
          .devices = devices,
          .bandwidth = data_sheet * kLinkShare,
          .latency = 5e-6,
          .from = "7/8 of the data sheet's rate; latency of a step of NCCL"};
}

LinkLevel network(std::string name, std::int64_t devices, double bandwidth, double latency, std::string from) {
  return {.name = std::move(name),
          .devices = devices,
          .bandwidth = bandwidth,
          .is_shared = true,
          .latency = latency,
          .from = std::move(from)};
}

// Constants with those that the programs of the two papers have in common.
std::vector<Constant> of_2020(std::vector<Constant> constants) {
  constants.push_back({"writes_scores", 1, "attention of 2019 and 2020 keeps its scores in memory"});
  constants.push_back({"adds_weight_gradients", 1, "the papers' programs add a gradient to the others' sum by itself"});
  constants.push_back({"recomputes_all", 1, "torch.utils.checkpoint runs a layer's whole forward again"});
  constants.push_back({"gradient_bytes", 2, "their gradients are of 16 bits"});
  return constants;
}

// Hosts of a preset before it is resized to the number of devices that the user wants.
constexpr std::int64_t kHosts = 1024;

Cluster dgx_2h() {
  return {.name = "dgx-2h",
          .devices = 16 * kHosts,
          .device = {"V100-SXM3-32GB", 30.7 * kGiB, 2.1e15 / 16, 15.7e12 * 2.1e15 / 16 / 125e12, 900e9, 0, 450},
          .links = {nvlink("NVSwitch", 16, 150e9),
                    network("InfiniBand", 16 * kHosts, 90e9, 10e-6, "90 % of the data sheet's rate")},
          .constants =
              of_2020({{"kernel_start", 153e-6, "fitted to Megatron-LM's cells (docs/plan.md): its program of 2019"},
                       {"sum_interference", 0.5, "fitted to Megatron-LM's cells (docs/plan.md)"}})};
}

Cluster p3_16xlarge() {
  return {
      .name = "p3.16xlarge",
      .devices = 8 * kHosts,
      .device = {"V100-SXM2-16GB", 14.8 * kGiB, 125e12, 15.7e12, 900e9, 0, 300},
      .links = {nvlink("NVLink cube mesh", 8, 150e9),
                network("Ethernet", 8 * kHosts, 2.865e9, 40e-6,
                        "fitted to TeraPipe's cells (docs/plan.md): 92 % of 25 Gb/s")},
      .constants = of_2020({{"kernel_start", 31e-6, "fitted to TeraPipe's cells (docs/plan.md): its program of 2020"},
                            {"copies_cache", 1, "TeraPipe's program joins keys and values anew for each slice"},
                            {"sum_efficiency", 1.91 / 2.865, "fitted to TeraPipe's cells (docs/plan.md): 1.91 GB/s"}})};
}

Cluster dgx_a100() {
  return {.name = "dgx-a100",
          .devices = 8 * kHosts,
          .device = {"A100-SXM4-80GB", 78.1 * kGiB, 312e12, 19.5e12, 2039e9, 0, 400},
          .links = {nvlink("NVSwitch", 8, 300e9),
                    network("InfiniBand", 8 * kHosts, 180e9, 10e-6, "90 % of the data sheet's rate")}};
}

Cluster dgx_a100_40gb() {
  Cluster cluster = dgx_a100();
  cluster.name = "dgx-a100-40gb";
  cluster.device = {"A100-SXM4-40GB", 38.4 * kGiB, 312e12, 19.5e12, 1555e9, 0, 400};
  return cluster;
}

Cluster hopper(std::string name, Device device) {
  return {.name = std::move(name),
          .devices = 8 * kHosts,
          .device = std::move(device),
          .links = {nvlink("NVSwitch", 8, 450e9),
                    network("InfiniBand", 8 * kHosts, 360e9, 10e-6, "90 % of the data sheet's rate")}};
}

Cluster dgx_h100() {
  return hopper("dgx-h100", {"H100-SXM5-80GB", 78.6 * kGiB, 989.4e12, 66.9e12, 3350e9, 1978.9e12, 700});
}
Cluster h200() { return hopper("h200", {"H200-SXM5-141GB", 138.8 * kGiB, 989.4e12, 66.9e12, 4800e9, 1978.9e12, 700}); }

Cluster grand_teton() {
  return hopper("grand-teton", {"H100-SXM5-96GB", 94.1 * kGiB, 989.4e12, 66.9e12, 2400e9, 1978.9e12, 500});
}

Cluster dgx_b200() {
  Cluster cluster = hopper("dgx-b200", {"B200-SXM6-180GB", 177 * kGiB, 2250e12, 75e12, 8000e9, 4500e12, 1000});
  cluster.links[0] = nvlink("NVSwitch", 8, 900e9);
  return cluster;
}

// Cards in a host's slots. Bytes between them go through the host's memory: one card writes them there, another reads.
Cluster slots(std::string name, Device device, double data_sheet) {
  return {.name = std::move(name),
          .devices = 8,
          .device = std::move(device),
          .links = {{.name = "PCIe",
                     .devices = 8,
                     .bandwidth = 0.8 * data_sheet / 2,
                     .latency = 10e-6,
                     .from = "80 % of the data sheet's rate, halved: through the host's memory"}}};
}
constexpr double kPcie4 = 31.5e9, kPcie5 = 63e9;

Cluster rtx_4090() {
  return slots("rtx-4090", {"RTX 4090", 22.5 * kGiB, 165.2e12, 82.6e12, 1008e9, 330.3e12, 450}, kPcie4);
}
Cluster l40s() { return slots("l40s", {"L40S", 43.6 * kGiB, 362e12, 91.6e12, 864e9, 733e12, 350}, kPcie4); }
Cluster rtx_5090() {
  return slots("rtx-5090", {"RTX 5090", 30.4 * kGiB, 209.5e12, 104.8e12, 1792e9, 419e12, 575}, kPcie5);
}
Cluster rtx_5060_ti() {
  constexpr double kShare = 36.0 / 48 * 2572 / 2512;  // of an RTX 5070
  return slots("rtx-5060-ti",
               {"RTX 5060 Ti", 14.5 * kGiB, 61.7e12 * kShare, 30.9e12 * kShare, 448e9, 123.5e12 * kShare, 180},
               kPcie5 / 2);
}
Cluster rtx_pro_6000() {
  return slots("rtx-pro-6000", {"RTX PRO 6000", 94 * kGiB, 503.8e12, 125e12, 1792e9, 1007.6e12, 600}, kPcie5);
}

struct Preset {
  std::string_view name;
  Cluster (*make)();
  std::int64_t devices;  // of a host
};

constexpr std::array kPresets = {Preset{"dgx-2h", dgx_2h, 16},
                                 Preset{"p3.16xlarge", p3_16xlarge, 8},
                                 Preset{"dgx-a100", dgx_a100, 8},
                                 Preset{"dgx-h100", dgx_h100, 8},
                                 Preset{"h200", h200, 8},
                                 Preset{"dgx-a100-40gb", dgx_a100_40gb, 8},
                                 Preset{"grand-teton", grand_teton, 8},
                                 Preset{"dgx-b200", dgx_b200, 8},
                                 Preset{"rtx-4090", rtx_4090, 1},
                                 Preset{"rtx-5060-ti", rtx_5060_ti, 1},
                                 Preset{"rtx-5090", rtx_5090, 1},
                                 Preset{"rtx-pro-6000", rtx_pro_6000, 1},
                                 Preset{"l40s", l40s, 1}};

}  // namespace

std::vector<std::string_view> cluster_preset_names() {
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

std::optional<Cluster> find_cluster_preset(std::string_view name, std::int64_t devices) {
  for (const Preset& preset : kPresets) {
    if (preset.name != name) continue;
    return preset.make().resized(devices == 0 ? preset.devices : devices);
  }
  return std::nullopt;
}

}  // namespace teratron

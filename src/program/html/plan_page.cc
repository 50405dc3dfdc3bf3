#include "html/plan_page.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "console/readable.h"
#include "html/page.h"
#include "report/svg.h"

namespace teratron {
namespace {

constexpr std::string_view kControls = R"html(<div class="controls">
<label id="models">Model <select id="model"></select></label>
<label>Devices <output id="devices-shown"></output><input id="devices" type="range" min="0" step="1"></label>
<label>Sequences an update <output id="sequences-shown"></output><input id="sequences" type="range" min="0" step="1"></label>
<label>Tokens to train on <output id="tokens-shown"></output><input id="tokens" type="range" min="8" max="14" step="0.05"></label>
<label>Dollars a device and hour <input id="price" type="number" min="0" step="0.05"></label>
</div>
<div id="answer" aria-live="polite"></div>
<div id="memory" class="bar"></div><div id="time" class="bar"></div>
<pre id="command"></pre>
)html";

// Reads the table of steps from the page; numbers are those of `teratron plan`.
constexpr std::string_view kScript = R"js(
const plan = JSON.parse(document.querySelector("#plan").textContent);
const devices = [...new Set(plan.steps.map(step => step.devices))], sequences = [...new Set(plan.steps.map(step => step.sequences))];
const element = id => document.querySelector("#" + id);
const short = value => value >= 1e12 ? (value / 1e12).toPrecision(3) + " T" : value >= 1e9 ? (value / 1e9).toPrecision(3) + " G" :
  value >= 1e6 ? (value / 1e6).toPrecision(3) + " M" : String(Math.round(value));
const bytes = value => (value / 2 ** 30).toPrecision(3) + " GiB";
const bar = (target, title, parts, whole) => {
  const text = document.createElement("p"), row = document.createElement("div");
  text.textContent = title + parts.filter(part => part[1] > 0).map(part => part[0]).join(", ");
  for (const [name, value, color] of parts) {
    const piece = document.createElement("i");
    piece.className = color;
    piece.title = name;
    piece.style.width = 100 * Math.min(1, value / whole) + "%";
    row.append(piece);
  }
  target.replaceChildren(text, row);
};
const show = () => {
  const step = plan.steps.find(one => one.model === Number(element("model").value) && one.devices === devices[element("devices").value] && one.sequences === sequences[element("sequences").value]);
  const tokens = 10 ** Number(element("tokens").value), price = Number(element("price").value);
  element("devices-shown").textContent = step.devices;
  element("sequences-shown").textContent = step.sequences;
  element("tokens-shown").textContent = short(tokens);
  const lines = [];
  if (step.fits) {
    const days = tokens / step.tokens_per_second / 86400, hours = days * 24 * step.devices;
    lines.push("It fits: " + step.layout + ".");
    lines.push(`A step takes ${step.seconds.toPrecision(4)} s, ${short(step.tokens_per_second)} tokens a second, MFU ${(100 * step.mfu).toFixed(1)} %.`);
    lines.push(`${short(tokens)} tokens take ${days.toPrecision(3)} days, ${short(hours)} device-hours` +
      (price > 0 ? `, ${short(hours * price)} dollars` : "") +
      (plan.watts > 0 ? `, ${(hours * plan.watts / 1e6).toPrecision(3)} MWh of the devices at full load` : "") + ".");
  } else {
    lines.push(step.layout ? "It does not fit. Least memory: " + step.layout + "." : "No layout has so many devices.");
  }
  element("answer").replaceChildren(...lines.map(line => Object.assign(document.createElement("p"), {textContent: line})));
  bar(element("memory"), "Memory of the fullest rank, of " + bytes(plan.room) + ": ", [[bytes(step.memory), step.memory, step.fits ? "c2" : "c3"]], plan.room);
  const percent = value => (100 * value / step.seconds).toFixed(1) + " %";
  bar(element("time"), "Time of a step: ", step.fits ? [["computing " + percent(step.compute), step.compute, "c0"],
    ["recompute " + percent(step.recompute), step.recompute, "c4"], ["tensor-parallel collectives " + percent(step.tensor), step.tensor, "c1"],
    ["waiting " + percent(step.bubble), step.bubble, "c7"], ["gradient sums and update " + percent(step.after), step.after, "c5"]] : [], step.seconds || 1);
  element("command").textContent = step.command;
};
element("model").replaceChildren(...plan.models.map((name, value) => Object.assign(document.createElement("option"), {value, textContent: name})));
element("models").hidden = plan.models.length < 2;
element("model").value = plan.steps[plan.first].model;
element("devices").max = devices.length - 1;
element("sequences").max = sequences.length - 1;
element("devices").value = devices.indexOf(plan.steps[plan.first].devices);
element("sequences").value = sequences.indexOf(plan.steps[plan.first].sequences);
element("tokens").value = Math.log10(plan.tokens);
element("price").value = plan.price;
for (const id of ["model", "devices", "sequences", "tokens", "price"]) element(id).addEventListener("input", show);
show();
)js";

std::string json_of(const PlanPage& plan) {
  nlohmann::ordered_json json = {{"room", plan.room},
                                 {"watts", plan.watts},
                                 {"tokens", plan.tokens},
                                 {"price", plan.price},
                                 {"first", plan.first},
                                 {"models", plan.models},
                                 {"steps", nlohmann::ordered_json::array()}};
  for (const PlannedStep& step : plan.steps) {
    json["steps"].push_back({{"model", step.model},
                             {"devices", step.devices},
                             {"sequences", step.sequences},
                             {"fits", step.fits},
                             {"layout", step.layout},
                             {"command", step.command},
                             {"memory", step.memory},
                             {"seconds", step.seconds},
                             {"tokens_per_second", step.tokens_per_second},
                             {"mfu", step.mfu},
                             {"compute", step.compute},
                             {"recompute", step.recompute},
                             {"tensor", step.tensor},
                             {"bubble", step.bubble},
                             {"after", step.after}});
  }
  return within_script(json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

std::string plan_page(const PlanPage& plan) {
  HtmlPage page(fmt::format("{} on {}", plan.model, plan.cluster));
  page.paragraph(fmt::format("Planned steps on {}, {} each. The sliders move between them.", plan.device,
                             readable_bytes(static_cast<std::uint64_t>(plan.room))));
  page.html(kControls);
  page.section("All steps");
  std::vector<std::vector<std::string>> rows;
  for (const PlannedStep& step : plan.steps) {
    rows.push_back({plan.models[step.model], readable_integer(step.devices), readable_integer(step.sequences),
                    step.fits ? fmt::format("{:.4g}", step.seconds) : "does not fit",
                    step.fits ? readable_count(step.tokens_per_second) : "",
                    step.fits ? fmt::format("{:.1f}", 100 * step.mfu) : "",
                    step.memory > 0 ? readable_bytes(static_cast<std::uint64_t>(step.memory)) : "", step.layout});
  }
  page.table("", {"model", "devices", "sequences", "step, s", "tokens/s", "MFU, %", "memory", "layout"}, rows);
  page.html(fmt::format("<script type=\"application/json\" id=\"plan\">{}</script>\n<script>{}</script>\n",
                        json_of(plan), kScript));
  return page.finish();
}

}  // namespace teratron

const plan = JSON.parse(document.querySelector("#plan").textContent);
const devices = [...new Set(plan.steps.map(step => step.devices))];
const sequences = [...new Set(plan.steps.map(step => step.sequences))];
const element = id => document.querySelector("#" + id);
const made = (tag, properties = {}, children = []) => {
  const one = Object.assign(document.createElement(tag), properties);
  one.append(...children);
  return one;
};
const short = value =>
  value >= 1e12 ? (value / 1e12).toPrecision(3) + " T" :
  value >= 1e9 ? (value / 1e9).toPrecision(3) + " G" :
  value >= 1e6 ? (value / 1e6).toPrecision(3) + " M" : Math.round(value).toLocaleString("en");
const amount = value => value < 999.5 ? String(Number(value.toPrecision(3))) : short(value);
const bytes = value => value >= 2 ** 30 ? (value / 2 ** 30).toPrecision(3) + " GiB" :
  (value / 2 ** 20).toPrecision(3) + " MiB";
const legend = parts => made("ul", {className: "legend"},
  parts.map(([name, , color]) => made("li", {}, [made("i", {className: color}), name])));
const bar = (target, title, parts, whole) => {
  const shown = parts.filter(part => part[1] > 0);
  const pieces = shown.map(([name, value, color]) => {
    const piece = made("i", {className: color, title: name});
    piece.style.width = 100 * value / Math.max(whole, 1e-300) + "%";
    return piece;
  });
  target.replaceChildren();
  if (!shown.length) return;
  target.append(made("p", {textContent: title}), made("div", {ariaHidden: "true"}, pieces), legend(shown));
};
const kSvg = "http://www.w3.org/2000/svg";
// Runs of equal letters of a row, a rectangle each; waiting is the background.
const drawn = letters => {
  const svg = document.createElementNS(kSvg, "svg");
  svg.setAttribute("viewBox", `0 0 ${letters.length} 1`);
  svg.setAttribute("preserveAspectRatio", "none");
  for (let begin = 0, end; begin < letters.length; begin = end) {
    for (end = begin; letters[end] === letters[begin]; ++end) {}
    if (letters[begin] === "-") continue;
    const block = document.createElementNS(kSvg, "rect");
    const attributes = {x: begin, width: end - begin, height: 1, class: letters[begin]};
    for (const [name, value] of Object.entries(attributes)) block.setAttribute(name, value);
    svg.append(block);
  }
  return svg;
};
const kLetters = [
  ["forward", "F", "c0"],
  ["backward", "B", "c2"],
  ["weight gradients", "W", "c1"],
  ["embedding and head of all stages", "H", "c4"],
  ["gradient sums and update", "S", "c5"],
];
const drawTimeline = step => {
  const timeline = step.timeline, target = element("timeline");
  if (!timeline) return target.replaceChildren();
  const rows = plan.rows[timeline.rows], windows = timeline.windows.length;
  const time = value => Number(value.toPrecision(3));
  const used = kLetters.filter(([, letter]) => rows.some(row => row.toUpperCase().includes(letter)));
  const shares = rows.map((row, i) => {
    const waits = Math.round(100 * row.split("-").length / row.length - 100 / row.length);
    return `stage ${timeline.stages[i]} waits in ${waits} % of it`;
  });
  const grid = made("div", {className: "stages"}, rows.map((row, i) => made("div", {}, [
    made("span", {textContent: timeline.stages[i]}),
    ...timeline.windows.map((_, w) =>
      drawn(row.slice(w * row.length / windows, (w + 1) * row.length / windows))),
  ])));
  grid.setAttribute("role", "img");
  grid.setAttribute("aria-label", "Timeline: " + shares.join(", "));
  grid.append(made("div", {}, [
    made("span"),
    ...timeline.windows.map(([begin, end]) =>
      made("small", {textContent: `${time(begin)} to ${time(end)} s`})),
  ]));
  const title = "Timeline of the pipeline's stages" +
    (windows > 1 ? ", the beginning and the end of a step" : "") +
    "; micro-batches in turns darker and lighter, waiting empty:";
  target.replaceChildren(made("p", {textContent: title}), grid, legend(used));
};
const answerOf = (step, cluster, tokens, price) => {
  if (!step.fits) {
    return [step.layout ? `It does not fit. Least memory: ${step.layout}.` : "No layout has so many devices."];
  }
  const days = tokens / step.tokens_per_second / 86400, hours = days * 24 * step.devices;
  const dollars = price > 0 ? `, ${amount(hours * price)} dollars` : "";
  const energy = cluster.watts > 0 ?
    `, ${(hours * cluster.watts / 1e6).toPrecision(3)} MWh of the devices at full load` : "";
  return [
    `It fits: ${step.layout}.`,
    `A step takes ${step.seconds.toPrecision(4)} s, ${short(step.tokens_per_second)} tokens a second, ` +
      `MFU ${(100 * step.mfu).toFixed(1)} %.`,
    `${short(tokens)} tokens take ${days.toPrecision(3)} days, ${amount(hours)} device-hours${dollars}${energy}.`,
  ];
};
const show = () => {
  const cluster = plan.clusters[element("cluster").value];
  const step = plan.steps.find(one =>
    one.model === Number(element("model").value) && one.cluster === Number(element("cluster").value) &&
    one.devices === devices[element("devices").value] &&
    one.sequences === sequences[element("sequences").value]);
  const tokens = 10 ** Number(element("tokens").value), price = Number(element("price").value);
  element("devices-shown").textContent = `${step.devices} x ${cluster.device}`;
  element("sequences-shown").textContent = step.sequences;
  element("tokens-shown").textContent = short(tokens);
  element("answer").replaceChildren(
    ...answerOf(step, cluster, tokens, price).map(line => made("p", {textContent: line})));
  bar(element("memory"),
    `Memory of the fullest rank: ${bytes(step.memory)} of ${bytes(cluster.room)}` +
      (step.fits ? "" : ", which is too much"),
    step.kinds.map((value, i) => [`${plan.kinds[i]} ${bytes(value)}`, value, "c" + i]),
    Math.max(cluster.room, step.memory));
  const share = (name, seconds, color) =>
    [`${name} ${(100 * seconds / step.seconds).toFixed(1)} %`, seconds, color];
  bar(element("time"), "Time of a step", step.fits ? [
    share("computing", step.compute, "c0"),
    share("recompute", step.recompute, "c4"),
    share("tensor-parallel collectives", step.tensor, "c1"),
    share("waiting", step.bubble, "c7"),
    share("gradient sums and update", step.after, "c5"),
  ] : [], step.seconds || 1);
  drawTimeline(step);
  element("command").textContent = step.command;
  element("command").hidden = !step.command;
};
const choose = (id, names, first) => {
  element(id).replaceChildren(...names.map((textContent, value) => made("option", {value, textContent})));
  element(id + "s").hidden = names.length < 2;
  element(id).value = first;
};
const first = plan.steps[plan.first];
choose("model", plan.models, first.model);
choose("cluster", plan.clusters.map(cluster => `${cluster.name}, ${bytes(cluster.room)} each`), first.cluster);
element("devices").max = devices.length - 1;
element("sequences").max = sequences.length - 1;
element("devices").value = devices.indexOf(first.devices);
element("sequences").value = sequences.indexOf(first.sequences);
const asked = Math.log10(plan.tokens);
element("tokens").min = Math.min(8, Math.floor(asked));
element("tokens").max = Math.max(14, Math.ceil(asked));
element("tokens").value = asked;
element("price").value = plan.price;
for (const id of ["model", "cluster", "devices", "sequences", "tokens", "price"]) {
  element(id).addEventListener("input", show);
}
show();

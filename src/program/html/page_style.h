// Style sheet and script of pages (page.h).
#pragma once

#include <string_view>

namespace teratron {

// Colours of curves have a contrast of 3 and more with the page's, texts of 4.5 and more (WCAG 2.2, AA).
inline constexpr std::string_view kPageStyle = R"css(
:root { color-scheme: light dark; --page: #fff; --ink: #1f2328; --quiet: #59636e; --line: #d1d9e0; --panel: #f6f8fa;
  --c0: #0b62c4; --c1: #b35900; --c2: #1a7f37; --c3: #b0106a; --c4: #6e40c9; --c5: #0f766e; --c6: #8a6d00; --c7: #57606a; }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --line: #3d444d;
  --panel: #151b23; --c0: #6cb6ff; --c1: #f0a04b; --c2: #57c26b; --c3: #ff7eb6; --c4: #b79cff; --c5: #4fd1c5;
  --c6: #e3c04a; --c7: #adbac7; } }
* { box-sizing: border-box; } [hidden] { display: none !important; }
body { margin: 0 auto; padding: 1rem; max-width: 90rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; border-bottom: 1px solid var(--line); margin-top: 2rem; }
a { color: var(--c0); } nav a { margin-right: 1rem; display: inline-block; padding: 0.2rem 0; }
:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); }
th, td { text-align: left; padding: 0.25rem 0.75rem; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: break-word; min-width: 6rem; max-width: 40rem; }
tbody th { font-weight: normal; color: var(--quiet); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure { margin: 0; padding: 0.75rem; background: var(--panel); border: 1px solid var(--line); border-radius: 6px; }
figcaption { font-weight: 600; } figure svg { display: block; width: 100%; height: auto; }
figure output { display: block; min-height: 1.5em; color: var(--quiet); font-variant-numeric: tabular-nums; }
svg text { fill: var(--ink); } svg .grid { stroke: var(--line); } svg .pointer { stroke: var(--quiet); }
svg polyline { fill: none; stroke-width: 1.6; stroke-linejoin: round; } svg .spread { fill-opacity: 0.2; stroke: none; }
svg .dashed { stroke-dasharray: 6 4; }
.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0; list-style: none; }
.legend i { display: inline-block; width: 0.8em; height: 0.8em; border-radius: 2px; margin-right: 0.4em; }
.ranks { display: inline-grid; gap: 4px; } .ranks div { background: var(--panel); border: 1px solid var(--line);
  border-radius: 4px; padding: 0.25rem 0.6rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px; padding: 0.75rem; margin: 0.25rem 0 1rem; font-size: 0.875rem; }
summary { cursor: pointer; padding: 0.25rem 0; }
.controls { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); gap: 1rem; }
.controls label { display: block; } .controls output { float: right; font-weight: 600; }
.controls input, .controls select { display: block; width: 100%; font: inherit; accent-color: var(--c0); }
.bar div { display: flex; height: 1.25rem; background: var(--panel); border: 1px solid var(--line); border-radius: 4px;
  overflow: hidden; } .bar div i { display: block; } .bar p, .timeline p { margin: 0.75rem 0 0.25rem; }
.bar .legend, .timeline .legend { margin: 0.25rem 0; font-size: 0.875rem; }
.stages { display: grid; gap: 2px; grid-template-columns: minmax(0, 1fr); } .stages > div { display: flex; gap: 6px; align-items: center; line-height: 1; }
.stages span { flex: none; width: 1.5rem; text-align: right; color: var(--quiet); font-size: 0.75rem; }
.stages svg { flex: 1 1 0; width: 0; min-width: 0; height: 0.9rem; background: var(--panel); }
.stages small { flex: 1; min-width: 0; color: var(--quiet); font-variant-numeric: tabular-nums; }
.stages .F, .stages .f { fill: var(--c0); } .stages .B, .stages .b { fill: var(--c2); }
.stages .W, .stages .w { fill: var(--c1); } .stages .H, .stages .h { fill: var(--c4); } .stages .S { fill: var(--c5); }
.stages .f, .stages .b, .stages .w, .stages .h { fill-opacity: 0.6; }
)css"
                                               R"css(
polyline.c0 { stroke: var(--c0); } circle.c0, .spread.c0 { fill: var(--c0); } i.c0 { background: var(--c0); }
polyline.c1 { stroke: var(--c1); } circle.c1, .spread.c1 { fill: var(--c1); } i.c1 { background: var(--c1); }
polyline.c2 { stroke: var(--c2); } circle.c2, .spread.c2 { fill: var(--c2); } i.c2 { background: var(--c2); }
polyline.c3 { stroke: var(--c3); } circle.c3, .spread.c3 { fill: var(--c3); } i.c3 { background: var(--c3); }
polyline.c4 { stroke: var(--c4); } circle.c4, .spread.c4 { fill: var(--c4); } i.c4 { background: var(--c4); }
polyline.c5 { stroke: var(--c5); } circle.c5, .spread.c5 { fill: var(--c5); } i.c5 { background: var(--c5); }
polyline.c6 { stroke: var(--c6); } circle.c6, .spread.c6 { fill: var(--c6); } i.c6 { background: var(--c6); }
polyline.c7 { stroke: var(--c7); } circle.c7, .spread.c7 { fill: var(--c7); } i.c7 { background: var(--c7); }
)css";

// Shows the values of a chart's curves at the pointer, or at a place that arrow keys, Home and End move.
inline constexpr std::string_view kPageScript = R"js(
for (const figure of document.querySelectorAll("figure.chart")) {
  const svg = figure.querySelector("svg"), output = figure.querySelector("output");
  const curves = JSON.parse(figure.querySelector("script").textContent);
  const places = [...new Set(curves.flatMap(curve => curve.points.map(point => point[0])))].sort((a, b) => a - b);
  if (!places.length) continue;
  const number = name => Number(svg.dataset[name]);
  const left = number("left"), right = number("right"), low = number("lowX"), high = number("highX");
  const pointer = document.createElementNS("http://www.w3.org/2000/svg", "line");
  pointer.setAttribute("class", "pointer");
  pointer.setAttribute("y1", number("top"));
  pointer.setAttribute("y2", number("floor"));
  let at = -1;
  const nearest = x => places.reduce((best, place, i) => Math.abs(place - x) < Math.abs(places[best] - x) ? i : best, 0);
  const valueAt = (points, x) => points.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best)[1];
  const show = index => {
    at = Math.max(0, Math.min(places.length - 1, index));
    const x = places[at], pixel = left + (x - low) / (high - low) * (right - left);
    pointer.setAttribute("x1", pixel);
    pointer.setAttribute("x2", pixel);
    svg.append(pointer);
    output.textContent = [Number(x.toPrecision(6)) + ":", ...curves.filter(curve => curve.points.length).map(curve =>
      (curves.length > 1 ? curve.name + " " : "") + Number(valueAt(curve.points, x).toPrecision(5)))].join("  ");
  };
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    show(nearest(low + ((event.clientX - box.left) * scale - left) / (right - left) * (high - low)));
  });
  figure.addEventListener("keydown", event => {
    const steps = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: places.length - 1};
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(steps[event.key]);
  });
}
)js";

}  // namespace teratron

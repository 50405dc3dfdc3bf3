// Shows the values of a chart's curves at the pointer, or at a place that arrow keys, Home and End move.
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
  const nearest = x =>
    places.reduce((best, place, i) => Math.abs(place - x) < Math.abs(places[best] - x) ? i : best, 0);
  const reaches = (points, x) => points.length && points[0][0] <= x && x <= points[points.length - 1][0];
  const valueAt = (points, x) =>
    points.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best)[1];
  const show = index => {
    at = Math.max(0, Math.min(places.length - 1, index));
    const x = places[at], pixel = left + (x - low) / (high - low) * (right - left);
    pointer.setAttribute("x1", pixel);
    pointer.setAttribute("x2", pixel);
    svg.append(pointer);
    output.textContent = [Number(x.toPrecision(6)) + ":", ...curves.filter(curve => reaches(curve.points, x)).map(curve =>
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

// A problem in more dimensions, or in one: every point as a line through its coordinates, or through
// its applications.
"use strict";

const Strands = (() => {
  const MARGIN = { left: 44, right: 20, top: 20, bottom: 34 };

  function draw(context, size, scene) {
    const { page } = Colours.all();
    context.fillStyle = page;
    context.fillRect(0, 0, size, size);
    const lines = scene.dim === 1 ? overTime(scene) : acrossCoordinates(scene);
    const place = frame(context, size, lines, scene);
    context.lineWidth = 1;
    const few = Numbers.clamp(60 / Math.sqrt(lines.count), 1, 6);
    for (let k = 0; k < lines.count; k++) {
      const own = scene.owner ? scene.owner[k] : -1;
      const back = scene.chosen >= 0 && own !== scene.chosen;
      context.globalAlpha = back ? 0.02 : 0.05 * few;
      strand(context, place, lines.of(k), scene.owner ? Colours.of(own) : Colours.all().accent);
    }
    context.globalAlpha = 1;
    if (scene.list && scene.dim > 1) drawOptima(context, place, scene);
  }

  /** The line of point k: its coordinates one after the other, between the ends, if there are. */
  function acrossCoordinates({ x, dim, space, ends, labels }) {
    const around = ends ?? [[], []];
    return {
      count: x.length / dim,
      of: (k) => [...around[0], ...x.slice(k * dim, (k + 1) * dim), ...around[1]],
      low: Math.min(...space.low), high: Math.max(...space.high),
      labels: labels ?? Array.from({ length: dim }, (_, k) => `x${k + 1}`),
    };
  }

  function overTime({ history, shown, space }) {
    const some = history.slice(0, Math.max(2, Math.ceil(shown) + 1));
    return {
      count: some[0].length,
      of: (k) => some.map((x) => x[k]),
      low: space.low[0], high: space.high[0],
      labels: some.map((_, k) => (some.length < 12 || k % 10 === 0 ? String(k) : "")),
    };
  }

  /** Axes; gives the pixel of a place along the line and a height. */
  function frame(context, size, { labels, low, high }, { dim }) {
    const { quiet, line } = Colours.all();
    const [wide, tall] = [size - MARGIN.left - MARGIN.right, size - MARGIN.top - MARGIN.bottom];
    const across = (k) => MARGIN.left + (wide * k) / Math.max(1, labels.length - 1);
    const up = (value) => MARGIN.top + tall * (1 - (value - low) / (high - low));
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = quiet;
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.textAlign = "center";
    labels.forEach((label, k) => {
      if (label !== "") context.strokeRect(across(k), MARGIN.top, 0, tall);
      context.fillText(label, across(k), size - 12);
    });
    context.textAlign = "right";
    for (const value of ticks(low, high)) context.fillText(value, MARGIN.left - 8, up(value) + 4);
    context.textAlign = "left";
    if (dim === 1) context.fillText("after so many applications", MARGIN.left, 14);
    return (k, value) => [across(k), up(value)];
  }

  function ticks(low, high) {
    const step = 10 ** Math.floor(Math.log10((high - low) / 2));
    const first = Math.ceil(low / step);
    const all = Array.from({ length: 40 }, (_, k) => (first + k) * step).filter((v) => v <= high);
    const every = Math.ceil(all.length / 8);
    return all.filter((_, k) => k % every === 0)
      .map((v) => Number(v.toPrecision(6)));
  }

  function strand(context, place, values, colour) {
    context.strokeStyle = colour;
    context.beginPath();
    values.forEach((value, k) => context.lineTo(...place(k, value)));
    context.stroke();
  }

  /** Every isolated optimum as a firm line, dots and its number. */
  function drawOptima(context, place, scene) {
    const around = scene.ends ?? [[], []];
    const { ink, page } = Colours.all();
    scene.list.forEach((each, k) => {
      if (each.kind !== "point" || (scene.chosen >= 0 && scene.chosen !== k)) return;
      const values = [...around[0], ...each.point, ...around[1]];
      context.lineWidth = scene.chosen === k ? 5 : 3;
      strand(context, place, values, page);
      context.lineWidth = scene.chosen === k ? 3.5 : 1.8;
      strand(context, place, values, Colours.of(k));
      context.fillStyle = ink;
      values.forEach((value, j) => {
        context.beginPath();
        context.arc(...place(j, value), 3, 0, 7);
        context.fill();
      });
    });
  }

  return { draw };
})();

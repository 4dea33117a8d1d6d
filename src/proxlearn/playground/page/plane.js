// A problem in the plane: a map of the objective, every point with the way it came, the optima.
"use strict";

const Plane = (() => {
  const BANDS = 14; // of the map: levels at equal shares of the area, so that all stays readable
  const FINE = { grid: 161, pixels: 640 };
  const QUICK = { grid: 81, pixels: 240 }; // while something is dragged
  const NUMBERED = 20; // up to so many optima carry their number in the table
  const map = { key: null, canvas: document.createElement("canvas") };

  /** From coordinates to pixels of a square picture, and back. */
  function scale({ low, high }, size) {
    const wide = high.map((each, k) => each - low[k]);
    return {
      to: (x, y) => [((x - low[0]) / wide[0]) * size, (1 - (y - low[1]) / wide[1]) * size],
      from: (u, v) => [low[0] + (u / size) * wide[0], low[1] + (1 - v / size) * wide[1]],
    };
  }

  function draw(context, size, scene) {
    drawMap(context, size, scene);
    const { to } = scale(scene.space, size);
    if (scene.before) drawWays(context, to, scene);
    drawPoints(context, to, scene);
    if (scene.list) drawOptima(context, to, scene);
    if (scene.handles) drawHandles(context, to, scene);
  }

  function drawMap(context, size, scene) {
    const { page } = Colours.all();
    context.fillStyle = page;
    context.fillRect(0, 0, size, size);
    if (!scene.objective) return;
    const quality = scene.live ? QUICK : FINE;
    const key = [scene.name, scene.tau.join(), quality.pixels, page].join();
    if (map.key !== key) {
      paint(map.canvas, quality, scene);
      map.key = key;
    }
    context.imageSmoothingQuality = "high";
    context.drawImage(map.canvas, 0, 0, size, size);
  }

  /** The objective at the corners of a grid, row by row from the top. */
  function valuesOn(grid, { space, objective }) {
    const { from } = scale(space, grid - 1);
    const values = new Float64Array(grid * grid);
    for (let v = 0, k = 0; v < grid; v++) {
      for (let u = 0; u < grid; u++) values[k++] = objective(from(u, v));
    }
    return values;
  }

  function paint(canvas, { grid, pixels }, scene) {
    const values = valuesOn(grid, scene);
    const sorted = values.slice().sort();
    const levels = Array.from({ length: BANDS - 1 }, (_, k) =>
      sorted[Math.floor(((k + 1) / BANDS) * (sorted.length - 1))]);
    const bands = bandsAt(pixels, grid, values, levels);
    canvas.width = canvas.height = pixels;
    const context = canvas.getContext("2d");
    const image = context.createImageData(pixels, pixels);
    const { low, high } = Colours.all();
    for (let k = 0; k < bands.length; k++) {
      const line = bands[k] !== bands[k + 1] || bands[k] !== bands[k + pixels];
      const share = bands[k] / (BANDS - 1) - (line ? 0.09 : 0);
      for (let c = 0; c < 3; c++) image.data[4 * k + c] = low[c] + share * (high[c] - low[c]);
      image.data[4 * k + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }

  /** Which band every pixel is in, between the corners of the grid. */
  function bandsAt(pixels, grid, values, levels) {
    const bands = new Uint8Array(pixels * pixels);
    const step = (grid - 1) / (pixels - 1);
    for (let v = 0, k = 0; v < pixels; v++) {
      const row = Math.min(grid - 2, Math.floor(v * step));
      const down = v * step - row;
      for (let u = 0; u < pixels; u++) {
        const column = Math.min(grid - 2, Math.floor(u * step));
        const right = u * step - column;
        const at = row * grid + column;
        const upper = values[at] + right * (values[at + 1] - values[at]);
        const lower = values[at + grid] + right * (values[at + grid + 1] - values[at + grid]);
        bands[k++] = bandOf(upper + down * (lower - upper), levels);
      }
    }
    return bands;
  }

  function bandOf(value, levels) {
    let [low, high] = [0, levels.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value > levels[middle]) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** What belongs to an optimum that is not the chosen one steps back. */
  const faded = (scene, owner) => scene.chosen >= 0 && owner !== scene.chosen;

  function drawWays(context, to, { x, before, owner, ...scene }) {
    context.lineWidth = 1;
    for (let k = 0; k < x.length / 2; k++) {
      const own = owner ? owner[k] : -1;
      context.strokeStyle = owner ? Colours.of(own) : Colours.all().accent;
      context.globalAlpha = faded(scene, own) ? 0.04 : 0.25;
      context.beginPath();
      context.moveTo(...to(before[2 * k], before[2 * k + 1]));
      context.lineTo(...to(x[2 * k], x[2 * k + 1]));
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  function drawPoints(context, to, { x, owner, ...scene }) {
    const radius = x.length > 4000 ? 1.8 : 2.6;
    for (let k = 0; k < x.length / 2; k++) {
      const own = owner ? owner[k] : -1;
      context.fillStyle = owner ? Colours.of(own) : Colours.all().accent;
      context.globalAlpha = faded(scene, own) ? 0.12 : 0.75;
      context.beginPath();
      context.arc(...to(x[2 * k], x[2 * k + 1]), radius, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  /** A ring around every isolated optimum, with its number in the table. */
  function drawOptima(context, to, scene) {
    const { ink, page } = Colours.all();
    context.font = "600 12px system-ui, sans-serif";
    scene.list.forEach((each, k) => {
      if (each.kind !== "point" || (scene.chosen >= 0 && scene.chosen !== k)) return;
      const [u, v] = to(...each.point);
      context.strokeStyle = ink;
      context.lineWidth = scene.chosen === k ? 2.5 : 1.4;
      context.beginPath();
      context.arc(u, v, 8, 0, 7);
      context.stroke();
      if (scene.list.length > NUMBERED && scene.chosen !== k) return;
      context.lineWidth = 3.5;
      context.strokeStyle = page;
      context.strokeText(String(k + 1), u + 10, v - 7);
      context.fillStyle = ink;
      context.fillText(String(k + 1), u + 10, v - 7);
    });
  }

  /** What can be dragged. */
  function drawHandles(context, to, { handles }) {
    const { ink, page } = Colours.all();
    for (const { x, y, held } of handles) {
      const [u, v] = to(x, y);
      for (const [width, colour] of [[4, page], [1.6, ink]]) {
        context.lineWidth = width + (held ? 1 : 0);
        context.strokeStyle = colour;
        context.beginPath();
        context.moveTo(u - 6, v);
        context.lineTo(u + 6, v);
        context.moveTo(u, v - 6);
        context.lineTo(u, v + 6);
        context.stroke();
      }
    }
  }

  return { draw, scale };
})();

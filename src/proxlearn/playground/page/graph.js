// A graph to cut: edges as thick as their weight, to be dragged; at every vertex a dial with the
// directions that the operator gave it, one dot a start; the chosen cut in two colours.
"use strict";

const Graph = (() => {
  const DIAL = 0.075; // radius, as a share of the picture
  const NEAR = 14; // pixels from an edge within which it can be taken

  function places(n, size) {
    return Array.from({ length: n }, (_, k) => {
      const angle = (2 * Math.PI * k) / n - Math.PI / 2;
      return [size / 2 + 0.39 * size * Math.cos(angle), size / 2 + 0.39 * size * Math.sin(angle)];
    });
  }

  /** The pairs of vertices, in the order of the sliders. */
  function pairs(n) {
    return Array.from({ length: n }, (_, j) => Array.from({ length: j }, (_, i) => [i, j])).flat();
  }

  function draw(context, size, scene) {
    const { page } = Colours.all();
    context.fillStyle = page;
    context.fillRect(0, 0, size, size);
    const n = Math.round(Math.sqrt(scene.tau.length));
    const at = places(n, size);
    const one = scene.list?.[Math.max(0, scene.chosen)]; // the heaviest, if none is chosen
    drawEdges(context, at, scene, one);
    at.forEach((place, k) => drawDial(context, place, DIAL * size, k, scene, one));
  }

  function drawEdges(context, at, { tau, held }, one) {
    const { quiet, accent, ink, line } = Colours.all();
    const n = at.length;
    for (const [i, j] of pairs(n)) {
      const weight = tau[i * n + j];
      const [mine, cut] = [held?.i === i && held?.j === j, one && one.point[i] !== one.point[j]];
      context.strokeStyle = mine ? accent : weight > 0 ? (cut ? ink : quiet) : line;
      context.globalAlpha = mine || cut ? 0.9 : weight > 0 ? 0.45 : 0.6;
      context.lineWidth = 1 + 6 * weight;
      context.setLineDash(weight === 0 ? [2, 5] : cut ? [9, 6] : []);
      context.beginPath();
      context.moveTo(...at[i]);
      context.lineTo(...at[j]);
      context.stroke();
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
    if (held) label(context, at[held.i], at[held.j], tau[held.i * n + held.j].toFixed(2));
  }

  function label(context, [a, b], [c, d], text) {
    const { ink, page } = Colours.all();
    context.font = "600 14px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineWidth = 4;
    context.strokeStyle = page;
    context.strokeText(text, (a + c) / 2, (b + d) / 2 - 8);
    context.fillStyle = ink;
    context.fillText(text, (a + c) / 2, (b + d) / 2 - 8);
    context.textAlign = "left";
  }

  function drawDial(context, [u, v], radius, vertex, scene, one) {
    const { page, ink } = Colours.all();
    context.fillStyle = page;
    context.strokeStyle = one ? Colours.of(one.point[vertex] > 0 ? 0 : 1) : ink;
    context.lineWidth = 4;
    context.beginPath();
    context.arc(u, v, radius, 0, 7);
    context.fill();
    context.stroke();
    context.fillStyle = ink;
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(String(vertex + 1), u, v + 5);
    context.textAlign = "left";
    drawDots(context, u, v, 0.74 * radius, vertex, scene);
  }

  /** The direction of the vertex for every start, turned so that the first vertex points up. */
  function drawDots(context, u, v, radius, vertex, { x, dim, owner, chosen }) {
    for (let at = 0, k = 0; at < x.length; at += dim, k++) {
      const back = chosen >= 0 && owner && owner[k] !== chosen;
      const own = owner ? owner[k] : -1;
      const turn = Math.atan2(x[at + 1], x[at]) + Math.PI / 2;
      const angle = Math.atan2(x[at + 2 * vertex + 1], x[at + 2 * vertex]) - turn;
      context.fillStyle = owner ? Colours.of(own + 2) : Colours.all().accent;
      context.globalAlpha = back ? 0.06 : 0.45;
      context.beginPath();
      context.arc(u + radius * Math.cos(angle), v + radius * Math.sin(angle), 2.6, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  /** The edge that is near a place of the picture; null where none is. */
  function edgeAt(n, size, u, v) {
    const at = places(n, size);
    if (at.some(([a, b]) => Math.hypot(u - a, v - b) < DIAL * size)) return null;
    let [best, nearest] = [null, NEAR];
    for (const [i, j] of pairs(n)) {
      const [[a, b], [c, d]] = [at[i], at[j]];
      const long = (c - a) ** 2 + (d - b) ** 2;
      const along = Numbers.clamp(((u - a) * (c - a) + (v - b) * (d - b)) / long, 0, 1);
      const far = Math.hypot(u - a - along * (c - a), v - b - along * (d - b));
      if (far < nearest) [best, nearest] = [{ i, j }, far];
    }
    return best;
  }

  return { draw, edgeAt, pairs };
})();

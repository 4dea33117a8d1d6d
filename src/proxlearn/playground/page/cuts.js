// Cuts of a graph: the rounding of proxlearn's problems/maxcut/cuts.py, and the distinct ones.
"use strict";

const Cuts = (() => {
  /** The weight of the edges between the two sides; weights are a matrix in one row. */
  function weightOf(sides, weights) {
    const n = sides.length;
    let sum = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) {
      if (sides[i] !== sides[j]) sum += weights[i * n + j];
    }
    return sum;
  }

  /** The best of the cuts into vertices on one half of the circle and on the other. */
  function bestHalf(x, weights) {
    const n = x.length / 2;
    const angles = Array.from({ length: n }, (_, k) => Math.atan2(x[2 * k + 1], x[2 * k]));
    const sides = angles.map((angle) => (angle >= 0 ? 1 : -1));
    const turned = angles.map((angle) => (angle >= 0 ? angle : angle + Math.PI));
    const order = turned.map((_, k) => k).sort((i, j) => turned[i] - turned[j]);
    let [gained, most, best] = [0, 0, [...sides]];
    for (const k of order) {
      for (let j = 0; j < n; j++) gained += sides[k] * weights[k * n + j] * sides[j];
      sides[k] = -sides[k];
      if (gained > most + 1e-6) [most, best] = [gained, [...sides]];
    }
    return best.map((side) => side * best[0]);
  }

  /** The distinct cuts that points stand for, the heaviest first, as Distinct.optima gives optima. */
  function optima(points, weights) {
    const found = new Map();
    points.forEach((x, k) => {
      const sides = bestHalf(x, weights);
      const key = sides.join();
      if (!found.has(key)) {
        found.set(key, { point: sides, value: -weightOf(sides, weights), members: [] });
      }
      found.get(key).members.push(k);
    });
    const listed = [...found.values()].sort((x, y) => x.value - y.value);
    const owner = new Int32Array(points.length);
    listed.forEach((each, k) => {
      each.hits = each.members.length;
      each.share = each.hits / points.length;
      each.kind = "point";
      each.members.forEach((member) => { owner[member] = k; });
    });
    return { optima: listed, unconverged: 0, owner, inside: 1 };
  }

  return { optima, weightOf };
})();

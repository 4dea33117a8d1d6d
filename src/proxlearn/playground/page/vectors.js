// Vectors of three numbers, rotations as rows of three, and planes (n, d): all points with n . p = d.
"use strict";

const Vectors = (() => {
  const dot = ([a, b, c], [u, v, w]) => a * u + b * v + c * w;
  const minus = (x, y) => [x[0] - y[0], x[1] - y[1], x[2] - y[2]];
  const times = (s, [a, b, c]) => [s * a, s * b, s * c];
  const plus = (x, y) => [x[0] + y[0], x[1] + y[1], x[2] + y[2]];
  const cross = ([a, b, c], [u, v, w]) => [b * w - c * v, c * u - a * w, a * v - b * u];
  const unit = (x) => times(1 / Math.max(Math.sqrt(dot(x, x)), 1e-12), x);

  /** Two directions at right angles to a unit vector, and to each other. */
  function across(n) {
    const other = Math.abs(n[0]) < 0.7 ? [1, 0, 0] : [0, 1, 0];
    const first = unit(cross(n, other));
    return [first, cross(n, first)];
  }

  const apply = (rows, x) => rows.map((row) => dot(row, x));
  const transposed = (rows) => [0, 1, 2].map((k) => rows.map((row) => row[k]));
  const product = (rows, others) => {
    const columns = transposed(others);
    return rows.map((row) => columns.map((column) => dot(row, column)));
  };

  /** A plane, when all that is in space is turned about the origin. */
  const turnedPlane = (rows, plane) => [...apply(rows, plane), plane[3]];

  /** Of the two ways to write a plane, the one with d >= 0 and a normal of length 1. */
  function retracted(plane) {
    const length = (plane[3] < 0 ? -1 : 1) * Math.max(Math.sqrt(dot(plane, plane)), 1e-12);
    return [plane[0] / length, plane[1] / length, plane[2] / length, Math.abs(plane[3])];
  }

  /** The shorter of the distances to both ways to write a plane. */
  function apart(x, y) {
    let [one, other] = [0, 0];
    for (let k = 0; k < 4; k++) {
      one += (x[k] - y[k]) ** 2;
      other += (x[k] + y[k]) ** 2;
    }
    return Math.sqrt(Math.min(one, other));
  }

  return { dot, minus, plus, times, cross, unit, across, apply, transposed, product, turnedPlane,
    retracted, apart };
})();

// Small tools: random numbers from a seed, distances, eigenvalues of small symmetric matrices.
"use strict";

const Numbers = (() => {
  /** Numbers from 0 to 1, always the same ones for a seed (mulberry32). */
  function random(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  function distance(x, y) {
    let square = 0;
    for (let k = 0; k < x.length; k++) square += (x[k] - y[k]) ** 2;
    return Math.sqrt(square);
  }

  const norm = (x) => Math.sqrt(x.reduce((sum, each) => sum + each * each, 0));
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
  const median = (sorted) => sorted[(sorted.length - 1) >> 1]; // the lower one, as torch's

  /** Eigenvalues of a symmetric matrix, smallest first, each with its vector: Jacobi's rotations. */
  function eigen(matrix) {
    const n = matrix.length;
    const a = matrix.map((row) => [...row]);
    const vectors = a.map((_, i) => a.map((_, j) => (i === j ? 1 : 0)));
    const size = Math.sqrt(a.flat().reduce((sum, each) => sum + each * each, 0));
    for (let sweep = 0; sweep < 50; sweep++) {
      let rest = 0;
      for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) rest += a[p][q] ** 2;
      if (Math.sqrt(rest) <= 1e-15 * size) break;
      for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) rotate(a, vectors, p, q);
    }
    const order = a.map((_, i) => i).sort((i, j) => a[i][i] - a[j][j]);
    return {
      values: order.map((i) => a[i][i]),
      vectors: order.map((i) => vectors.map((row) => row[i])),
    };
  }

  function rotate(a, vectors, p, q) {
    if (a[p][q] === 0) return;
    const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
    const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
    const c = 1 / Math.sqrt(t * t + 1);
    const s = t * c;
    const turn = (row, i, j) => {
      const [x, y] = [row[i], row[j]];
      row[i] = c * x - s * y;
      row[j] = s * x + c * y;
    };
    for (const row of a) turn(row, p, q);
    for (let k = 0; k < a.length; k++) {
      const [x, y] = [a[p][k], a[q][k]];
      a[p][k] = c * x - s * y;
      a[q][k] = s * x + c * y;
    }
    for (const row of vectors) turn(row, p, q);
  }

  return { random, distance, norm, clamp, median, eigen };
})();

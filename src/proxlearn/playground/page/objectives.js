// The objectives of the built-in problems, for values and maps; operators do without them. x is one
// point, tau the numbers of one instance. The tests compare them with proxlearn's own.
"use strict";

const Objectives = {
  conic([u, v], [a, b, c, d, e, f]) {
    return (a * u * u + b * u * v + c * v * v + d * u + e * v + f) ** 2;
  },

  cosine(x) {
    return -10 * x.reduce((sum, each) => sum + Math.cos(2 * Math.PI * each), 0);
  },

  /** Peaks of six numbers: summit, strength, two widths and their direction. */
  peaks([u, v], tau) {
    let highest = 0;
    for (let k = 0; k < tau.length; k += 6) {
      const strength = tau[k + 2];
      if (strength <= 0) continue;
      const [cos, sin] = [Math.cos(tau[k + 5]), Math.sin(tau[k + 5])];
      const [x, y] = [u - tau[k], v - tau[k + 1]];
      const [along, across] = [(cos * x + sin * y) / tau[k + 3], (cos * y - sin * x) / tau[k + 4]];
      const hill = (1 + strength) / 2 / (1 + along * along + across * across);
      highest = Math.max(highest, hill);
    }
    return -highest;
  },

  springs(x, tau) {
    const joints = [0, ...x, 1];
    return tau.reduce((sum, length, k) =>
      sum + (Math.abs(joints[k + 1] - joints[k]) - length) ** 2, 0);
  },
};

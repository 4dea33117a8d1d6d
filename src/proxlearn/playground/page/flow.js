// From random starts to solutions, application by application.
"use strict";

const Flow = (() => {
  const [RISE, PATIENCE] = [0.01, 4]; // see `rising`
  const STILL = 2e-7; // of the diameter, that a point moves at most once it has settled

  const SPECIAL = { pose: Pose, picture: Pictures }; // taus of which the operator sees something else

  const special = (about) => SPECIAL[about?.tau.kind];

  /** What the operator sees of a tau: its numbers, unless it is something special. */
  const observed = (about, tau) => special(about)?.observed(tau) ?? tau;

  /** Random points of the space, always the same ones for a seed: n * dim numbers. */
  function starts({ dim, space, view }, n, seed) {
    const next = Numbers.random(seed);
    const x = new Float32Array(n * dim);
    if (space.kind === "planes") {
      for (let k = 0; k < n; k++) x.set([...direction(next), space.reach * next()], k * dim);
      return x;
    }
    for (let k = 0; k < x.length; k++) {
      if (view === "graph") {
        const angle = 2 * Math.PI * next();
        [x[k], x[k + 1]] = [Math.cos(angle), Math.sin(angle)];
        k++;
      } else {
        const i = k % dim;
        x[k] = space.low[i] + next() * (space.high[i] - space.low[i]);
      }
    }
    return x;
  }

  /** A direction in space, at random. */
  function direction(next) {
    const [height, angle] = [2 * next() - 1, 2 * Math.PI * next()];
    const wide = Math.sqrt(1 - height * height);
    return [wide * Math.cos(angle), wide * Math.sin(angle), height];
  }

  /** Where the points are after 0, 1, ... applications, up to the operator's usual number; points
   * that have settled stay. Null where `stale()` before the end. */
  async function solve(engine, about, x, stale, onApplication) {
    const { dim, space, applications } = about;
    if (about.rises) return rising(engine, about, x, stale, onApplication);
    const history = [x];
    let moving = Array.from({ length: x.length / dim }, (_, k) => k);
    for (let k = 0; k < applications && moving.length; k++) {
      const some = gathered(x, moving, dim);
      const y = await engine.apply(some, dim, stale);
      if (y === null) return null;
      x = x.slice();
      moving.forEach((point, i) => x.set(y.subarray(i * dim, (i + 1) * dim), point * dim));
      const limit = (STILL * space.diameter) ** 2;
      moving = moving.filter((_, i) => squared(some, y, i * dim, dim) > limit);
      history.push(x);
      onApplication(history);
    }
    return about.rates ? rated(engine, about, history, stale) : history;
  }

  /** With how good the last points are, as `quality`. */
  async function rated(engine, { dim }, history, stale) {
    const quality = new Float32Array(history[0].length / dim);
    const whole = await engine.apply(history.at(-1), dim, stale, quality);
    return whole && Object.assign(history, { quality });
  }

  /** The same of an operator that says how good a point is: until that has not risen for some
   * applications, as in proxlearn's operators/rising.py. */
  async function rising(engine, { dim, applications }, x, stale, onApplication) {
    const count = x.length / dim;
    const [best, quality] = [x.slice(), new Float32Array(count)];
    const waited = new Int32Array(count);
    x = await engine.apply(best, dim, stale, quality);
    if (x === null) return null;
    const history = [best.slice(), x];
    let moving = [...waited.keys()];
    for (let k = 0; k < applications && moving.length; k++) {
      const [some, rating] = [gathered(x, moving, dim), new Float32Array(moving.length)];
      const y = await engine.apply(some, dim, stale, rating);
      if (y === null) return null;
      x = x.slice();
      moving.forEach((point, i) => {
        const of = (points) => points.subarray(i * dim, (i + 1) * dim);
        const rose = rating[i] > quality[point] + RISE;
        if (rating[i] > quality[point] - RISE) best.set(of(some), point * dim);
        if (rose) quality[point] = rating[i];
        waited[point] = rose ? 0 : waited[point] + 1;
        const rests = waited[point] >= PATIENCE;
        x.set(rests ? best.subarray(point * dim, (point + 1) * dim) : of(y), point * dim);
      });
      moving = moving.filter((point) => waited[point] < PATIENCE);
      history.push(x);
      onApplication(history);
    }
    history[history.length - 1] = best;
    return rated(engine, { dim }, history, stale);
  }

  function gathered(x, which, dim) {
    const some = new Float32Array(which.length * dim);
    which.forEach((point, i) => some.set(x.subarray(point * dim, (point + 1) * dim), i * dim));
    return some;
  }

  function squared(x, y, at, dim) {
    let sum = 0;
    for (let k = at; k < at + dim; k++) sum += (x[k] - y[k]) ** 2;
    return sum;
  }

  /** The distinct optima among the last points; null where `stale()` before the end. */
  async function distinct(about, tau, history, stale) {
    const points = rows(history.at(-1), about.dim);
    if (special(about)) {
      return special(about).distinct(tau, points, stale, { about, quality: history.quality ?? null });
    }
    if (about.view === "graph") return Cuts.optima(points, tau);
    return Distinct.optima(about.space, points, objective(about, tau));
  }

  /** The objective for this tau; null where none is known. */
  function objective(about, tau) {
    const f = Objectives[about.objective];
    return f ? (x) => f(x, tau) : null;
  }

  const rows = (x, dim) => Array.from({ length: x.length / dim }, (_, k) =>
    Array.from(x.subarray(k * dim, (k + 1) * dim)));

  return { starts, direction, solve, rising, distinct, objective, observed, special };
})();

// Where a point leads when it is polished, and what it then is: the rules of proxlearn's
// calculus/polish.py and calculus/certify.py, on boxes, with derivatives by differences.
"use strict";

const Polish = (() => {
  // Lengths are shares of the diameter.
  const [STEPS, ROUNDS] = [30, 20]; // a round is so many steps
  const SETTLED = 1e-7; // the farthest from where a round began that counts as not moved
  const RADIUS = 0.01; // the longest step: no leap into another basin
  const STILL = 1e-10; // a step shorter than this is none
  const DAMPING = [0.1, 1e-8, 1e8]; // at first, smallest and largest, relative to the curvature
  const [SLOPE_STEP, CURVE_STEP] = [1e-6, 1e-4]; // of the differences
  const NEAR = 1e-4; // converged: a Newton step from here would be shorter
  const EDGE = 1e-6; // on the edge
  const LITTLE = 1e-4; // no curvature: this much less than all at the point
  const FALLS = [1e-3, 3e-3, 1e-2]; // how far lower values are looked for where nothing curves
  const ROUNDING = 1e-12; // of a value, relative

  const moved = (x, way, far = 1) => x.map((each, k) => each + far * way[k]);
  const dot = (x, y) => x.reduce((sum, each, k) => sum + each * y[k], 0);

  function within(space, x, margin = 0) {
    if (space.open) return x;
    return x.map((each, k) =>
      Numbers.clamp(each, space.low[k] + margin, space.high[k] - margin));
  }

  /** Slope and curvature (a matrix) at x, which a closed box's edge is looked at from beside. */
  function expansion(f, space, x) {
    const [h, wide] = [SLOPE_STEP * space.diameter, CURVE_STEP * space.diameter];
    const place = within(space, x, 2 * wide);
    const axes = x.map((_, i) => x.map((_, j) => (i === j ? 1 : 0)));
    const at = (i, a, j, b) => f(moved(moved(place, axes[i], a), axes[j], b));
    const middle = f(place);
    const slope = axes.map((axis) => (f(moved(place, axis, h)) - f(moved(place, axis, -h))) / (2 * h));
    const hessian = axes.map((_, i) => axes.map((_, j) => (i === j
      ? (at(i, wide, i, 0) - 2 * middle + at(i, -wide, i, 0)) / wide ** 2
      : (at(i, wide, j, wide) - at(i, wide, j, -wide) - at(i, -wide, j, wide) +
         at(i, -wide, j, -wide)) / (4 * wide ** 2))));
    const back = x.map((each, k) => each - place[k]);
    return { slope: slope.map((each, i) => each + dot(hessian[i], back)), hessian };
  }

  /** The same with zeros for the coordinates that a bound holds back. */
  function held(space, x, { slope, hessian }, edge = 0) {
    if (space.open) return { slope, hessian };
    const stuck = x.map((each, k) => (each <= space.low[k] + edge && slope[k] > 0) ||
      (each >= space.high[k] - edge && slope[k] < 0));
    return {
      slope: slope.map((each, i) => (stuck[i] ? 0 : each)),
      hessian: hessian.map((row, i) => row.map((each, j) => (stuck[i] || stuck[j] ? 0 : each))),
    };
  }

  /** The optimum of a point's basin, by damped Newton steps that never lead uphill. */
  function polish(f, space, begun) {
    let x = within(space, [...begun]);
    for (let round = 0; round < ROUNDS; round++) {
      const before = x;
      x = descent(f, space, x);
      if (Numbers.distance(before, x) <= SETTLED * space.diameter) break;
    }
    return x;
  }

  function descent(f, space, x) {
    const longest = RADIUS * space.diameter;
    let [damping, least, most] = DAMPING;
    let value = f(x);
    let model = null;
    for (let k = 0; k < STEPS; k++) {
      model ??= held(space, x, expansion(f, space, x));
      const step = newton(model, damping, longest);
      const length = Numbers.norm(step);
      const trial = within(space, moved(x, step, Math.min(1, longest / length || 0)));
      const there = f(trial);
      if (there < value) [x, value, model] = [trial, there, null];
      damping = Numbers.clamp(model === null ? damping / 5 : damping * 5, least, most);
      if (!(length > STILL * space.diameter)) break;
    }
    return x;
  }

  /** `-(|H| + damping scale)^-1 slope`; |H| has H's eigenvalues made positive. */
  function newton({ slope, hessian }, damping, longest) {
    const { values, vectors } = Numbers.eigen(hessian);
    const along = vectors.map((axis) => dot(axis, slope));
    const curved = values.reduce((sum, each) => sum + Math.abs(each), 0);
    const scale = Math.max(curved, Numbers.norm(along) / longest);
    const moves = along.map((each, k) => -each / (Math.abs(values[k]) + damping * scale + 1e-300));
    return slope.map((_, i) => vectors.reduce((sum, axis, k) => sum + axis[i] * moves[k], 0));
  }

  /** What a point is: "minimum", "saddle", "flat", "boundary" or "unconverged". */
  function certify(f, space, x) {
    const [near, edge] = [NEAR * space.diameter, EDGE * space.diameter];
    const onEdge = !space.open && x.some((each, k) =>
      each <= space.low[k] + edge || each >= space.high[k] - edge);
    const { slope, hessian } = held(space, x, expansion(f, space, x), edge);
    const { values, vectors } = Numbers.eigen(hessian);
    const along = vectors.map((axis) => Math.abs(dot(axis, slope)));
    const little = LITTLE * values.reduce((sum, each) => sum + Math.abs(each), 0);
    const way = along.map((each, k) => each / Math.max(Math.abs(values[k]), little) || 0);
    if (!(Numbers.norm(way) <= near)) return "unconverged";
    if (values.some((each) => each < -little)) return "saddle";
    const flat = values.map((each) => Math.abs(each) <= little);
    const gains = along.map((each, k) => each * each / (2 * Math.max(values[k], little)) || 0);
    const gain = gains.reduce((sum, each, k) => sum + (flat[k] ? 0 : each), 0);
    if (lower(f, space, x, vectors.filter((_, k) => flat[k]), gain)) return "saddle";
    if (onEdge) return "boundary";
    return flat.some(Boolean) ? "flat" : "minimum";
  }

  /** Whether values fall along one of the ways, near and far. */
  function lower(f, space, x, ways, gain) {
    const value = f(x);
    const bottom = value - gain - ROUNDING * Math.abs(value);
    const falls = (way, far) => {
      const there = within(space, moved(x, way, far));
      return Numbers.distance(there, x) > Math.abs(far) / 2 && f(there) < bottom;
    };
    return ways.some((way) => [1, -1].some((sign) =>
      FALLS.every((far) => falls(way, sign * far * space.diameter))));
  }

  return { polish, certify };
})();

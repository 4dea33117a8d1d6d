// From the planes at which an operator ended to those that are mirrors of a solid, in its own pose:
// the rules of proxlearn's shapes/search.py, refine.py, limits.py and families.py, of meshes.
"use strict";

const Mirrors = (() => {
  const TOLERANCE = 1e-3; // the largest residual of a mirror, in parts of how far the shape reaches
  const FARTHEST = 5; // times the tolerance, that single points may be off
  const [SAME, KNOWN, BESIDE] = [0.03, 0.01, 0.1]; // distances of planes
  const CLEARLY = 0.3; // of the tolerance: a difference between residuals that means something
  const [LIKELY, CLOSE] = [0.05, 0.005]; // residuals above which planes are left out
  const [GLANCE, FEW, ENOUGH, MANY] = [64, 128, 512, 1024]; // points that are reflected
  const [ROUGH, FINE, LAST] = [[0.03, 0.01, 0.003], [0.01, 0.003, 0.001], [0.003, 0.001]];
  const [PAIRED, MOST] = [32, 64]; // planes that are reflected in others; that an axis is sought in
  const [DAMPED, TOUCHING] = [1e-5, 1e-5];
  const [FEWEST, NEAR, PARALLEL] = [5, 0.03, 0.1]; // of planes through an axis
  const [FITTED, TRIED, STEPS] = [16, 32, [0.01, 0.003]];
  const SLICE = 12; // milliseconds of work between two glances at what else there is to do
  const { dot, plus, times, minus, cross, unit, apart, retracted } = Vectors;

  /** A solid with the points that are reflected. */
  class Target {
    constructor(solid) {
      this.solid = solid;
      this.points = solid.scattered(2 * MANY, 7).map(([point]) => point);
      const next = Numbers.random(11);
      this.corners = solid.corners().map((each) => [next(), each])
        .sort(([x], [y]) => x - y).slice(0, ENOUGH).map(([, each]) => each);
    }

    /** How far the solid reaches along a plane's normal. */
    reach(plane) {
      let [low, high] = [Infinity, -Infinity];
      for (const point of this.points) {
        const at = dot(plane, point);
        [low, high] = [Math.min(low, at), Math.max(high, at)];
      }
      return Math.min(1, high - low);
    }

    /** What a plane is like, and the equations of a step that makes it better. */
    look(plane, points, counted, scale) {
      const basis = Vectors.across(plane);
      const found = { plane, residual: 0, worst: 0, mean: 0 };
      const sums = new Float64Array(10); // the upper half of the matrix, the right side, the weights
      points.forEach((point, k) => {
        const height = dot(plane, point) - plane[3];
        const moved = minus(point, times(2 * height, plane));
        const near = this.solid.nearest(moved);
        const far = Math.sqrt(near.square);
        found.mean += far;
        if (k < counted) found.residual += far;
        found.worst = Math.max(found.worst, far);
        if (scale === null) return;
        const touching = far <= TOUCHING;
        const away = minus(moved, near.point);
        const way = touching ? this.solid.normal(near.face) : times(1 / far, away);
        const signed = touching ? dot(away, way) : far;
        const up = dot(plane, way);
        const [a, b] = basis.map((turn) => -2 * (dot(point, turn) * up + height * dot(way, turn)));
        const weight = 1 / Math.sqrt(far * far + scale * scale);
        const c = 2 * up;
        [a * a, a * b, a * c, b * b, b * c, c * c, a * signed, b * signed, c * signed, 1]
          .forEach((each, i) => { sums[i] += weight * each; });
      });
      found.mean /= points.length;
      found.residual /= counted;
      return { found, basis, sums };
    }

    /** The best that a plane was at while steps took it to the least sum of distances. */
    refined(plane, points, scales, corners = false) {
      const all = corners ? [...points, ...this.corners] : points;
      let best = null;
      for (const scale of [...scales, null]) {
        const { found, basis, sums } = this.look(plane, all, points.length, scale);
        if (best === null || found.mean < best.mean) best = found;
        if (scale === null) break;
        const step = solved(sums.map((each) => each / sums[9]));
        const moved = plus(plane, plus(times(step[0], basis[0]), times(step[1], basis[1])));
        plane = retracted([...moved, plane[3] + step[2]]);
      }
      return best;
    }
  }

  /** `-(A + damping)^-1 b` of three equations. */
  function solved([aa, ab, ac, bb, bc, cc, x, y, z]) {
    const rows = [[aa + DAMPED, ab, ac], [ab, bb + DAMPED, bc], [ac, bc, cc + DAMPED]];
    const columns = [cross(rows[1], rows[2]), cross(rows[2], rows[0]), cross(rows[0], rows[1])];
    const whole = dot(rows[0], columns[0]);
    return [0, 1, 2].map((i) =>
      -(columns[0][i] * x + columns[1][i] * y + columns[2][i] * z) / whole);
  }

  /** The mirrors of a target among planes: {planes, family, best, uneven}, each plane with its
   * `residual` and `worst`; `family` is {axis, point, residual, worst, every}. Null where `stale()`
   * before the end. */
  async function among(target, ends, stale) {
    const search = new Search(target, stale);
    try {
      return await search.among(ends);
    } catch (error) {
      if (error === GIVEN_UP) return null;
      throw error;
    }
  }

  const GIVEN_UP = new Error("Something else is to be solved.");

  class Search {
    constructor(target, stale) {
      [this.target, this.stale, this.begun] = [target, stale, performance.now()];
    }

    /** Let the page go on after a while. */
    async rest() {
      if (performance.now() - this.begun < SLICE) return;
      await new Promise((resolve) => { setTimeout(resolve); });
      if (this.stale()) throw GIVEN_UP;
      this.begun = performance.now();
    }

    async refined(planes, count, scales, corners = false) {
      const found = [];
      const points = this.target.points.slice(0, count);
      for (const plane of planes) {
        found.push(this.target.refined(plane, points, scales, corners));
        await this.rest();
      }
      return found;
    }

    async distinctly(planes, ...how) {
      return distinct(await this.refined(planes, ...how));
    }

    async among(ends) {
      const hopeless = TOLERANCE + CLOSE;
      const seen = await this.refined(apartFrom(ends.map(retracted)), GLANCE, []);
      const likely = planesOf(seen.filter((each) => each.residual <= LIKELY));
      const rough = await this.distinctly(likely, FEW, ROUGH);
      let close = rough.filter((each) => each.residual <= hopeless);
      const family = await this.familyAmong(planesOf(close).slice(0, MOST), hopeless);
      if (family) {
        close = close.filter((each) => !contains(family, each.plane));
        const sphere = await this.sphere(close, family);
        if (sphere) return { planes: [], family: sphere, best: null, uneven: [] };
      }
      let fine = await this.distinctly(planesOf(close), ENOUGH, FINE);
      fine = distinct([...fine, ...await this.completed(fine.filter((each) => this.met(each)))]);
      const nearly = fine.filter((each) => each.residual <= 2 * this.limit(each));
      const last = await this.refined(planesOf(nearly), MANY, LAST, true);
      fine = distinct([...last, ...fine.filter((each) => !nearly.includes(each))]);
      const met = fine.filter((each) => this.met(each));
      const planes = this.sharpest(met.filter((each) => this.even(each)))
        .filter((each) => !family || !contains(family, each.plane));
      const alone = (each) => planes.every((one) => apart(one.plane, each.plane) >= BESIDE);
      const rest = [...fine.filter((each) => !this.met(each)),
        ...rough.filter((each) => each.residual > hopeless)].filter(alone).sort(byResidual);
      const uneven = met.filter((each) => !this.even(each)).filter(alone);
      return { planes, family, best: rest[0] ?? null, uneven };
    }

    limit({ plane }) {
      return TOLERANCE * this.target.reach(plane);
    }

    met(each) {
      return each.residual <= this.limit(each);
    }

    even(each) {
      return each.worst <= FARTHEST * this.limit(each);
    }

    /** Without those that are clearly worse than one beside them. */
    sharpest(planes) {
      return planes.filter((each) => planes.every((other) =>
        apart(each.plane, other.plane) >= BESIDE ||
        each.residual - other.residual <= CLEARLY * TOLERANCE));
    }

    /** What is missing: one mirror, reflected in another, is a mirror, too. */
    async completed(mirrors) {
      const known = planesOf(mirrors);
      const some = known.slice(0, PAIRED);
      const images = some.flatMap((x) => some.map((y) => {
        const twice = 2 * dot(x, y);
        return retracted([...minus(x, times(twice, y)), x[3] - twice * y[3]]);
      }));
      const fresh = images.filter((each) => known.every((one) => apart(each, one) > KNOWN));
      return this.refined(apartFrom(fresh).slice(0, MOST), ENOUGH, FINE);
    }

    /** An axis through which all planes are mirrors, if there is one. */
    async familyAmong(planes, hopeless) {
      const line = likelyLine(planes);
      if (!line) return null;
      let axis = { ...line, ...await this.worstOf(through(line, TRIED), ENOUGH, [], false) };
      if (axis.residual <= hopeless) {
        const moved = await this.refined(through(line, FITTED, 0.5), ENOUGH, STEPS);
        const other = fitted(planesOf(moved));
        const tried = await this.worstOf(through(other, TRIED), ENOUGH, [], false);
        if (tried.residual < axis.residual) axis = { ...other, ...tried };
      }
      const limit = TOLERANCE * this.reachAcross(axis);
      if (axis.residual > limit) return null;
      const { worst } = await this.worstOf(through(axis, FITTED), GLANCE, [], true);
      axis.worst = Math.max(axis.worst, worst);
      return axis.worst <= FARTHEST * limit ? axis : null;
    }

    /** How far the solid reaches where it does the least, of directions across an axis. */
    reachAcross(line) {
      return Math.min(...through(line, TRIED).map((each) => this.target.reach(each)));
    }

    async worstOf(planes, count, scales, corners) {
      const found = await this.refined(planes, count, scales, corners);
      return {
        residual: Math.max(...found.map((each) => each.residual)),
        worst: Math.max(...found.map((each) => each.worst)),
      };
    }

    /** A turned part with a mirror that is aslant to its axis is a sphere, if all planes through
     * where they meet are mirrors. */
    async sphere(close, { axis, point }) {
      const aslant = close.find(({ plane }) => {
        const slope = Math.abs(dot(plane, axis));
        return slope > SAME && slope < 1 - SAME;
      });
      if (!aslant) return null;
      const [{ plane }] = await this.refined([aslant.plane], ENOUGH, FINE);
      const center = plus(point, times((plane[3] - dot(plane, point)) / dot(plane, axis), axis));
      const next = Numbers.random(5);
      const normals = Array.from({ length: TRIED }, () => Flow.direction(next));
      const planes = normals.map((each) => retracted([...each, dot(each, center)]));
      const tried = await this.worstOf(planes, ENOUGH, [], true);
      const holds = tried.residual <= TOLERANCE && tried.worst <= FARTHEST * TOLERANCE;
      return holds ? { axis, point: center, every: true, ...tried } : null;
    }
  }

  const planesOf = (found) => found.map((each) => each.plane);
  const byResidual = (x, y) => x.residual - y.residual;

  /** The best of those that are nearly the same, best first. */
  function distinct(found) {
    const kept = [];
    for (const each of [...found].sort(byResidual)) {
      if (kept.every((one) => apart(one.plane, each.plane) > SAME)) kept.push(each);
    }
    return kept;
  }

  /** Planes that are not the same as an earlier one. */
  function apartFrom(planes) {
    const kept = [];
    for (const each of planes) if (kept.every((one) => apart(one, each) > SAME)) kept.push(each);
    return kept;
  }

  // Lines

  /** Whether a plane contains the line of a family, or the centre of all its planes. */
  function contains({ axis, point, every }, plane) {
    return Math.abs(dot(plane, point) - plane[3]) < NEAR &&
      (every || Math.abs(dot(plane, axis)) < NEAR);
  }

  /** Planes through a line, at angles that are multiples of no common one. */
  function through({ axis, point }, count, shift = 0) {
    const [first, second] = Vectors.across(axis);
    return Array.from({ length: count }, (_, k) => {
      const angle = Math.PI * ((Math.sqrt(5) - 1) / 2) * (k + shift);
      const normal = plus(times(Math.cos(angle), first), times(Math.sin(angle), second));
      return retracted([...normal, dot(normal, point)]);
    });
  }

  /** The line that most planes contain, if they are many. */
  function likelyLine(planes) {
    let most = [];
    planes.forEach((x, i) => planes.slice(i + 1).forEach((y) => {
      const way = cross(x, y);
      const sine = Numbers.norm(way);
      if (sine <= PARALLEL) return;
      const both = plus(times(x[3], cross(y, way)), times(y[3], cross(way, x)));
      const line = { axis: times(1 / sine, way), point: times(1 / sine ** 2, both) };
      const within = planes.filter((each) => contains(line, each));
      if (within.length > most.length) most = within;
    }));
    return most.length >= FEWEST ? fitted(most) : null;
  }

  /** The line that is nearest to being in all planes; of its points, the one nearest to 0. */
  function fitted(planes) {
    const square = [0, 1, 2].map((i) => [0, 1, 2].map((j) =>
      planes.reduce((sum, each) => sum + each[i] * each[j], 0)));
    const right = [0, 1, 2].map((i) => planes.reduce((sum, each) => sum + each[i] * each[3], 0));
    const { values, vectors } = Numbers.eigen(square);
    const point = values.reduce((sum, value, k) => (value > 0.05 ** 2 * values[2]
      ? plus(sum, times(dot(vectors[k], right) / value, vectors[k])) : sum), [0, 0, 0]);
    const axis = unit(vectors[0]);
    return { axis, point: minus(point, times(dot(point, axis), axis)) };
  }

  return { Target, among, contains, BESIDE, TOLERANCE };
})();

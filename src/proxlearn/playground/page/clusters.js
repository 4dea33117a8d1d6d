// Which solutions belong together: the rule of proxlearn's answers/clusters.py, with its constants.
"use strict";

const Clusters = (() => {
  const NEIGHBOURS = 12; // of every ball, to link it with
  const AROUND = 10; // of them, to tell the local dimension by
  const THIN = 0.1; // a direction counts if neighbours vary in it by this share of the widest one
  const SURFACE = 2; // the widest dimension that so few neighbours can tell from a random scatter
  const [RATIO, CHANCE] = [4, 1e-6]; // how wide a gap has to be to set points apart
  const [FEWEST_POINTS, FEWEST_BALLS] = [16, 4]; // that make a set; fewer are optima of their own

  /** Clusters of points: {members, dimension, gap}. `flat` says which points can be part of a
   * continuum at all; without it, any. */
  function clusters(points, degrees, tolerance, flat = null) {
    if (!points.length) return [];
    const balls = cover(points, tolerance / 2);
    const near = nearest(balls.map((ball) => points[ball.center]));
    const variances = near.map(({ which }, k) =>
      spread([k, ...which.slice(0, AROUND)].map((b) => points[balls[b].center])));
    const links = linksOf(near);
    const groups = new Groups(balls);
    const short = links.filter((link) => link.length <= tolerance).length;
    for (const link of links.slice(0, short)) groups.join(link);
    const tight = groups.copy();
    const thin = thinOnes(variances, near, degrees, tolerance, balls, flat);
    for (const link of links.slice(short)) {
      if (thin[link.a] && thin[link.b] && !groups.apart(link)) groups.join(link);
    }
    for (const link of links.slice(short)) if (groups.strays(link)) groups.join(link);
    return collect(balls, groups, tight, variances.map((each) => wide(each, tolerance / 2)));
  }

  /** Balls around points that no earlier ball holds. */
  function cover(points, radius) {
    const free = points.map(() => true);
    const balls = [];
    for (let center = 0; center < points.length; center++) {
      if (!free[center]) continue;
      const ball = { center, members: [], reach: 0 };
      for (let k = center; k < points.length; k++) {
        if (!free[k]) continue;
        const far = Numbers.distance(points[center], points[k]);
        if (far > radius && k !== center) continue;
        free[k] = false;
        ball.members.push(k);
        ball.reach = Math.max(ball.reach, far);
      }
      balls.push(ball);
    }
    return balls;
  }

  /** From every ball to the nearest others: how far, and which. */
  function nearest(centers) {
    return centers.map((one, k) => {
      const far = centers.map((other) => Numbers.distance(one, other));
      const which = far.map((_, j) => j).filter((j) => j !== k);
      which.sort((i, j) => far[i] - far[j]);
      const chosen = which.slice(0, NEIGHBOURS);
      return { far: chosen.map((j) => far[j]), which: chosen };
    });
  }

  /** How points vary along their principal directions, smallest first. */
  function spread(points) {
    const dim = points[0].length;
    const mean = points[0].map((_, i) => points.reduce((sum, x) => sum + x[i], 0) / points.length);
    const covariance = mean.map((_, i) => mean.map((_, j) =>
      points.reduce((sum, x) => sum + (x[i] - mean[i]) * (x[j] - mean[j]), 0) / points.length));
    return dim === 1 ? [covariance[0][0]] : Numbers.eigen(covariance).values;
  }

  /** In how many directions points spread farther than `least`. */
  function wide(variances, least) {
    const widest = variances[variances.length - 1];
    return variances.filter((each) => each > THIN * widest && each > least ** 2).length;
  }

  /** Which balls lie along a curve or a surface, with most of their neighbours. */
  function thinOnes(variances, near, degrees, tolerance, balls, flat) {
    const alone = variances.map((each) => wide(each, tolerance) <= Math.min(degrees - 1, SURFACE));
    return alone.map((thin, k) => {
      const around = near[k].which.slice(0, AROUND);
      const share = around.filter((j) => alone[j]).length / around.length;
      const may = flat === null || balls[k].members.some((member) => flat[member]);
      return thin && share >= 0.5 && may;
    });
  }

  /** Every ball with its nearest others, each pair once, the shortest first. */
  function linksOf(near) {
    const links = new Map();
    near.forEach(({ far, which }, k) => which.forEach((j, i) => {
      const [a, b] = [Math.min(k, j), Math.max(k, j)];
      links.set(a * near.length + b, { a, b, length: far[i] });
    }));
    return [...links.values()].sort((x, y) => x.length - y.length || x.a - y.a || x.b - y.b);
  }

  /** Balls that grow together, each group with its number of points and its widest gap. */
  class Groups {
    constructor(balls) {
      this.parent = balls.map((_, k) => k);
      this.count = balls.map((ball) => ball.members.length);
      this.balls = balls.map(() => 1);
      this.gap = balls.map((ball) => ball.reach);
    }

    copy() {
      const same = new Groups([]);
      for (const name of ["parent", "count", "balls", "gap"]) same[name] = [...this[name]];
      return same;
    }

    root(k) {
      while (this.parent[k] !== k) k = this.parent[k] = this.parent[this.parent[k]];
      return k;
    }

    join({ a, b, length }) {
      [a, b] = [this.root(a), this.root(b)];
      if (a === b) return;
      this.parent[b] = a;
      this.count[a] += this.count[b];
      this.balls[a] += this.balls[b];
      this.gap[a] = Math.max(this.gap[a], this.gap[b], length);
    }

    /** Whether a gap is too wide, for one side at least, to be chance. */
    apart({ a, b, length }) {
      return [this.root(a), this.root(b)].some((root) => this.count[root] > 1 &&
        length > Math.max(RATIO, CHANCE ** (-1 / (this.count[root] - 1))) * this.gap[root]);
    }

    isSet(root) {
      return this.count[root] >= FEWEST_POINTS && this.balls[root] >= FEWEST_BALLS;
    }

    /** Whether one side is a set, and the other a few points no farther off than its gaps. */
    strays({ a, b, length }) {
      let [few, most] = [this.root(a), this.root(b)];
      if (this.count[few] > this.count[most]) [few, most] = [most, few];
      return this.count[few] < FEWEST_POINTS && this.isSet(most) && length <= this.gap[most];
    }
  }

  /** The groups as clusters; one too small to be a set falls back into its tight parts. */
  function collect(balls, groups, tight, dimension) {
    const chosen = new Map();
    balls.forEach((_, k) => {
      const root = groups.root(k);
      const [own, set] = groups.isSet(root) ? [groups, root] : [tight, tight.root(k)];
      const key = `${set} ${own.gap[set]}`;
      if (!chosen.has(key)) chosen.set(key, { together: [], gap: own.gap[set] });
      chosen.get(key).together.push(k);
    });
    return [...chosen.values()].map(({ together, gap }) => {
      const members = together.flatMap((k) => balls[k].members);
      const usual = Numbers.median(together.map((k) => dimension[k]).sort((x, y) => x - y));
      const enough = members.length >= FEWEST_POINTS;
      return { members, dimension: enough ? Math.max(1, usual) : 0, gap };
    });
  }

  return { clusters };
})();

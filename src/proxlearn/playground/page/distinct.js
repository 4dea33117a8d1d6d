// From the solutions to their distinct optima: the rules of proxlearn's answers/distinct.py and
// answers/verify.py.
"use strict";

const Distinct = (() => {
  const TOLERANCE = 0.005; // solutions nearer than this share of the diameter are one optimum
  const SMALLEST_SHARE = 0.001; // of the starts; what fewer reached is no optimum to list
  const SAMPLED = 8; // members of a set that are tried
  const NEARBY = 0.05; // the farthest from a point that the optimum it leads to may be
  const EDGE = 1e-3; // how far outside, as a share of a space's width, still counts as inside
  const LOOKED_AT = 512; // members that decide which one is the most central

  function inside(space, x) {
    return x.every((each, k) => {
      const half = (space.high[k] - space.low[k]) / 2;
      return Math.abs(each - (space.low[k] + half)) <= (1 + 2 * EDGE) * half;
    });
  }

  /** The distinct optima among points of a box, best (or most reached) first. `f` is the objective,
   * by which each is verified; null: there is none. Gives {optima, unconverged, owner}, where
   * `owner` tells of every point which optimum it is at, or -1. */
  function optima(space, points, f) {
    const kept = points.map((_, k) => k).filter((k) => inside(space, points[k]));
    const group = new Grouping(space, kept.map((k) => points[k]), f);
    let together = group.clusters();
    if (f) together = group.verified(together);
    const least = f ? 0 : SMALLEST_SHARE * points.length;
    const counted = together.reduce((sum, each) => sum + each.members.length, 0);
    const listed = together.filter((each) => each.members.length >= least)
      .map((each) => group.described(each, points.length));
    listed.sort((x, y) => (f ? x.value - y.value : y.hits - x.hits));
    const owner = new Int32Array(points.length).fill(-1);
    listed.forEach((each, k) => each.members.forEach((member) => { owner[kept[member]] = k; }));
    return { optima: listed, unconverged: (kept.length - counted) / points.length, owner,
      inside: kept.length / points.length };
  }

  class Grouping {
    constructor(space, points, f) {
      [this.space, this.points, this.f] = [space, points, f];
      this.values = f ? points.map(f) : null;
      this.tolerance = TOLERANCE * space.diameter;
    }

    /** Of all points, or of some, among which there then is no continuum. */
    clusters(members = null) {
      const some = members ?? this.points.map((_, k) => k);
      const flat = members ? some.map(() => false) : null;
      const points = some.map((k) => this.points[k]);
      return Clusters.clusters(points, this.space.dim, this.tolerance, flat)
        .map((each) => ({ ...each, members: each.members.map((k) => some[k]) }));
    }

    /** Those that lead to optima: sets along which points rest, and places, one for every optimum
     * that points of it lead to. */
    verified(together) {
      const standing = [];
      const places = [];
      for (const each of together) {
        if (!this.isSet(each)) places.push(each);
        else if (this.staysSpread(this.someOf(each).map((k) => this.end(k)))) standing.push(each);
        else places.push(...this.clusters(each.members)); // points on their way
      }
      const ends = places.map((each) => this.end(this.best(each)));
      const sets = standing.map((one) => {
        const reach = Math.max(one.gap, this.tolerance);
        const more = places.filter((_, k) => {
          const of = ends[k].flat && ends[k].optimal && one.members.some((member) =>
            Numbers.distance(ends[k].point, this.points[member]) <= reach);
          if (of) ends[k].optimal = false;
          return of;
        });
        return { ...joined([one, ...more], one.dimension), gap: one.gap };
      });
      return [...sets, ...this.merged(places, ends)];
    }

    /** Where a point leads, and whether that is an optimum nearby. */
    end(k) {
      const point = Polish.polish(this.f, this.space, this.points[k]);
      const near = Numbers.distance(point, this.points[k]) <= NEARBY * this.space.diameter;
      const what = near ? Polish.certify(this.f, this.space, point) : "far";
      const flat = what === "flat" || what === "boundary";
      return { point, flat, optimal: flat || what === "minimum" };
    }

    isSet(cluster) {
      return cluster.dimension > 0 && this.spread(cluster, this.best(cluster)) > this.tolerance;
    }

    someOf(cluster) {
      const step = Math.ceil(cluster.members.length / SAMPLED);
      return cluster.members.filter((_, k) => k % step === 0);
    }

    /** Whether the points of a set rest along it: on flat ground, and still apart. */
    staysSpread(ends) {
      const rests = ends.filter((each) => each.flat).map((each) => each.point);
      if (2 * rests.length < ends.length) return false;
      return rests.some((x) => rests.some((y) => Numbers.distance(x, y) > this.tolerance));
    }

    /** The clusters that lead to an optimum, those that lead to the same one together. */
    merged(places, ends) {
      const found = [];
      places.forEach((each, k) => {
        if (!ends[k].optimal) return;
        const same = found.find(({ point }) =>
          Numbers.distance(ends[k].point, point) <= this.tolerance);
        if (same) same.clusters.push(each);
        else found.push({ point: ends[k].point, clusters: [each] });
      });
      return found.map((each) => joined(each.clusters, 0));
    }

    best({ members }) {
      return members.reduce((best, k) => (this.values[k] < this.values[best] ? k : best));
    }

    central({ members }) {
      const some = members.filter((_, k) => k % Math.ceil(members.length / LOOKED_AT) === 0);
      const far = (k) =>
        some.reduce((sum, other) => sum + Numbers.distance(this.points[k], this.points[other]), 0);
      const sums = new Map(members.map((k) => [k, far(k)]));
      return members.reduce((best, k) => (sums.get(k) < sums.get(best) ? k : best));
    }

    /** How far the members lie from one of them, root mean square. */
    spread({ members }, one) {
      const square = members.reduce((sum, k) =>
        sum + Numbers.distance(this.points[k], this.points[one]) ** 2, 0);
      return Math.sqrt(square / members.length);
    }

    described(cluster, starts) {
      const one = this.f ? this.best(cluster) : this.central(cluster);
      const extended = cluster.dimension > 0 && this.spread(cluster, one) > this.tolerance;
      return {
        point: this.points[one],
        value: this.f ? this.values[one] : null,
        hits: cluster.members.length,
        share: cluster.members.length / starts,
        kind: extended ? "continuum" : "point",
        dimension: extended ? cluster.dimension : 0,
        members: cluster.members,
      };
    }
  }

  function joined(clusters, dimension) {
    const gap = Math.max(...clusters.map((each) => each.gap));
    return { members: clusters.flatMap((each) => each.members), dimension, gap };
  }

  return { optima };
})();

// A part to turn: the parts there are, the pose that tau is, and what of it the operator sees. tau is
// [which part, turn, tilt, roll], in degrees: rolled about the axis to the eye first, then tilted,
// then turned about the upright one.
"use strict";

const Pose = (() => {
  const SEED = 3; // of the points that the operator sees
  const MOST_FACES = 30_000; // of a part of a visitor's own
  const parts = []; // each {name, solid, target, cloud}
  const { product, apply, turnedPlane } = Vectors;
  let points = 256;

  /** The parts that come with the operator. */
  async function load({ parts: given }, about) {
    parts.length = 0;
    points = about.tau.shape[1];
    for (const { name, vertices, faces } of given) {
      const [places, corners] = await Promise.all([vertices, faces].map(Assets.bytes));
      add(name, new Solid(new Float32Array(places.buffer), new Uint16Array(corners.buffer)));
    }
  }

  function add(name, solid) {
    const cloud = solid.scattered(points, SEED);
    parts.push({ name, solid, cloud, target: new Mirrors.Target(solid) });
    return parts.length - 1;
  }

  const part = ([which]) => parts[which];

  /** The rotation, as rows. */
  function rotation([, ...degrees]) {
    const [[a, b], [c, d], [e, f]] = degrees.map((each) => {
      const angle = (each * Math.PI) / 180;
      return [Math.cos(angle), Math.sin(angle)];
    });
    const turn = [[a, 0, b], [0, 1, 0], [-b, 0, a]];
    const tilt = [[1, 0, 0], [0, c, -d], [0, d, c]];
    const roll = [[e, -f, 0], [f, e, 0], [0, 0, 1]];
    return product(turn, product(tilt, roll));
  }

  /** The angles of a rotation. */
  function anglesOf(rows) {
    const angles = [Math.atan2(rows[0][2], rows[2][2]), -Math.asin(Numbers.clamp(rows[1][2], -1, 1)),
      Math.atan2(rows[1][0], rows[1][1])];
    return angles.map((each) => (each * 180) / Math.PI);
  }

  /** The pose after a drag to the right and down, by parts of a half turn. */
  function dragged(tau, right, down) {
    const way = rotation([0, 180 * right, 180 * down, 0]);
    return [tau[0], ...anglesOf(product(way, rotation(tau)))];
  }

  /** What the operator sees: points of the turned part, each with the normal there. */
  function observed(tau) {
    const rows = rotation(tau);
    return Float32Array.from(part(tau).cloud.flatMap((each) =>
      each.flatMap((vector) => apply(rows, vector))));
  }

  function atRandom(tau) {
    const next = Math.random;
    return [tau[0], 360 * next() - 180, (Math.asin(2 * next() - 1) * 180) / Math.PI,
      360 * next() - 180];
  }

  /** The distinct mirrors that planes (n * 4 numbers) have come to, with the share of the planes at
   * each: those that may have been on their way to it. */
  async function distinct(tau, ends, stale) {
    const rows = rotation(tau);
    const back = Vectors.transposed(rows);
    const own = ends.map((each) => turnedPlane(back, each));
    const found = await Mirrors.among(part(tau).target, own, stale);
    if (found === null) return null;
    const listed = [
      ...(found.family ? [familyOf(found.family, rows)] : []),
      ...found.planes.map((each) => ({
        ...measured(each), kind: "point", own: each.plane, point: turnedPlane(rows, each.plane),
      })),
    ];
    const owner = Int32Array.from(own, (each) => ownerOf(each, listed));
    listed.forEach((each, k) => {
      each.members = [...owner.keys()].filter((i) => owner[i] === k);
      each.hits = each.members.length;
      each.share = each.hits / ends.length;
    });
    const elsewhere = owner.filter((each) => each < 0).length / ends.length;
    return { optima: listed, owner, unconverged: elsewhere, inside: 1, best: found.best,
      uneven: found.uneven.length };
  }

  const measured = ({ residual, worst }) => ({ value: residual, worst });

  function familyOf(family, rows) {
    const [axis, point] = [family.axis, family.point].map((each) => apply(rows, each));
    return { ...measured(family), kind: "continuum", dimension: family.every ? 2 : 1, family,
      axis, point };
  }

  /** Which of the listed ones a plane is at, or -1. */
  function ownerOf(plane, listed) {
    let [best, far] = [-1, Mirrors.BESIDE];
    listed.forEach((each, k) => {
      if (!each.own) return;
      const apart = Vectors.apart(plane, each.own);
      if (apart < far) [best, far] = [k, apart];
    });
    if (best >= 0) return best;
    return listed.findIndex((each) => each.family && Mirrors.contains(each.family, plane));
  }

  // A part of a visitor's own

  /** Take over a file, as a part that is looked at from the same side. */
  async function bring(file, tau) {
    const [vertices, faces] = Meshes.read(file.name, new Uint8Array(await file.arrayBuffer()));
    if (faces.length / 3 > MOST_FACES) {
      throw new Error(`${file.name} has ${(faces.length / 3).toLocaleString("en")} triangles, and ` +
        `this page takes up to ${MOST_FACES.toLocaleString("en")}: see proxlearn symmetry.`);
    }
    return [add(file.name, new Solid(vertices, faces)), ...tau.slice(1)];
  }

  /** Between two planes, the shorter way. */
  function between(x, y, share) {
    return x.map((_, k) => {
      const at = k - k % 4;
      let square = [0, 0];
      for (let i = at; i < at + 4; i++) {
        square = [square[0] + (x[i] - y[i]) ** 2, square[1] + (x[i] + y[i]) ** 2];
      }
      const same = square[0] <= square[1] ? 1 : -1;
      return x[k] + share * (same * y[k] - x[k]);
    });
  }

  return { load, part, rotation, dragged, observed, atRandom, distinct, bring, between, parts };
})();

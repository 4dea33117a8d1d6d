// From where boxes ended to the distinct ones: the rules of proxlearn's detections/modes.py and
// detections/distinct.py. A box is (cx, cy, w, h), in parts of the picture.
"use strict";

const Boxes = (() => {
  const BANDWIDTH = 0.01; // boxes nearer than this gather
  const [MOST_STEPS, RESTS] = [300, 1e-3];
  const SAME = 0.65; // of the IoU: boxes that overlap so much are of one thing
  const POWER = 0.1; // of the share of the starts, in a score

  /** The distinct boxes among points, best first: {point, share, value: its score, members}; `quality`
   * says how good every point is, null where the operator does not rate them. */
  function distinct(points, quality) {
    const counted = [...points.keys()].filter((k) => counts(points[k]));
    const modes = modesOf(counted.map((k) => points[k]));
    const held = modes.map(() => []);
    for (const k of counted) held[nearest(points[k], modes)].push(k);
    const power = quality ? POWER : 1;
    const found = modes.map((place, m) => {
      const members = held[m];
      const good = quality ? members.reduce((sum, k) => sum + quality[k], 0) / Math.max(1, members.length) : 1;
      return { point: within(place), good, members };
    }).filter(({ point }) => point[2] > 0 && point[3] > 0);
    const score = ({ good, members }) => good * (members.length / points.length) ** power;
    const kept = [];
    for (const each of found.sort((x, y) => score(y) - score(x))) {
      const taker = kept.find((one) => overlap(one.point, each.point) >= SAME);
      if (taker) taker.more.push(...each.members);
      else kept.push({ ...each, more: [] });
    }
    return kept.map(({ point, good, members, more }) => {
      const all = [...members, ...more];
      const value = score({ good, members: all });
      return { point, members: all, hits: all.length, share: all.length / points.length, value };
    }).sort((x, y) => y.value - x.value);
  }

  /** Whether a point is a box in the picture. */
  const counts = (point) => point[2] > 0 && point[3] > 0 &&
    point.every((each) => each >= -1e-3 && each <= 1 + 1e-3);

  /** Mean shift from the middle of every cell that holds a point: where points gather, the places with
   * most points first. */
  function modesOf(points) {
    const cells = new Map();
    for (const point of points) {
      const cell = point.map((each) => Math.round(each / BANDWIDTH));
      cells.set(cell.join(), cell);
    }
    const inOrder = (x, y) => x[0] - y[0] || x[1] - y[1] || x[2] - y[2] || x[3] - y[3];
    let places = [...cells.values()].sort(inOrder)
      .map((cell) => cell.map((each) => each * BANDWIDTH));
    for (let step = 0; step < MOST_STEPS; step++) {
      let farthest = 0;
      places = places.map((place) => {
        const near = points.filter((each) => Numbers.distance(each, place) <= BANDWIDTH);
        if (!near.length) return place;
        const moved = place.map((_, i) => near.reduce((sum, each) => sum + each[i], 0) / near.length);
        moved.forEach((each, i) => { farthest = Math.max(farthest, Math.abs(each - place[i])); });
        return moved;
      });
      if (farthest <= RESTS * BANDWIDTH) break;
    }
    const many = new Map(places.map((place) =>
      [place, points.filter((each) => Numbers.distance(each, place) <= BANDWIDTH).length]));
    const kept = [];
    for (const place of places.sort((x, y) => many.get(y) - many.get(x))) {
      if (kept.every((one) => Numbers.distance(one, place) > BANDWIDTH)) kept.push(place);
    }
    return kept;
  }

  function nearest(point, places) {
    let [best, least] = [0, Infinity];
    places.forEach((place, k) => {
      const far = Numbers.distance(point, place);
      if (far < least) [best, least] = [k, far];
    });
    return best;
  }

  /** What of a box is in the picture. */
  function within([x, y, wide, tall]) {
    const [left, right] = [x - wide / 2, x + wide / 2].map((each) => Numbers.clamp(each, 0, 1));
    const [top, bottom] = [y - tall / 2, y + tall / 2].map((each) => Numbers.clamp(each, 0, 1));
    return [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top];
  }

  /** The intersection over union of two boxes. */
  function overlap(one, other) {
    const shared = [0, 1].map((i) => Math.max(0,
      Math.min(one[i] + one[i + 2] / 2, other[i] + other[i + 2] / 2) -
      Math.max(one[i] - one[i + 2] / 2, other[i] - other[i + 2] / 2)));
    const both = shared[0] * shared[1];
    return both / (one[2] * one[3] + other[2] * other[3] - both);
  }

  return { distinct };
})();

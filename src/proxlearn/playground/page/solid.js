// Triangle meshes at unit size: read from files, points scattered over them, and the distance to
// them by a tree of boxes. As proxlearn's meshes/, in double precision.
"use strict";

class Solid {
  static LEAF = 4; // triangles that are not divided further
  static FLAT = 1e-14; // the least area of a triangle, of a mesh of size 1

  /** `vertices` and `faces` are flat lists of threes, in any units. */
  constructor(vertices, faces) {
    const ends = [0, 1, 2].map((axis) => {
      let [low, high] = [Infinity, -Infinity];
      for (const k of faces) {
        low = Math.min(low, vertices[3 * k + axis]);
        high = Math.max(high, vertices[3 * k + axis]);
      }
      return [low, high];
    });
    const size = Math.max(...ends.map(([low, high]) => high - low));
    if (!(size > 0 && size < Infinity)) throw new Error("The file holds no triangles with a size.");
    const middle = ends.map(([low, high]) => (low + high) / 2);
    this.vertices = Float64Array.from(vertices, (each, k) => (each - middle[k % 3]) / size);
    this.faces = this.whole(faces);
    if (!this.faces.length) throw new Error("The file holds no triangles with an area.");
    this.radius = Math.sqrt(this.corners().reduce((most, [x, y, z]) =>
      Math.max(most, x * x + y * y + z * z), 0));
    this.plant();
  }

  /** Without the faces that have no area. */
  whole(faces) {
    const kept = [];
    const normals = [];
    for (let k = 0; k < faces.length; k += 3) {
      const [a, b, c] = [0, 1, 2].map((i) => this.vertex(faces[k + i]));
      const normal = Vectors.cross(Vectors.minus(b, a), Vectors.minus(c, a));
      const twice = Numbers.norm(normal);
      if (!(twice > 2 * Solid.FLAT)) continue;
      kept.push(faces[k], faces[k + 1], faces[k + 2]);
      normals.push(...normal.map((each) => each / twice), twice / 2);
    }
    this.normals = Float64Array.from(normals); // four numbers a face: the normal and the area
    return Uint32Array.from(kept);
  }

  vertex(k) {
    return [this.vertices[3 * k], this.vertices[3 * k + 1], this.vertices[3 * k + 2]];
  }

  normal(face) {
    return [this.normals[4 * face], this.normals[4 * face + 1], this.normals[4 * face + 2]];
  }

  /** The vertices that are used. */
  corners() {
    return [...new Set(this.faces)].map((k) => this.vertex(k));
  }

  /** So many points spread evenly over the surface, each with the unit normal there: [point, normal]. */
  scattered(count, seed) {
    const next = Numbers.random(seed);
    const ends = [];
    for (let k = 3, sum = 0; k < this.normals.length; k += 4) ends.push(sum += this.normals[k]);
    return Array.from({ length: count }, () => {
      const place = next() * ends[ends.length - 1];
      let [low, high] = [0, ends.length - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (ends[middle] > place) high = middle;
        else low = middle + 1;
      }
      const [a, b, c] = [0, 1, 2].map((i) => this.vertex(this.faces[3 * low + i]));
      const [root, t] = [Math.sqrt(next()), next()];
      const point = a.map((_, i) => (1 - root) * a[i] + root * (1 - t) * b[i] + root * t * c[i]);
      return [point, this.normal(low)];
    });
  }

  // The tree: nodes of six numbers for the box, and two for the first child or the triangles.

  plant() {
    const count = this.faces.length / 3;
    this.order = Uint32Array.from({ length: count }, (_, k) => k);
    const middles = Float64Array.from({ length: 3 * count }, (_, k) => {
      const face = 3 * Math.floor(k / 3);
      return [0, 1, 2].reduce((sum, i) => sum + this.vertices[3 * this.faces[face + i] + k % 3], 0);
    });
    this.boxes = [];
    this.nodes = [];
    this.grow(0, count, middles);
    this.boxes = Float64Array.from(this.boxes);
    this.nodes = Int32Array.from(this.nodes);
    this.stack = new Int32Array(64);
  }

  /** A node for the triangles from one place of the order to another. */
  grow(from, to, middles) {
    const node = this.nodes.length / 2;
    this.nodes.push(0, 0);
    this.boxes.push(...this.boxOf(from, to));
    if (to - from <= Solid.LEAF) {
      this.nodes[2 * node] = from;
      this.nodes[2 * node + 1] = to;
      return;
    }
    const box = this.boxes.slice(6 * node, 6 * node + 6);
    const wide = [0, 1, 2].map((axis) => box[axis + 3] - box[axis]);
    const axis = wide.indexOf(Math.max(...wide));
    this.order.subarray(from, to).sort((i, j) => middles[3 * i + axis] - middles[3 * j + axis]);
    const half = (from + to) >> 1;
    this.grow(from, half, middles);
    this.nodes[2 * node] = -(this.nodes.length / 2); // of the second child; the first comes next
    this.grow(half, to, middles);
  }

  boxOf(from, to) {
    const box = [Infinity, Infinity, Infinity, -Infinity, -Infinity, -Infinity];
    for (let k = from; k < to; k++) for (let i = 0; i < 3; i++) {
      const at = 3 * this.faces[3 * this.order[k] + i];
      for (let axis = 0; axis < 3; axis++) {
        box[axis] = Math.min(box[axis], this.vertices[at + axis]);
        box[axis + 3] = Math.max(box[axis + 3], this.vertices[at + axis]);
      }
    }
    return box;
  }

  /** The squared distance from a point to a node's box. */
  away(node, x, y, z) {
    const { boxes } = this;
    const at = 6 * node;
    const u = Math.max(boxes[at] - x, 0, x - boxes[at + 3]);
    const v = Math.max(boxes[at + 1] - y, 0, y - boxes[at + 4]);
    const w = Math.max(boxes[at + 2] - z, 0, z - boxes[at + 5]);
    return u * u + v * v + w * w;
  }

  /** Of the point of the surface that is nearest: {square, point, face}. */
  nearest([x, y, z]) {
    const { stack, nodes } = this;
    const best = { square: Infinity, point: [0, 0, 0], face: -1 };
    let held = 0;
    stack[held++] = 0;
    while (held) {
      const node = stack[--held];
      if (this.away(node, x, y, z) >= best.square) continue;
      const first = nodes[2 * node];
      if (first < 0) {
        const [left, right] = [node + 1, -first];
        const turned = this.away(left, x, y, z) < this.away(right, x, y, z);
        stack[held++] = turned ? right : left;
        stack[held++] = turned ? left : right;
      } else {
        for (let k = first; k < nodes[2 * node + 1]; k++) this.closer(this.order[k], x, y, z, best);
      }
    }
    return best;
  }

  /** Take the nearest point of a triangle if it is nearer than the best so far (Ericson, 5.1.5). */
  closer(face, x, y, z, best) {
    const { vertices, faces } = this;
    const [i, j, k] = [3 * faces[3 * face], 3 * faces[3 * face + 1], 3 * faces[3 * face + 2]];
    const [ax, ay, az] = [vertices[i], vertices[i + 1], vertices[i + 2]];
    const [ux, uy, uz] = [vertices[j] - ax, vertices[j + 1] - ay, vertices[j + 2] - az];
    const [vx, vy, vz] = [vertices[k] - ax, vertices[k + 1] - ay, vertices[k + 2] - az];
    const [px, py, pz] = [x - ax, y - ay, z - az];
    const [d1, d2] = [ux * px + uy * py + uz * pz, vx * px + vy * py + vz * pz];
    const [uu, uv, vv] = [ux * ux + uy * uy + uz * uz, ux * vx + uy * vy + uz * vz,
      vx * vx + vy * vy + vz * vz];
    let [s, t] = [0, 0]; // the point is a + s u + t v
    const [d3, d4, d5, d6] = [d1 - uu, d2 - uv, d1 - uv, d2 - vv];
    const [va, vb, vc] = [d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2];
    if (d1 <= 0 && d2 <= 0) [s, t] = [0, 0];
    else if (d3 >= 0 && d4 <= d3) [s, t] = [1, 0];
    else if (vc <= 0 && d1 >= 0 && d3 <= 0) [s, t] = [d1 / (d1 - d3), 0];
    else if (d6 >= 0 && d5 <= d6) [s, t] = [0, 1];
    else if (vb <= 0 && d2 >= 0 && d6 <= 0) [s, t] = [0, d2 / (d2 - d6)];
    else if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
      t = (d4 - d3) / (d4 - d3 + d5 - d6);
      s = 1 - t;
    } else [s, t] = [vb / (va + vb + vc), vc / (va + vb + vc)];
    const [qx, qy, qz] = [s * ux + t * vx, s * uy + t * vy, s * uz + t * vz];
    const square = (px - qx) ** 2 + (py - qy) ** 2 + (pz - qz) ** 2;
    if (square >= best.square) return;
    [best.square, best.face] = [square, face];
    [best.point[0], best.point[1], best.point[2]] = [ax + qx, ay + qy, az + qz];
  }
}

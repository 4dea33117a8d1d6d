// Files of triangle meshes, STL and OBJ, as flat lists of vertices and faces.
"use strict";

const Meshes = (() => {
  /** What a file holds, by its name's ending. */
  function read(name, bytes) {
    const ending = name.toLowerCase().split(".").pop();
    const readers = { stl, obj };
    if (!readers[ending]) throw new Error(`${name} is neither an STL nor an OBJ file.`);
    const [vertices, faces] = readers[ending](bytes);
    const whole = faces.every((each) => each >= 0 && each < vertices.length / 3);
    if (!faces.length || !whole || !vertices.every(Number.isFinite)) {
      throw new Error(`${name} holds no triangles that can be read: it may be damaged.`);
    }
    return [vertices, faces];
  }

  const text = (bytes) => new TextDecoder().decode(bytes);

  function stl(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const count = bytes.length >= 84 ? view.getUint32(80, true) : 0;
    const vertices = [];
    if (bytes.length === 84 + 50 * count && count) {
      for (let k = 0; k < count; k++) for (let i = 0; i < 9; i++) {
        vertices.push(view.getFloat32(84 + 50 * k + 12 + 4 * i, true));
      }
    } else {
      for (const [, ...place] of text(bytes).matchAll(/vertex\s+(\S+)\s+(\S+)\s+(\S+)/g)) {
        vertices.push(...place.map(Number));
      }
    }
    if (vertices.length % 9) vertices.length = 0; // not every triangle has three of them
    return [vertices, Array.from({ length: vertices.length / 3 }, (_, k) => k)];
  }

  function obj(bytes) {
    const [vertices, faces] = [[], []];
    for (const line of text(bytes).split("\n")) {
      const [what, ...rest] = line.trim().split(/\s+/);
      if (what === "v") vertices.push(...rest.slice(0, 3).map(Number));
      if (what !== "f") continue;
      const corners = rest.map((each) => parseInt(each, 10))
        .map((each) => (each > 0 ? each - 1 : vertices.length / 3 + each));
      for (let k = 2; k < corners.length; k++) faces.push(corners[0], corners[k - 1], corners[k]);
    }
    return [vertices, faces];
  }

  return { read };
})();

// A part in three dimensions, with planes: each as the circle in which it cuts a ball around the part,
// behind it and before it; mirrors are also drawn on the part, where they cut its surface.
"use strict";

const Body = (() => {
  const FINE = 900; // pixels along each side of the part's picture
  const QUICK = 360; // while it is turned
  const BALL = 1.1; // times the part's radius
  const WIDE = 0.005; // half the width of a line on the part, of its size
  const LIGHT = Vectors.unit([-0.35, 0.55, 0.75]);
  const DIM = 0.5; // how bright a surface is that the light does not fall on
  const NUMBERED = 24; // up to so many mirrors carry their number in the table
  const { dot, times, cross, unit } = Vectors;
  const map = { key: null, canvas: document.createElement("canvas") };

  function draw(context, size, scene) {
    const { page } = Colours.all();
    const { solid } = Pose.part(scene.tau);
    const radius = BALL * solid.radius;
    const frame = { context, radius, middle: size / 2, scale: (0.47 * size) / radius };
    context.fillStyle = page;
    context.fillRect(0, 0, size, size);
    const circles = circlesOf(frame, scene);
    const axes = (scene.list ?? []).flatMap((each, k) => (each.axis ? [{ ...each, k }] : []));
    for (const each of circles) arc(frame, each, false);
    axes.forEach((each) => rod(frame, scene, each, 1));
    paint(frame, scene, solid);
    axes.forEach((each) => rod(frame, scene, each, 0.45));
    for (const each of circles) arc(frame, each, true);
    numbers(frame, scene, circles, axes);
  }

  /** What is drawn of every plane: those of the points, and firmly those that are listed. */
  function circlesOf(frame, { x, owner, list, chosen }) {
    const circles = [];
    for (let k = 0; k < x.length / 4; k++) {
      const own = owner ? owner[k] : -1;
      const faded = chosen >= 0 && own !== chosen;
      circles.push(circle(frame, x.subarray(4 * k, 4 * k + 4), {
        colour: owner ? Colours.of(own) : Colours.all().accent,
        width: 1, alpha: faded ? 0.03 : own < 0 && owner ? 0.07 : 0.28,
      }));
    }
    (list ?? []).forEach((each, k) => {
      if (each.axis || (chosen >= 0 && chosen !== k)) return;
      const look = { colour: Colours.of(k), width: chosen === k ? 3 : 2, alpha: 1, k,
        fill: chosen === k ? 0.22 : 0.05 };
      circles.push(circle(frame, each.point, look));
    });
    return circles.filter((each) => each !== null);
  }

  /** Where a plane cuts the ball, as an ellipse on the screen; null where it does not. */
  function circle({ radius, middle, scale }, plane, look) {
    const length = Numbers.norm([plane[0], plane[1], plane[2]]);
    const normal = [plane[0] / length, plane[1] / length, plane[2] / length];
    const offset = plane[3] / length;
    if (Math.abs(offset) >= radius) return null;
    const across = Math.sqrt(radius * radius - offset * offset);
    const center = times(offset, normal);
    const flat = Math.hypot(normal[0], normal[1]);
    let along = flat < 1e-9 ? [1, 0, 0] : [normal[1] / flat, -normal[0] / flat, 0];
    let deep = cross(normal, along);
    if (deep[2] < 0) deep = times(-1, deep); // it goes towards the eye
    if (along[0] * deep[1] - along[1] * deep[0] > 0) along = times(-1, along);
    const edge = deep[2] < 1e-9 ? (center[2] > 0 ? -1 : 1) : -center[2] / (across * deep[2]);
    return {
      ...look, along, half: across * scale, flat: across * Math.hypot(deep[0], deep[1]) * scale,
      x: middle + center[0] * scale, y: middle - center[1] * scale,
      angle: Math.atan2(-along[1], along[0]), begin: Math.asin(Numbers.clamp(edge, -1, 1)),
    };
  }

  /** The part of a circle that is before the middle of the ball, or the other. */
  function arc({ context }, each, before) {
    const { x, y, half, flat, angle, begin } = each;
    const [from, to] = before ? [begin, Math.PI - begin] : [Math.PI - begin, 2 * Math.PI + begin];
    context.beginPath();
    context.ellipse(x, y, half, flat, angle, from, to);
    if (each.fill) {
      context.globalAlpha = each.fill;
      context.fillStyle = each.colour;
      context.fill();
    }
    context.globalAlpha = before ? each.alpha : 0.6 * each.alpha;
    context.strokeStyle = each.colour;
    context.lineWidth = each.width;
    context.stroke();
    context.globalAlpha = 1;
  }

  /** The axis of a family of mirrors. */
  function rod({ context, radius, middle, scale }, { chosen }, { axis, point, k }, alpha) {
    if (chosen >= 0 && chosen !== k) return;
    context.globalAlpha = alpha;
    context.strokeStyle = Colours.of(k);
    context.lineWidth = 3;
    context.setLineDash([9, 5]);
    context.beginPath();
    for (const way of [-1, 1]) {
      const [u, v] = [0, 1].map((i) => scale * (point[i] + way * radius * axis[i]));
      context.lineTo(middle + u, middle - v);
    }
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  function numbers({ context, radius, middle, scale }, { list, chosen }, circles, axes) {
    if (!list || list.length > NUMBERED) return;
    const { ink, page } = Colours.all();
    const written = [
      ...circles.filter((each) => each.k !== undefined).map(({ k, x, y, along, half }) => {
        const up = along[1] < 0 ? -1 : 1;
        return [k, x + up * along[0] * half, y - up * along[1] * half];
      }),
      ...axes.map(({ k, axis, point }) => {
        const up = axis[1] < 0 ? -radius : radius;
        return [k, middle + scale * (point[0] + up * axis[0]), middle - scale * (point[1] + up * axis[1])];
      }),
    ];
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineWidth = 4;
    for (const [k, x, y] of written) {
      if (chosen >= 0 && chosen !== k) continue;
      context.strokeStyle = page;
      context.strokeText(String(k + 1), x, y + 4);
      context.fillStyle = ink;
      context.fillText(String(k + 1), x, y + 4);
    }
    context.textAlign = "left";
  }

  // The part itself, by the nearest surface at every pixel

  function paint({ context, middle, scale, radius }, scene, solid) {
    const pixels = scene.live || scene.held ? QUICK : FINE;
    const mirrors = (scene.list ?? []).map((each, k) => ({ plane: each.own && each.point, k }))
      .filter(({ plane, k }) => plane && (scene.chosen < 0 || scene.chosen === k));
    const { page } = Colours.all();
    const key = [scene.tau.join(), pixels, page, mirrors.map(({ plane, k }) => [k, ...plane])].join();
    if (map.key !== key) {
      const image = rendered(solid, Pose.rotation(scene.tau), pixels, pixels / (2 * radius), mirrors);
      map.canvas.width = map.canvas.height = pixels;
      map.canvas.getContext("2d").putImageData(image, 0, 0);
      map.key = key;
    }
    context.imageSmoothingQuality = "high";
    const reach = radius * scale;
    context.drawImage(map.canvas, middle - reach, middle - reach, 2 * reach, 2 * reach);
  }

  function rendered(solid, rows, pixels, scale, mirrors) {
    const places = new Float64Array(solid.vertices.length);
    for (let k = 0; k < places.length; k += 3) {
      const [x, y, z] = Vectors.apply(rows, solid.vertices.subarray(k, k + 3));
      [places[k], places[k + 1], places[k + 2]] =
        [pixels / 2 + scale * x, pixels / 2 - scale * y, z];
    }
    const depth = new Float32Array(pixels * pixels).fill(-Infinity);
    const bright = new Float32Array(pixels * pixels);
    for (let face = 0; face < solid.faces.length / 3; face++) {
      const normal = Vectors.apply(rows, solid.normal(face));
      const towards = normal[2] < 0 ? -1 : 1; // either side may be seen
      const light = DIM + (1 - DIM) * Math.max(0, towards * dot(normal, LIGHT));
      const [a, b, c] = [0, 1, 2].map((i) => 3 * solid.faces[3 * face + i]);
      fill(places, a, b, c, light, pixels, depth, bright);
    }
    return coloured(depth, bright, pixels, scale, mirrors);
  }

  /** A triangle, at the pixels whose middles it covers. */
  function fill(places, a, b, c, light, pixels, depth, bright) {
    const [ax, ay, az] = [places[a], places[a + 1], places[a + 2]];
    const [ux, uy, uz] = [places[b] - ax, places[b + 1] - ay, places[b + 2] - az];
    const [vx, vy, vz] = [places[c] - ax, places[c + 1] - ay, places[c + 2] - az];
    const area = ux * vy - uy * vx;
    if (Math.abs(area) < 1e-9) return;
    const [low, high] = [ay + Math.min(0, uy, vy), ay + Math.max(0, uy, vy)];
    const [left, right] = [ax + Math.min(0, ux, vx), ax + Math.max(0, ux, vx)];
    const [firstRow, lastRow] = [Math.max(0, Math.ceil(low - 0.5)), Math.min(pixels - 1, Math.floor(high - 0.5))];
    const [first, last] = [Math.max(0, Math.ceil(left - 0.5)), Math.min(pixels - 1, Math.floor(right - 0.5))];
    for (let row = firstRow; row <= lastRow; row++) {
      const y = row + 0.5 - ay;
      for (let column = first; column <= last; column++) {
        const x = column + 0.5 - ax;
        const s = (x * vy - y * vx) / area;
        const t = (ux * y - uy * x) / area;
        if (s < 0 || t < 0 || s + t > 1) continue;
        const z = az + s * uz + t * vz;
        const at = row * pixels + column;
        if (z <= depth[at]) continue;
        depth[at] = z;
        bright[at] = light;
      }
    }
  }

  /** The picture: the surface, and where mirrors cut it. */
  function coloured(depth, bright, pixels, scale, mirrors) {
    const image = new ImageData(pixels, pixels);
    const { solid } = Colours.all();
    const lines = mirrors.map(({ plane, k }) => ({ plane, rgb: Colours.rgb(Colours.of(k)) }));
    for (let at = 0; at < depth.length; at++) {
      if (depth[at] === -Infinity) continue;
      const x = (at % pixels + 0.5 - pixels / 2) / scale;
      const y = (pixels / 2 - Math.floor(at / pixels) - 0.5) / scale;
      let colour = solid;
      for (const { plane, rgb } of lines) {
        const off = plane[0] * x + plane[1] * y + plane[2] * depth[at] - plane[3];
        if (off < WIDE && off > -WIDE) colour = rgb;
      }
      const light = colour === solid ? bright[at] : 0.75 + 0.25 * bright[at];
      for (let c = 0; c < 3; c++) image.data[4 * at + c] = light * colour[c];
      image.data[4 * at + 3] = 255;
    }
    return image;
  }

  return { draw };
})();

// A picture with boxes: those of the points, and firmly those that are listed.
"use strict";

const Photo = (() => {
  const NUMBERED = 30; // up to so many boxes carry their number in the table

  function draw(context, size, scene) {
    const { page } = Colours.all();
    const { canvas, width, height } = Pictures.picture(scene.tau);
    const scale = size / Math.max(width, height);
    const [wide, tall] = [scale * width, scale * height];
    const [left, top] = [(size - wide) / 2, (size - tall) / 2];
    context.fillStyle = page;
    context.fillRect(0, 0, size, size);
    context.imageSmoothingQuality = "high";
    context.drawImage(canvas, left, top, wide, tall);
    const place = ([x, y, w, h]) =>
      [left + (x - w / 2) * wide, top + (y - h / 2) * tall, w * wide, h * tall];
    drawPoints(context, place, scene);
    (scene.list ?? []).forEach((each, k) => drawBox(context, place(each.point), k, scene));
  }

  function drawPoints(context, place, { x, owner, list, chosen }) {
    context.lineWidth = 1;
    for (let k = 0; k < x.length / 4; k++) {
      const own = owner ? owner[k] : -1;
      context.strokeStyle = owner ? Colours.of(own) : Colours.all().accent;
      context.globalAlpha = chosen >= 0 && own !== chosen ? 0.03 : own < 0 && list ? 0.1 : 0.35;
      context.strokeRect(...place(x.subarray(4 * k, 4 * k + 4)));
    }
    context.globalAlpha = 1;
  }

  function drawBox(context, [x, y, wide, tall], k, { list, chosen }) {
    if (chosen >= 0 && chosen !== k) return;
    const { ink, page } = Colours.all();
    for (const [width, colour] of [[5.5, page], [2.5, Colours.of(k)]]) {
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.strokeRect(x, y, wide, tall);
    }
    if (list.length > NUMBERED && chosen !== k) return;
    const label = String(k + 1);
    context.font = "600 13px system-ui, sans-serif";
    const over = Math.max(0, y - 19);
    context.fillStyle = page;
    context.fillRect(x - 2.5, over, context.measureText(label).width + 10, 18);
    context.fillStyle = ink;
    context.fillText(label, x + 2.5, over + 13.5);
  }

  return { draw };
})();

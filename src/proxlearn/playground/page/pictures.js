// Pictures in which boxes are sought: those that come with the operator, and a visitor's own. tau is
// [which picture].
"use strict";

const Pictures = (() => {
  const SCATTERED = 0.25; // of the starts: where more end alone, the operator has not settled
  const LARGEST = 1600; // pixels along the longer side, of what is kept to be drawn
  const pictures = []; // each {canvas, width, height, numbers}
  let side = 0;

  /** The pictures that come with the operator: bytes, colour by colour. */
  async function load({ pictures: given }, about) {
    pictures.length = 0;
    side = about.tau.shape[2];
    for (const each of given) {
      const bytes = await Assets.bytes(each);
      const canvas = blank(side, side);
      const image = new ImageData(side, side);
      const area = side * side;
      for (let k = 0; k < area; k++) {
        for (let c = 0; c < 3; c++) image.data[4 * k + c] = bytes[c * area + k];
        image.data[4 * k + 3] = 255;
      }
      canvas.getContext("2d").putImageData(image, 0, 0);
      const numbers = Float32Array.from(bytes, (value) => value / 255);
      pictures.push({ canvas, width: side, height: side, numbers });
    }
  }

  const blank = (width, height) => Object.assign(document.createElement("canvas"), { width, height });

  const picture = ([which]) => pictures[which];

  /** What the operator sees: the pixels, stretched to a square. */
  const observed = (tau) => picture(tau).numbers;

  /** Take over a file. */
  async function bring(file) {
    const image = await createImageBitmap(file).catch(() => {
      throw new Error(`${file.name} is no picture that this browser can read.`);
    });
    const { width, height } = image;
    const share = Math.min(1, LARGEST / Math.max(width, height));
    const canvas = drawn(image, Math.max(1, Math.round(share * width)),
      Math.max(1, Math.round(share * height)));
    pictures.push({ canvas, width, height, numbers: seen(canvas) });
    return [pictures.length - 1];
  }

  function drawn(image, width, height) {
    const canvas = blank(width, height);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.fillStyle = "#fff"; // behind what is transparent
    context.fillRect(0, 0, width, height);
    context.drawImage(image, 0, 0, width, height);
    return canvas;
  }

  /** Brought to the operator's side by halves, so that every pixel is a mean of those it stands for. */
  function seen(canvas) {
    while (canvas.width > 2 * side || canvas.height > 2 * side) {
      const [width, height] = [canvas.width, canvas.height].map((each) =>
        (each > 2 * side ? Math.ceil(each / 2) : each));
      canvas = drawn(canvas, width, height);
    }
    const { data } = drawn(canvas, side, side).getContext("2d").getImageData(0, 0, side, side);
    const area = side * side;
    return Float32Array.from({ length: 3 * area }, (_, k) =>
      data[4 * (k % area) + Math.floor(k / area)] / 255);
  }

  /** The boxes that are listed, and what speaks against relying on them. */
  async function distinct(tau, points, stale, { about, quality }) {
    const every = Boxes.distinct(points, quality);
    const limit = quality ? about.threshold : Math.max(about.threshold, 2 / points.length);
    const listed = every.filter((each) => each.value >= limit).map((each) => ({
      ...each, kind: "point", pixels: inPixels(each.point, picture(tau)),
    }));
    const owner = new Int32Array(points.length).fill(-1);
    listed.forEach((each, k) => each.members.forEach((member) => { owner[member] = k; }));
    const alone = every.filter((each) => each.hits < 2).length / points.length;
    const unconverged = owner.filter((each) => each < 0).length / points.length;
    return { optima: listed, owner, unconverged, inside: 1, below: every.length - listed.length,
      limit, scattered: alone > SCATTERED ? alone : 0 };
  }

  /** From the left upper corner: x, y, width and height in the picture's own pixels. */
  function inPixels([x, y, wide, tall], { width, height }) {
    return [(x - wide / 2) * width, (y - tall / 2) * height, wide * width, tall * height];
  }

  return { load, picture, observed, bring, distinct };
})();

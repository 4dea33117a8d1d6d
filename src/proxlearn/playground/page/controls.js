// What changes tau: sliders for its numbers, for the peak that is held, or for the weights of edges.
"use strict";

const Controls = (() => {
  const PEAK = [
    ["across", 0], ["up", 1], ["height", 2], ["first width", 3], ["second width", 4],
    ["direction", 5],
  ];
  const LEAST_HEIGHT = 0.02; // of a peak that is there, as its third number

  let form = null;
  let about = null;
  let tau = [];
  let [changed, bring] = [null, null];
  let held = 0; // the peak that the sliders are of

  /** Fill the form for a problem; `change(tau)` is called whenever a number changes, `take(file)` when
   * a file is chosen. */
  function build(element, problem, begun, change, take) {
    [form, about, tau, changed, bring, held] = [element, problem, [...begun], change, take, 0];
    refill();
  }

  function refill() {
    form.replaceChildren();
    if (about.tau.kind === "none") return;
    form.append(chooser());
    if (about.tau.kind === "set") form.append(peakButtons(), ...PEAK.map(peakSlider));
    else if (about.tau.kind === "graph") form.append(edgeSliders());
    else if (about.tau.kind === "pose") form.append(...[1, 2, 3].map(numberSlider));
    else form.append(...about.tau.low.map((_, k) => numberSlider(k)));
  }

  /** The given instances by name, and one at random. */
  function chooser() {
    const row = element("div", { className: "row" });
    const names = Object.keys(about.presets);
    if (names.length) {
      const select = element("select", { id: "preset" });
      const first = about.files ? [] : ["choose ..."];
      select.append(...[...first, ...names].map((name) => element("option", {}, name)));
      if (about.files) select.value = names.find((name) => about.presets[name][0] === tau[0]);
      select.onchange = () => {
        const chosen = about.presets[select.value];
        if (chosen) set([...chosen]);
      };
      row.append(element("label", {}, about.files?.chosen ?? "Examples", " ", select));
    }
    if (about.tau.kind !== "picture") {
      const random = element("button", { type: "button" }, "At random");
      random.onclick = () => set(drawn());
      row.append(random);
    }
    if (about.files) row.append(fileChooser());
    return row;
  }

  /** A button for a file of the visitor's own. */
  function fileChooser() {
    const { accept, words } = about.files;
    const input = element("input", { type: "file", id: "file", accept, className: "unseen" });
    input.onchange = () => bring(input.files[0]);
    return element("label", { className: "button", htmlFor: "file" }, words, input);
  }

  /** A tau at random. */
  function drawn() {
    const between = (low, high) => low + Math.random() * (high - low);
    const { kind, low, high } = about.tau;
    if (kind === "pose") return Pose.atRandom(tau);
    if (kind === "graph") {
      const weights = tau.map(() => 0);
      const n = Math.sqrt(tau.length);
      for (const [i, j] of Graph.pairs(n)) {
        const weight = Math.random() < 0.55 ? between(0.1, 1) : 0;
        weights[i * n + j] = weights[j * n + i] = weight;
      }
      return weights;
    }
    const one = low.map((each, k) => between(each, high[k]));
    if (kind === "set") one[2] = Math.max(LEAST_HEIGHT, Math.abs(one[2]));
    return one;
  }

  function numberSlider(k) {
    const { low, high, labels, unit } = about.tau;
    const write = unit && ((value) => `${Math.round(value)}${unit}`.replace("-", "−"));
    return slider(labels[k], low[k], high[k], () => tau[k], (value) => { tau[k] = value; }, write);
  }

  function peakButtons() {
    const row = element("div", { className: "row", role: "group" });
    row.setAttribute("aria-label", "Peak");
    present().forEach((peak, k) => {
      const button = element("button", { type: "button", className: "small" }, `Peak ${k + 1}`);
      button.setAttribute("aria-pressed", String(peak === held));
      button.onclick = () => hold(peak);
      row.append(button);
    });
    const most = tau.length / 6;
    const add = element("button", { type: "button", className: "small" }, "Add");
    add.disabled = present().length === most;
    add.onclick = addPeak;
    const remove = element("button", { type: "button", className: "small" }, "Remove");
    remove.disabled = present().length === 1;
    remove.onclick = removePeak;
    row.append(add, remove);
    return row;
  }

  const present = () =>
    Array.from({ length: tau.length / 6 }, (_, k) => k).filter((k) => tau[6 * k + 2] > 0);

  function addPeak() {
    const free = Array.from({ length: tau.length / 6 }, (_, k) => k)
      .find((k) => tau[6 * k + 2] <= 0);
    const one = drawn().slice(6 * free, 6 * free + 6);
    one.forEach((each, i) => { tau[6 * free + i] = each; });
    held = free;
    set(tau);
  }

  function removePeak() {
    tau[6 * held + 2] = -1;
    held = present()[0];
    set(tau);
  }

  function peakSlider([label, i]) {
    const { low, high } = about.tau;
    const least = i === 2 ? LEAST_HEIGHT : low[6 * held + i];
    const write = i === 2 ? (value) => ((1 + value) / 2).toFixed(2) : undefined;
    const put = (value) => { tau[6 * held + i] = value; };
    return slider(label, least, high[6 * held + i], () => tau[6 * held + i], put, write);
  }

  function edgeSliders() {
    const n = Math.sqrt(tau.length);
    const all = element("details", {}, element("summary", {}, "The weights of all edges"));
    all.append(...Graph.pairs(n).map(([i, j]) =>
      slider(`${i + 1} – ${j + 1}`, 0, 1, () => tau[i * n + j], (value) => {
        tau[i * n + j] = tau[j * n + i] = value;
      })));
    return all;
  }

  /** A range input with its name and number. */
  function slider(label, low, high, get, put, write = (value) => value.toFixed(2).replace("-", "−")) {
    const id = `tau-${form.querySelectorAll("input").length}-${label.replace(/\W+/g, "-")}`;
    const input = element("input", { type: "range", id, min: low, max: high, step: "any" });
    const output = element("output", {});
    output.setAttribute("for", id);
    input.show = () => {
      input.value = get();
      output.textContent = write(get());
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.oninput = () => {
      put(Number(input.value));
      input.show();
      changed([...tau]);
    };
    input.onkeydown = (event) => steps(event, input, (high - low) / 50);
    input.show();
    return element("div", { className: "slider" }, element("label", { htmlFor: id }, label), input,
      output);
  }

  /** Arrows move by a fiftieth of the range; with step="any" browsers differ. */
  function steps(event, input, step) {
    const ways = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 };
    const way = ways[event.key];
    if (!way) return;
    event.preventDefault();
    input.value = Number(input.value) + way * step;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Another tau as a whole. */
  function set(other) {
    tau = other;
    if (about.tau.kind === "set" && !present().includes(held)) held = present()[0];
    refill();
    changed([...tau]);
  }

  /** Let the sliders be of this peak. */
  function hold(peak) {
    held = peak;
    refill();
    changed(null);
  }

  /** Take over numbers that were dragged in the picture. */
  function move(other) {
    tau = other;
    for (const input of form.querySelectorAll("input")) input.show?.();
    changed([...tau]);
  }

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  return { build, hold, move, set, present, element, held: () => held };
})();

// The colours of canvases: those of the style sheet, light or dark, and one for every optimum.
"use strict";

const Colours = (() => {
  const OPTIMA = ["--o1", "--o2", "--o3", "--o4", "--o5", "--o6", "--o7", "--o8"];
  let known = null;

  /** All of them, read once, and again when light turns dark. */
  function all() {
    if (known) return known;
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    known = {
      ink: read("--ink"), quiet: read("--quiet"), page: read("--card"), line: read("--line"),
      accent: read("--accent"), low: rgb(read("--map-low")), high: rgb(read("--map-high")),
      solid: rgb(read("--solid")), rest: read("--rest"), optima: OPTIMA.map(read),
    };
    return known;
  }

  const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  const forget = () => { known = null; };

  /** Of an optimum, by its place in the list; -1: of a point that belongs to none. */
  function of(k) {
    const { optima, rest } = all();
    return k < 0 ? rest : optima[k % optima.length];
  }

  return { all, of, rgb, forget };
})();

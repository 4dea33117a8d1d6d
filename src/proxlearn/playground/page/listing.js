// The table of what was found, and the sentence above it.
"use strict";

const Listing = (() => {
  const LISTED = 40; // optima in the table
  const { element } = Controls;
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  const signed = (text) => (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−"));
  const places = (numbers, digits) => numbers.map((x) => signed(x.toFixed(digits))).join(", ");

  // What the table says of a problem, by how it is drawn.
  const KINDS = {
    points: {
      value: "value", place: "place", worth: ({ value }) => short(value),
      where: ({ kind, dimension, point }) => (kind !== "continuum" ? places(point, 4)
        : dimension === 1 ? "along a curve" : "along a surface"),
      sentence: placesFound,
    },
    graph: {
      value: "weight cut", place: "sides of the vertices", first: 2,
      worth: ({ value }) => String(Number((-value).toFixed(4))),
      where: ({ point }) => point.map((side) => (side > 0 ? "+" : "−")).join(""),
      sentence: (...given) => placesFound(...given, ["cut", "cuts"]),
    },
    body: {
      value: "residual", place: "normal; distance from the middle",
      worth: ({ value }) => ofSize(value),
      where: ({ kind, dimension, axis, point }) => (kind === "point"
        ? `${places(point.slice(0, 3), 3)}; ${places(point.slice(3), 4)}`
        : dimension === 2 ? "all planes through one point"
          : `all planes through an axis along ${places(axis, 3)}`),
      sentence: mirrorsFound,
    },
    photo: {
      value: "score", place: "x, y, width, height in pixels",
      worth: ({ value }) => value.toFixed(3),
      where: ({ pixels }) => places(pixels, 1),
      sentence: boxesFound,
    },
  };

  const kindOf = (about) => KINDS[about.view] ?? KINDS.points;

  function short(value) {
    if (Math.abs(value) < 1e-9) return "0";
    return signed(Math.abs(value) < 1e-3 ? value.toExponential(1) : value.toFixed(4));
  }

  const ofSize = (length) => (length < 1e-6 ? "0%" : `${Number((100 * length).toPrecision(2))}%`);

  /** Fill the table; `pick(k)` is called when one is chosen. */
  function fill(table, about, answer, chosen, pick) {
    const kind = kindOf(about);
    const valued = answer.optima.some((each) => each.value !== null);
    const heads = ["", ...(valued ? [kind.value] : []), "share of starts", kind.place];
    const head = element("thead", {}, element("tr", {}, ...heads.map((text) =>
      element("th", { scope: "col" }, text))));
    const body = element("tbody", {}, ...answer.optima.slice(0, LISTED).map((each, k) =>
      row(each, k, valued, kind, chosen, pick)));
    const rest = answer.optima.length - LISTED;
    if (rest > 0) {
      body.append(element("tr", {}, element("td", { colSpan: heads.length }, `and ${rest} more`)));
    }
    if (answer.optima.length) table.replaceChildren(head, body);
    else table.replaceChildren();
  }

  function row(each, k, valued, kind, chosen, pick) {
    const button = element("button", { type: "button", className: "swatch" }, String(k + 1));
    button.style.setProperty("--own", Colours.of(k + (kind.first ?? 0)));
    button.setAttribute("aria-pressed", String(chosen === k));
    button.setAttribute("aria-label", `Show number ${k + 1} alone`);
    button.onclick = () => pick(k);
    const bar = element("span", { className: "bar" });
    bar.style.setProperty("--share", each.share);
    const share = element("span", { className: "share" }, percent(each.share), bar);
    const cells = [button, ...(valued ? [kind.worth(each)] : []), share, kind.where(each)];
    const line = element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
    line.onclick = (event) => { if (event.target !== button) pick(k); };
    return line;
  }

  /** What was found, in a sentence. */
  function summary(about, answer, starts) {
    return `${kindOf(about).sentence(about, answer, `${starts.toLocaleString("en")} starts`)}.`;
  }

  function placesFound(about, answer, starts, words = null) {
    const [one, many] = words ?? (about.objective ? ["optimum", "optima"]
      : ["place", "places where points gather"]);
    const count = answer.optima.length;
    const parts = [`${count} distinct ${count === 1 ? one : many} from ${starts}`];
    if (answer.unconverged > 0) parts.push(`${percent(answer.unconverged)} did not converge`);
    if (answer.inside < 1) parts.push(`${percent(1 - answer.inside)} left the box`);
    if (one === "place") {
      parts.push("no objective is known here, so none is verified as an optimum");
    }
    return parts.join("; ");
  }

  function mirrorsFound(about, answer, starts) {
    const families = answer.optima.filter((each) => each.kind === "continuum");
    const single = answer.optima.length - families.length;
    const words = families.map(({ dimension }) =>
      `all planes through one ${dimension === 2 ? "point: a sphere" : "axis"}`);
    if (single) words.push(`${single} mirror plane${single === 1 ? "" : "s"}`);
    const parts = [`${words.join(" and ") || "No mirror plane"} from ${starts}`];
    if (!words.length && answer.best) {
      parts.push(`the best has a residual of ${ofSize(answer.best.residual)} of the part's size, ` +
        `where a mirror has at most ${ofSize(Mirrors.TOLERANCE)}`);
    } else if (words.length && answer.unconverged > 0) {
      parts.push(`${percent(answer.unconverged)} ended at none of them`);
    }
    const { uneven } = answer;
    if (uneven) {
      parts.push(`${uneven} matched on average, but not in every place, and ` +
        `${uneven === 1 ? "is" : "are"} not listed`);
    }
    const said = parts.join("; ");
    return said[0].toUpperCase() + said.slice(1);
  }

  function boxesFound(about, answer, starts) {
    const count = answer.optima.length;
    const parts = [`${count || "No"} box${count === 1 ? "" : "es"} from ${starts} with a score of ` +
      `at least ${Number(answer.limit.toPrecision(3))}, ${about.chosen}`];
    if (answer.below) parts.push(`${answer.below} scored less`);
    if (answer.scattered) {
      parts.push(`${percent(answer.scattered)} of the starts ended where no other did: the operator ` +
        "has not settled on this picture, which may be unlike those that it was trained on");
    }
    return parts.join("; ");
  }

  return { fill, summary };
})();

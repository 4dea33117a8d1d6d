// The page: what is chosen, moved and shown.
"use strict";

const App = (() => {
  const REST = 200; // milliseconds without a move, after which all begins again from random starts
  const LIVE = 40; // milliseconds that an answer may take while something is dragged
  const REPLAY = 3000; // milliseconds, about, from the starts to the end
  const VIEWS = { plane: Plane, strands: Strands, graph: Graph, body: Body, photo: Photo };
  const find = (id) => document.getElementById(id);
  const state = {
    about: null, tau: [], seed: 1, history: [], shown: 0, answer: null, chosen: -1,
    live: null, run: 0, following: false, changed: 0, seen: 0, playing: false, dragged: null,
    latency: null,
  };
  let engine = null;
  let problems = [];

  /** Called with data/problems.js, the last script of the page. */
  async function begin(given) {
    problems = given;
    find("problems").append(...problems.map(({ name, title }) => {
      const button = Controls.element("button", { type: "button", id: `problem-${name}` }, title);
      button.onclick = () => choose(name).catch(fail);
      return button;
    }));
    listen();
    try {
      say("The runtime is loading ...");
      engine = await Engine.started(await Assets.load("runtime"));
      await choose(location.hash.slice(1));
    } catch (error) {
      fail(error);
    }
  }

  function fail(error) {
    say(`This did not work: ${error.message} A recent Firefox, Chrome, Edge or Safari is needed.`);
    console.error(error);
  }

  /** Show a problem, by its name; the first one where there is none of that name. */
  async function choose(name) {
    const about = problems.find((each) => each.name === name) ?? problems[0];
    const run = ++state.run;
    state.about = null; // nothing else goes on meanwhile
    play(false);
    for (const each of problems) {
      find(`problem-${each.name}`).setAttribute("aria-pressed", String(each === about));
    }
    find(`problem-${about.name}`).scrollIntoView({ block: "nearest", inline: "center" });
    say(`The operator for ${about.title.toLowerCase()} is loading ...`);
    const model = await Assets.load(about.name);
    if (run !== state.run) return;
    await Promise.all([engine.load(model), Flow.special(about)?.load(model, about)]);
    if (run !== state.run) return;
    Object.assign(state, { about, tau: [...about.start], live: null, answer: null, chosen: -1 });
    history.replaceState(null, "", `#${about.name}`);
    describe(about);
    Controls.build(find("controls"), about, state.tau, change, bring);
    await solve(true);
  }

  function describe(about) {
    find("title").textContent = about.title;
    find("about").textContent = about.words;
    find("hint").textContent = about.hint;
    find("card").textContent = about.card;
    find("picture").classList.toggle("draggable", ["set", "graph", "pose"].includes(about.tau.kind));
    find("warning").hidden = !about.warning;
    find("warning").textContent = about.warning ?? "";
    const few = matchMedia("(max-width: 700px)").matches ? 256 : about.starts;
    find("starts").value = String(few);
  }

  /** A file of the visitor's own becomes the tau. */
  async function bring(file) {
    const { about } = state;
    if (!file || !Flow.special(about)) return;
    try {
      const tau = await Flow.special(about).bring(file, state.tau);
      if (state.about !== about) return;
      about.presets[file.name] = tau;
      Controls.set([...tau]);
    } catch (error) {
      say(error.message);
    }
  }

  /** tau was moved to other numbers: the points follow at once; null: only what is held changed. */
  function change(tau) {
    if (tau === null || !state.about) return draw();
    state.tau = tau;
    state.changed = performance.now();
    state.run++;
    if (Flow.special(state.about)) { // the part turns at once, its planes when they are found
      state.live ??= beginning();
      draw();
    }
    follow().catch(fail);
  }

  /** While tau moves, some of the points go on from where they are, with the tau of the moment. */
  async function follow() {
    if (state.following) return;
    const { about } = state;
    state.following = true;
    try {
      await whileMoving(about);
    } finally {
      state.following = false;
    }
    if (state.about === about) await solve(false);
  }

  async function whileMoving(about) {
    state.live ??= beginning();
    let run = -1;
    while (performance.now() - state.changed < REST || run !== state.run) {
      const moved = state.changed;
      const fresh = run !== state.run;
      run = state.run;
      if (fresh) await engine.prepare(Flow.observed(about, state.tau), about);
      if (state.about !== about) return;
      const x = await engine.apply(state.live, about.dim);
      if (state.about !== about) return;
      state.live = x;
      draw();
      if (fresh) late(moved);
    }
  }

  /** The points that follow: as many as an application has time for. */
  function beginning() {
    const x = at(state.shown);
    const { dim } = state.about;
    const left = Math.max(LIVE / 2, LIVE - engine.perTau);
    const count = Math.max(48, Math.floor(left / engine.perPoint));
    return x.slice(0, Math.min(x.length, count * dim));
  }

  /** A move was answered: how long that took. */
  function late(moved) {
    state.seen = moved;
    state.latency = performance.now() - moved;
    find("latency").textContent = `answered in ${Math.round(state.latency)} ms`;
  }

  /** Solve from random starts; where it is to be watched, show every application as it is there. */
  async function solve(watched) {
    const run = ++state.run;
    const stale = () => run !== state.run;
    const { about, tau } = state;
    const x = Flow.starts(about, Number(find("starts").value), state.seed);
    find("optima").setAttribute("aria-busy", "true");
    if (watched) {
      Object.assign(state, { history: [x], shown: 0, live: null, answer: null, chosen: -1 });
      play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
    }
    await engine.prepare(Flow.observed(about, tau), about);
    const found = await Flow.solve(engine, about, x, stale, (history) => {
      if (watched) state.history = history;
      progress(history.length - 1);
    });
    if (found === null) return;
    const answer = await Flow.distinct(about, tau, found, stale);
    if (answer === null || stale()) return;
    Object.assign(state, { history: found, answer });
    if (state.chosen >= state.answer.optima.length) state.chosen = -1;
    if (!watched || !state.playing) state.shown = found.length - 1;
    state.live = null;
    list();
    timeline();
    draw();
  }

  /** The points after k applications, on the way between two where k is no whole number. */
  function at(k) {
    const low = Math.min(Math.floor(k), state.history.length - 1);
    const [x, y] = [state.history[low], state.history[low + 1]];
    if (!y || k === low) return x;
    if (state.about.view === "body") return Pose.between(x, y, k - low);
    return x.map((each, i) => each + (k - low) * (y[i] - each));
  }

  function scene() {
    const { about, tau, live, shown, answer, dragged } = state;
    const peaks = about.tau.kind === "set" ? Controls.present() : [];
    const still = live === null;
    return {
      name: about.name, dim: about.dim, space: about.space, ends: about.ends, tau, shown,
      labels: about.labels, history: state.history, live: !still,
      objective: Flow.objective(about, tau),
      x: live ?? at(shown),
      before: still && shown > 0 ? at(Math.max(0, shown - 1)) : null,
      owner: answer?.owner ?? null,
      list: still && answer && shown >= state.history.length - 1 ? answer.optima : null,
      chosen: state.chosen,
      handles: peaks.map((k) => ({ x: tau[6 * k], y: tau[6 * k + 1], held: k === Controls.held() })),
      held: dragged,
    };
  }

  function draw() {
    if (!state.about || !state.history.length) return;
    const canvas = find("picture");
    const size = canvas.clientWidth;
    const sharp = Math.min(2, window.devicePixelRatio || 1);
    if (canvas.width !== Math.round(size * sharp)) {
      canvas.width = canvas.height = Math.round(size * sharp);
    }
    const context = canvas.getContext("2d");
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    VIEWS[state.about.view].draw(context, size, scene());
  }

  // The timeline

  function play(on) {
    state.playing = on;
    find("play").textContent = on ? "❚❚" : "▶";
    find("play").setAttribute("aria-label", on ? "Pause" : "Play from the starts");
    if (on) requestAnimationFrame(frame);
  }

  let lastFrame = null;

  function frame(now) {
    if (!state.playing || !state.about) {
      lastFrame = null;
      return;
    }
    const pace = Numbers.clamp(REPLAY / state.about.applications, 30, 350);
    const passed = lastFrame === null ? 0 : Math.min(100, now - lastFrame);
    lastFrame = now;
    const last = state.history.length - 1;
    state.shown = Math.min(last, state.shown + passed / pace);
    draw();
    timeline();
    if (state.answer && state.shown >= last) play(false);
    requestAnimationFrame(frame);
  }

  function timeline() {
    const last = state.history.length - 1;
    find("application").max = last;
    find("application").value = Math.round(state.shown);
    find("step").textContent = `${Math.round(state.shown)} of ${last}`;
  }

  function progress(done) {
    say(`Solving from ${Number(find("starts").value).toLocaleString("en")} random starts: ` +
      `application ${done}`);
    if (!state.playing) draw();
  }

  // The table

  function list() {
    const { about, answer, chosen, history } = state;
    find("optima").removeAttribute("aria-busy");
    Listing.fill(find("optima"), about, answer, chosen, pick);
    const said = Listing.summary(about, answer, history[0].length / about.dim);
    say(said);
    find("picture").setAttribute("aria-label", `${about.title}: ${said}`);
  }

  function pick(k) {
    state.chosen = state.chosen === k ? -1 : k;
    const buttons = find("optima").querySelectorAll("button");
    buttons.forEach((each, i) => each.setAttribute("aria-pressed", String(i === state.chosen)));
    draw();
  }

  function say(text) {
    find("status").textContent = text;
  }

  // What is clicked and dragged

  function listen() {
    find("play").onclick = () => {
      if (!state.playing && state.shown >= state.history.length - 1) state.shown = 0;
      play(!state.playing);
      timeline();
    };
    find("application").oninput = ({ target }) => {
      play(false);
      state.shown = Number(target.value);
      timeline();
      draw();
    };
    find("starts").onchange = () => solve(true).catch(fail);
    find("redraw").onclick = () => {
      state.seed++;
      solve(true).catch(fail);
    };
    window.addEventListener("hashchange", () => choose(location.hash.slice(1)).catch(fail));
    find("controls").onsubmit = (event) => event.preventDefault();
    const canvas = find("picture");
    canvas.onpointerdown = grab;
    canvas.onpointermove = drag;
    canvas.onpointerup = canvas.onpointercancel = release;
    document.ondragover = (event) => event.preventDefault(); // or the browser opens the file
    document.ondrop = (event) => {
      event.preventDefault();
      bring(event.dataTransfer.files[0]);
    };
    new ResizeObserver(draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      Colours.forget();
      draw();
      if (state.answer) list();
    });
  }

  function grab(event) {
    const { about, tau } = state;
    if (!about) return;
    const size = event.target.clientWidth;
    if (about.tau.kind === "set") {
      const { to } = Plane.scale(about.space, size);
      const far = (k) => {
        const [u, v] = to(tau[6 * k], tau[6 * k + 1]);
        return Math.hypot(u - event.offsetX, v - event.offsetY);
      };
      const nearest = Controls.present().reduce((best, k) => (far(k) < far(best) ? k : best));
      if (far(nearest) > 26) return;
      Controls.hold(nearest);
      state.dragged = { peak: nearest };
    } else if (about.tau.kind === "graph") {
      const edge = Graph.edgeAt(Math.sqrt(tau.length), size, event.offsetX, event.offsetY);
      if (!edge) return;
      state.dragged = { ...edge, from: event.offsetY, weight: tau[edge.i * Math.sqrt(tau.length) + edge.j] };
    } else if (about.tau.kind === "pose") {
      state.dragged = { from: [event.offsetX, event.offsetY], tau: [...tau] };
    } else return;
    event.target.setPointerCapture(event.pointerId);
    draw();
  }

  function drag(event) {
    const { about, dragged } = state;
    if (!dragged) return;
    const size = event.target.clientWidth;
    if (about.tau.kind === "pose") {
      const [x, y] = dragged.from;
      Controls.move(Pose.dragged(dragged.tau, (event.offsetX - x) / size, (event.offsetY - y) / size));
      return;
    }
    const tau = [...state.tau];
    if (about.tau.kind === "set") {
      const place = Plane.scale(about.space, size).from(event.offsetX, event.offsetY);
      place.forEach((each, i) => {
        const k = 6 * dragged.peak + i;
        tau[k] = Numbers.clamp(each, about.tau.low[k], about.tau.high[k]);
      });
    } else {
      const n = Math.sqrt(tau.length);
      const moved = dragged.weight + (dragged.from - event.offsetY) / (0.4 * size);
      const weight = Numbers.clamp(moved, 0, 1);
      tau[dragged.i * n + dragged.j] = tau[dragged.j * n + dragged.i] = weight;
    }
    Controls.move(tau);
  }

  function release() {
    state.dragged = null;
    draw();
  }

  /** What the page makes of a tau and starts (n * dim numbers), for tests and consoles. */
  async function answer(tau, starts) {
    const run = ++state.run;
    await engine.prepare(Flow.observed(state.about, tau), state.about);
    const x = Float32Array.from(starts);
    const found = await Flow.solve(engine, state.about, x, () => run !== state.run, () => {});
    if (found === null) return null;
    const { optima, unconverged } = await Flow.distinct(state.about, tau, found, () => false);
    return { points: Array.from(found.at(-1)), applications: found.length - 1, unconverged,
      optima: optima.map(({ members, ...each }) => each) };
  }

  const workers = () => engine.workers.length;

  return { begin, answer, workers, state };
})();

// Operators in WebAssembly: onnxruntime-web in a few workers, each with a share of the points.
"use strict";

const PIECE = 256; // points that go through the network together: a new tau waits for no more

const blobOf = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));

/** What runs in a worker. */
function engineWork() {
  let ort = null; // onnxruntime-web
  let sessions = null;
  let prepared = null;
  const tasks = {
    async start({ script, wasm }) {
      // Of a blob, and in a worker that is no module itself: so it works in a page from a file, too.
      const address = (bytes, type) => URL.createObjectURL(new Blob([bytes], { type }));
      ort = await import(address(script, "text/javascript"));
      ort.env.wasm.numThreads = 1;
      ort.env.wasm.wasmPaths = { wasm: address(wasm, "application/wasm") };
      ort.env.logLevel = "error";
    },
    async load({ prepare, apply }) {
      prepared = null;
      sessions = {
        prepare: await ort.InferenceSession.create(prepare),
        apply: await ort.InferenceSession.create(apply),
      };
    },
    async prepare({ tau, shape, lam }) {
      const known = {
        tau: new ort.Tensor("float32", tau, shape),
        lam: new ort.Tensor("float32", [lam], [1]),
      };
      const feeds = Object.fromEntries(sessions.prepare.inputNames.map((k) => [k, known[k]]));
      prepared = await sessions.prepare.run(feeds);
    },
    async apply({ x, dim }) {
      const feeds = { x: new ort.Tensor("float32", x, [1, x.length / dim, dim]) };
      for (const name of sessions.apply.inputNames) if (name !== "x") feeds[name] = prepared[name];
      const { y, quality } = await sessions.apply.run(feeds);
      return { y: y.data, quality: quality?.data };
    },
  };
  let last = Promise.resolve();
  self.onmessage = ({ data }) => {
    last = last.then(async () => {
      try {
        self.postMessage({ id: data.id, result: await tasks[data.task](data) });
      } catch (error) {
        self.postMessage({ id: data.id, error: String(error?.message ?? error) });
      }
    });
  };
}

class Engine {
  /** Workers with the runtime in them; `runtime` is what data/runtime.js holds. */
  static async started(runtime) {
    const engine = new Engine();
    const source = blobOf(`(${engineWork})();`);
    const count = Numbers.clamp((navigator.hardwareConcurrency ?? 2) - 1, 1, 4);
    engine.workers = Array.from({ length: count }, () => new Worker(source));
    for (const worker of engine.workers) {
      worker.onmessage = ({ data }) => engine.settle(data);
      worker.onerror = (event) => engine.fail(event.message);
    }
    const [script, wasm] = await Promise.all([runtime.script, runtime.wasm].map(Assets.bytes));
    await engine.all("start", { script, wasm });
    return engine;
  }

  constructor() {
    this.workers = [];
    this.waiting = new Map();
    this.asked = 0;
    this.perPoint = 0.1; // milliseconds for an application, as measured
    this.perTau = 0; // and for what is prepared of a tau
  }

  settle({ id, result, error }) {
    const { resolve, reject } = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) reject(new Error(error));
    else resolve(result);
  }

  fail(message) {
    for (const { reject } of this.waiting.values()) reject(new Error(message));
    this.waiting.clear();
  }

  ask(worker, task, content, transfer = []) {
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      worker.postMessage({ id, task, ...content }, transfer);
    });
  }

  all(task, content) {
    return Promise.all(this.workers.map((worker) => this.ask(worker, task, content)));
  }

  async load(model) {
    const [prepare, apply] = await Promise.all([model.prepare, model.apply].map(Assets.bytes));
    await this.all("load", { prepare, apply });
  }

  /** All that depends on tau alone; `tau` is what the operator sees of it. */
  async prepare(tau, { tau: { shape }, lam }) {
    const begun = performance.now();
    await this.all("prepare", { tau: Float32Array.from(tau), shape, lam });
    this.perTau = performance.now() - begun;
  }

  /** One application to points (n * dim numbers), piece by piece; null where `stale()` by then. What
   * an operator says of how good they are goes into `quality`. */
  async apply(x, dim, stale = () => false, quality = null) {
    const y = new Float32Array(x.length);
    const begun = performance.now();
    const piece = dim * Math.min(PIECE, Math.ceil(x.length / dim / this.workers.length));
    let next = 0;
    await Promise.all(this.workers.map(async (worker) => {
      while (next < x.length && !stale()) {
        const [from, to] = [next, Math.min(next + piece, x.length)];
        next = to;
        const some = x.slice(from, to);
        const found = await this.ask(worker, "apply", { x: some, dim }, [some.buffer]);
        y.set(found.y, from);
        if (quality) quality.set(found.quality, from / dim);
      }
    }));
    if (stale()) return null;
    const took = (performance.now() - begun) / Math.max(1, x.length / dim);
    this.perPoint += 0.3 * (took - this.perPoint);
    return y;
  }
}

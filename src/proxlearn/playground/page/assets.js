// What the data scripts bring: operators and the runtime, as base64 of gzip. Scripts, since a page
// that is opened from a file may load nothing else.
"use strict";

const Assets = (() => {
  const given = new Map();
  const asked = new Map();

  /** Called by the scripts in data/. */
  function add(name, content) {
    given.set(name, content);
    if (name === "problems") App.begin(content);
  }

  /** The content of data/NAME.js, which is fetched when it is first asked for. */
  function load(name) {
    if (!asked.has(name)) {
      asked.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = `data/${name}.js`;
        script.onload = () => resolve(given.get(name));
        script.onerror = () => reject(new Error(`data/${name}.js is missing from this folder.`));
        document.head.append(script);
      }));
    }
    return asked.get(name);
  }

  /** The bytes that base64 of gzip stands for. */
  async function bytes(text) {
    const packed = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  return { add, load, bytes };
})();

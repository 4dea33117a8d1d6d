// Tables are sorted by their headings, and on a narrow screen every row is a card.
"use strict";

function content(cell) {
  const text = cell ? cell.textContent.trim() : "";
  return text === "-" ? "" : text;
}

function number(text) {
  const found = text.replaceAll(",", "").match(/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?/i);
  return found ? parseFloat(found[0]) : null;
}

function compare(a, b) {
  if (!a || !b) return a ? -1 : b ? 1 : 0;
  const [x, y] = [number(a), number(b)];
  if (x !== null && y !== null && x !== y) return x - y;
  return a.localeCompare(b, undefined, { numeric: true });
}

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.querySelectorAll("thead th")];
  const body = table.tBodies[0];
  if (!body || !heads.length) continue;
  const rows = [...body.rows];
  rows.forEach((row) => [...row.cells].forEach((cell, k) => {
    cell.dataset.label = heads[k] ? heads[k].textContent : "";
    cell.classList.toggle("none", content(cell) === "");
  }));
  table.parentElement.classList.add("cards");
  if (rows.length < 2) continue;
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.setAttribute("aria-label", "Sort by " + button.textContent);
    head.append(button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      if (was === "descending") return body.append(...rows);
      head.setAttribute("aria-sort", was ? "descending" : "ascending");
      const sorted = [...rows].sort((a, b) => {
        const [x, y] = [content(a.cells[k]), content(b.cells[k])];
        return was && x && y ? compare(y, x) : compare(x, y);
      });
      body.append(...sorted);
    });
  });
}

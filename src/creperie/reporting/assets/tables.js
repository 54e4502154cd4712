// Tables sort by a click on a heading: numbers by size, texts by letters; rows without a value stay last.
(() => {
  "use strict";
  const value = (row, k) => {
    const v = row.cells[k].dataset.v;
    if (v === "") return null;
    const n = Number(v);
    return Number.isNaN(n) ? v : n;
  };
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  const sort = (table, k, heading) => {
    const up = heading.ariaSort === "descending" || (heading.ariaSort !== "ascending" && heading.classList.contains("text"));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, i) => [row, value(row, k), i]);
    rows.sort(([, a, i], [, b, j]) => {
      if (a === null || b === null) return a === b ? i - j : a === null ? 1 : -1;
      return (up ? order(a, b) : order(b, a)) || i - j;
    });
    body.append(...rows.map(([row]) => row));
  };
  document.addEventListener("click", (event) => {
    const heading = event.target.closest("table.sortable thead th");
    if (heading) sort(heading.closest("table"), heading.cellIndex, heading);
  });
})();

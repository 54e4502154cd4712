// Tables sort by a click on a heading: numbers by size, texts by letters. Rows without a value, and then the row of all items, stay last.
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
    const whole = (row) => row.classList.contains("whole");
    rows.sort(([one, a, i], [other, b, j]) => {
      if (whole(one) !== whole(other)) return whole(one) - whole(other);
      if (a === null || b === null) return a === b ? i - j : a === null ? 1 : -1;
      return (up ? order(a, b) : order(b, a)) || i - j;
    });
    body.append(...rows.map(([row]) => row));
  };
  // What goes on beyond its edge fades there, until it is scrolled to its end.
  const cut = (one) => one.classList.toggle("cut", one.scrollWidth - one.clientWidth - Math.abs(one.scrollLeft) > 4);
  const watch = new ResizeObserver((seen) => seen.forEach(({ target }) => cut(target)));
  const wide = () => document.querySelectorAll(".scroll, .chips, .rail").forEach((one) => { watch.observe(one); cut(one); });
  new MutationObserver(wide).observe(document.body, { childList: true, subtree: true });
  document.addEventListener("scroll", (event) => { if (event.target.matches?.(".scroll, .chips, .rail")) cut(event.target); }, true);
  wide();
  // A filter above a table keeps the rows whose first cell holds all of its words.
  document.addEventListener("input", (event) => {
    const box = event.target.closest("[data-filter]");
    if (!box) return;
    const words = box.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    for (const row of box.closest(".matrix").querySelectorAll("tbody tr")) {
      const name = row.cells[0].textContent.toLowerCase();
      row.hidden = !words.every((word) => name.includes(word));
    }
  });
  // Figures as files: in the colours of the page, drawn by the browser; the numbers are in the page.
  const hand = (blob, name) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-save]");
    if (!button) return;
    const figure = button.closest("figure"), svg = figure.querySelector("svg"), kind = button.dataset.save;
    const name = svg.getAttribute("aria-label").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) + "." + kind;
    if (kind === "csv") return hand(new Blob([figure.dataset.csv], { type: "text/csv" }), name);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number), look = getComputedStyle(document.body), copy = svg.cloneNode(true);
    copy.removeAttribute("style");  // a strict content policy lets no script set it: it is written into the text
    for (const [key, value] of Object.entries({ width, height })) copy.setAttribute(key, value);
    const style = (start) => `${start} style='color:${look.color};background:${look.backgroundColor}'`;
    const shade = (name) => { const probe = document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true })); probe.style.color = `var(${name})`; const value = getComputedStyle(probe).color; probe.remove(); return value; };
    const text = new XMLSerializer().serializeToString(copy).replace(/^<\w+/, style).replace(/var\((--[a-z-]+)\)/g, (_, variable) => shade(variable));
    if (kind === "svg") return hand(new Blob([text], { type: "image/svg+xml" }), name);
    const image = new Image(), canvas = Object.assign(document.createElement("canvas"), { width: 3 * width, height: 3 * height });
    image.src = "data:image/svg+xml," + encodeURIComponent(text);
    await image.decode();
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => hand(blob, name));
  });
  // Tabs: without scripts all panels are shown one below the other.
  const tabs = [...document.querySelectorAll(".tabs [role=tab]")];
  const choose = (tab) => {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      document.querySelector(other.getAttribute("href")).hidden = other !== tab;
    }
  };
  const byHash = () => tabs.find((tab) => tab.getAttribute("href") === location.hash);
  if (tabs.length) {
    choose(byHash() || tabs[0]);
    addEventListener("hashchange", () => { const tab = byHash(); if (tab) { choose(tab); tab.scrollIntoView(); } });
  }
  document.addEventListener("click", (event) => {
    const heading = event.target.closest("table.sortable thead th");
    if (heading) sort(heading.closest("table"), heading.cellIndex, heading);
  });
})();

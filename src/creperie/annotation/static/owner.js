// The owner's pages: copy links, save them as CSV, follow the progress of a study without a reload.
"use strict";
(() => {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (button && button.dataset.copy) {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = button.dataset.copied;
    } else if (button && button.id === "links-csv") {
      const rows = [...document.querySelectorAll(".links li")].map((li) => [li.dataset.name, li.querySelector("code").textContent]);
      const text = "annotator,link\n" + rows.map((row) => row.join(",") + "\n").join("");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      link.download = "links.csv";
      link.click();
      URL.revokeObjectURL(link.href);
    }
  });


  const live = document.querySelector("[data-live]");
  const put = (root, part, value) => { for (const node of root.querySelectorAll(`[data-part="${part}"]`)) node.textContent = value; };
  async function follow() {
    if (document.visibilityState !== "visible") return;
    try {
      const reply = await fetch(live.dataset.live);
      if (!reply.ok) return;
      const now = await reply.json();
      put(live, "done", now.done);
      put(live, "held", now.held);
      for (const row of document.querySelectorAll("[data-subset]")) {
        const one = now.subsets.find((s) => s.subset === row.dataset.subset);
        if (!one) continue;
        put(row, "done", one.done);
        row.querySelector("progress").value = one.done;
      }
    } catch { /* the next time, then */ }
  }
  if (live) setInterval(follow, 5000);
})();

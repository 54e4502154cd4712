// The owner's pages: copy links, save them as CSV.
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

})();

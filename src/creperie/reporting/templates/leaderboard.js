// The leaderboard looks for new runs every two seconds while its tab is seen, and keeps the order that was chosen.
(() => {
  "use strict";
  const board = document.getElementById("board"), state = document.getElementById("state");
  let version = board.dataset.version, failures = 0;
  const runs = () => new Set([...board.querySelectorAll("[data-run]")].map((a) => a.dataset.run));
  const orders = () => {
    const found = new Map();
    for (const section of board.querySelectorAll("section")) {
      const heading = section.querySelector("th[aria-sort]");
      if (heading) found.set(section.dataset.bench, [heading.textContent, heading.ariaSort]);
    }
    return found;
  };
  const again = (kept) => {
    for (const [bench, [name, order]] of kept) {
      const heading = [...board.querySelectorAll(`section[data-bench="${CSS.escape(bench)}"] th`)].find((h) => h.textContent === name);
      for (let tries = 0; heading && heading.ariaSort !== order && tries < 2; tries++) heading.querySelector("button").click();
    }
  };
  const say = (text, fine) => { state.textContent = text; state.classList.toggle("live", fine); };
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(`board?version=${encodeURIComponent(version)}`, { cache: "no-store" });
      failures = 0;
      if (answer.status === 200) {
        const before = runs(), kept = orders();
        board.innerHTML = await answer.text(); // written by the server, every name escaped there
        version = answer.headers.get("x-version");
        again(kept);
        for (const link of board.querySelectorAll("[data-run]")) if (!before.has(link.dataset.run)) link.closest("tr").classList.add("new");
      }
      const n = runs().size;
      say(`live · ${n} ${n === 1 ? "run" : "runs"}`, true);
    } catch {
      failures++;
      say(failures > 1 ? "the server does not answer" : state.textContent, failures < 2);
    }
  };
  setInterval(look, 2000);
  document.addEventListener("visibilitychange", look);
  look();
})();

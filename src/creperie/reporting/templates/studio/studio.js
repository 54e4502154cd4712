// The studio: filters that submit themselves, endless scrolling, polling of jobs, keyboard shortcuts.
(() => {
  "use strict";
  const fetched = async (address) => {
    const answer = await fetch(address, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const text = await answer.text();
    return new DOMParser().parseFromString(text, "text/html").body; // escaped by the server; the parser runs no script
  };
  for (const form of document.querySelectorAll("form[data-auto]")) form.addEventListener("change", () => form.requestSubmit());

  // A chosen file is read into the form's text field, where it can be checked; its name becomes the benchmark's.
  for (const input of document.querySelectorAll("[data-into]")) input.addEventListener("change", async () => {
    const [file] = input.files, { elements } = input.form;
    if (!file) return;
    elements[input.dataset.into].value = await file.text();
    if (elements.name && !elements.name.value) elements.name.value = file.name.replace(/\.[^.]*$/, "");
  });

  const seen = new IntersectionObserver(async (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      try {
        const body = await fetched(target.href);
        target.replaceWith(...body.childNodes);
        watchMore();
      } catch { target.textContent = "more items (the studio does not answer)"; }
    }
  }, { rootMargin: "600px" });
  const watchMore = () => document.querySelectorAll("[data-more]").forEach((link) => seen.observe(link));
  watchMore();

  const poll = async () => {
    const place = document.querySelector("[data-poll]");
    if (!place || document.hidden) return;
    try {
      const fresh = (await fetched(place.dataset.poll)).firstElementChild;
      if (!fresh) return;
      if ("done" in fresh.dataset) location.reload();
      else place.replaceWith(fresh);
    } catch { /* the studio has ended: the page stays as it is */ }
  };
  if (document.querySelector("[data-poll]")) setInterval(poll, 1500);

  document.addEventListener("keydown", (event) => {
    const all = [...document.querySelectorAll(".candidate")], at = all.indexOf(document.activeElement.closest(".candidate"));
    if (!all.length || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && at >= 0) { all[at].focus(); return; }
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName) && document.activeElement.type !== "checkbox") return;
    const go = (k) => all[Math.max(0, Math.min(all.length - 1, k))].focus();
    if (event.key === "j") go(at + 1);
    else if (event.key === "k") go(at - 1);
    else if (at >= 0 && (event.key === "a" || event.key === "r")) { all[at].querySelector("[type=checkbox]").checked = event.key === "a"; go(at + 1); }
    else if (at >= 0 && event.key === "e") { event.preventDefault(); all[at].querySelector("[aria-label]").focus(); }
  });
})();

// The studio: filters apply while typing, an item opens beside the grid, endless scrolling, jobs, keys.
(() => {
  "use strict";
  const $ = (selector, within = document) => within.querySelector(selector);
  const fetched = async (address, form) => {
    const answer = await fetch(address, { cache: "no-store", ...(form ? { method: "POST", body: new URLSearchParams(form) } : {}) });
    if (!answer.ok) throw new Error(answer.status);
    return new DOMParser().parseFromString(await answer.text(), "text/html"); // escaped by the server; the parser runs no script
  };
  const typing = () => /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName) && !/^(checkbox|radio)$/.test(document.activeElement.type);
  const later = (ms, work) => { let timer; return (...values) => { clearTimeout(timer); timer = setTimeout(() => work(...values), ms); }; };

  $(".rail [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); // on a phone the rail is a strip

  // Filters: a form with data-live replaces the results while somebody types; without it, a choice submits the form.
  let latest = 0;
  const refresh = async (address) => {
    const mine = ++latest;
    try {
      const fresh = $("#results", await fetched(address));
      if (mine !== latest || !fresh) return;
      $("#results").replaceWith(fresh);
      history.replaceState(null, "", address);
      watchMore();
    } catch { /* the old results stay */ }
  };
  for (const form of document.querySelectorAll("form[data-auto]")) { $("[type=submit]", form).hidden = true; form.addEventListener("change", () => form.requestSubmit()); }
  for (const form of document.querySelectorAll("form[data-live]")) {
    $("[type=submit]", form).hidden = true;
    const address = () => form.getAttribute("action") + "?" + new URLSearchParams([...new FormData(form)].filter(([, v]) => v));
    form.addEventListener("input", later(150, () => refresh(address())));
    form.addEventListener("submit", (event) => { event.preventDefault(); refresh(address()); });
  }

  // A form that the studio refuses keeps what was typed, and says why; a slow one says what it does.
  let sendFirst = async () => {}; // what is sent before a form, such as the pictures of a folder
  const send = async (form, button) => {
    const problem = $(".problem[role]", form), main = button || $("button.main", form), body = new URLSearchParams(new FormData(form, button));
    main.disabled = true;
    problem.hidden = true;
    try {
      await sendFirst(form, body);
      const answer = await fetch(form.getAttribute("action"), { method: "POST", body });
      if (answer.redirected) { location.href = answer.url; return; }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (answer.ok) { document.body.replaceWith(page.body); history.replaceState(null, "", "/studies"); scrollTo(0, 0); return; }
      throw new Error($(".note", page).textContent);
    } catch (error) { problem.textContent = error instanceof TypeError ? "The studio does not answer." : error.message; }
    problem.hidden = main.disabled = false;
  };
  for (const form of document.querySelectorAll("form[data-stay]")) form.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    send(form, event.submitter);
  });
  for (const busy of document.querySelectorAll("[data-busy]")) {
    const show = (on) => { busy.hidden = !on; busy.previousElementSibling.disabled = on; };
    busy.closest("form").addEventListener("submit", () => show(true));
    addEventListener("pageshow", () => show(false)); // also when somebody comes back
  }

  // A chosen or dropped file is read into the form's text field, where its columns are shown; its name becomes the benchmark's.
  const decoded = (bytes) => { // spreadsheets write UTF-8, UTF-16 with its mark, or Windows-1252
    const coding = { "255,254": "utf-16le", "254,255": "utf-16be" }[bytes.slice(0, 2)] ?? "utf-8";
    try { return [new TextDecoder(coding, { fatal: true }).decode(bytes), true]; } catch { return [new TextDecoder("windows-1252").decode(bytes), false]; }
  };
  const take = async (file, form, field) => {
    if (!file) return;
    const [text, sure] = decoded(new Uint8Array(await file.arrayBuffer())), readable = !/[\0-\x08]/.test(text);
    const said = !readable ? `${file.name} is not a text file. Choose a ${field === "table" ? "CSV, TSV or JSON-lines file: a spreadsheet can be saved as CSV, a zip unpacked" : "text file"}.` : sure ? "" : `${file.name} is not UTF-8: it was read as Windows-1252. If letters with accents look wrong, save it as UTF-8 and choose it again.`;
    $("[data-read]", form).textContent = said;
    form.elements[field].value = readable ? text : "";
    if (form.elements.file) form.elements.file.value = file.name;
    if (readable && form.elements.name && !form.elements.name.value) form.elements.name.value = file.name.replace(/\.[^.]*$/, "");
    form.elements[field].dispatchEvent(new Event("input", { bubbles: true }));
    return said;
  };
  for (const input of document.querySelectorAll("[data-into]")) input.addEventListener("change", () => take(input.files[0], input.form, input.dataset.into));
  // A folder: its table is read as above; its pictures are sent one by one before the import.
  const drop = $("[data-drop]");
  if (drop) {
    const show = () => { drop.open ||= location.hash === "#import"; };
    show();
    window.addEventListener("hashchange", show);
    const form = $("form", drop), TABLE = /\.(csv|tsv|jsonl|txt)$/i, PICTURE = /\.(jpe?g|png|webp|gif|bmp|tiff?)$/i;
    let pictures = [], sentAs = "";
    const say = (...words) => { $("#taken").textContent = words.filter(Boolean).join(". "); };
    const takeAll = async (files) => { // [path within the folder, file]
      const table = files.find(([path]) => TABLE.test(path));
      [pictures, sentAs] = [files.filter(([path]) => PICTURE.test(path)), ""];
      if (!table) { say("There is no table (CSV, TSV or JSON lines) in this folder"); return; }
      const said = await take(table[1], form, "table");
      say(`${table[0]} and ${pictures.length.toLocaleString("en")} picture${pictures.length === 1 ? "" : "s"}`, said);
    };
    const walk = async (entry, path) => {
      if (entry.isFile) return [[path, await new Promise((done, failed) => entry.file(done, failed))]];
      const reader = entry.createReader(), found = [];
      for (let some; (some = await new Promise((done, failed) => reader.readEntries(done, failed))).length;) for (const one of some) found.push(...await walk(one, path ? `${path}/${one.name}` : one.name));
      return found;
    };
    for (const kind of ["dragover", "dragleave", "drop"]) document.addEventListener(kind, async (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind !== "drop" || !event.dataTransfer.files.length) return;
      drop.open = true;
      const entries = [...event.dataTransfer.items].map((one) => one.webkitGetAsEntry());
      if (entries.length === 1 && entries[0].isFile) take(event.dataTransfer.files[0], form, "table");
      else takeAll((await Promise.all(entries.map((one) => walk(one, entries.length > 1 ? one.name : "")))).flat());
    });
    $("[data-folder]").addEventListener("change", (event) => takeAll([...event.target.files].map((file) => [file.webkitRelativePath.split("/").slice(1).join("/"), file])));
    sendFirst = async (sending, body) => {
      if (sending !== form || !pictures.length || body.get("pictures")) return;
      const name = body.get("name"), table = body.get("table");
      for (const [k, [path, file]] of sentAs === name ? [] : pictures.entries()) {
        say(`Sending picture ${(k + 1).toLocaleString("en")} of ${pictures.length.toLocaleString("en")}`);
        const image = table.includes(path) ? path : path.split("/").at(-1); // as the table names it
        const answer = await fetch("/picture?" + new URLSearchParams({ name, image }), { method: "POST", body: file });
        if (!answer.ok) throw new Error($(".note", new DOMParser().parseFromString(await answer.text(), "text/html")).textContent);
      }
      sentAs = name;
      body.set("pictures", `${name}-pictures`);
    };
    const head = (text) => text.length > 200000 ? text.slice(0, text.lastIndexOf("\n", 200000)) : text;
    form.addEventListener("input", later(250, async () => { try { $("#preview").replaceChildren(...(await fetched("/import", { ...Object.fromEntries(new FormData(form)), then: "preview", pictures: pictures.length || form.elements.pictures.value, table: head(form.elements.table.value), cut: form.elements.table.value.length > 200000 ? "yes" : "" })).body.childNodes); } catch { /* no preview */ } }));
  }

  // More cards as the page is scrolled.
  const seen = new IntersectionObserver(async (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      try { target.replaceWith(...(await fetched(target.href)).body.childNodes); watchMore(); } catch { target.textContent = "more items (the studio does not answer)"; }
    }
  }, { rootMargin: "600px" });
  const watchMore = () => document.querySelectorAll("[data-more]").forEach((link) => seen.observe(link));
  watchMore();

  // One item beside the grid. The address holds it, so that it can be sent.
  const open = async (address) => {
    const split = $("#split");
    if (!split) { location.href = address; return; }
    try {
      const fresh = (await fetched(address + "&part=item")).body.firstElementChild;
      const old = $("#panel"), { step } = document.activeElement.dataset;
      if (old) old.replaceWith(fresh); else split.append(fresh);
      split.classList.add("open");
      history.replaceState(null, "", address);
      const key = new URLSearchParams(address.split("?")[1]).get("at");
      for (const card of document.querySelectorAll("#cards .card")) card.classList.toggle("on-sel", $("[data-item]", card)?.dataset.item === key);
      $("#cards .on-sel")?.scrollIntoView({ block: "nearest" });
      fresh.scrollTop = 0;
      (step && $(`[data-step=${step}]`, fresh) || fresh).focus({ preventScroll: true });
    } catch { location.href = address; }
  };
  const close = () => {
    const at = $("#cards .on-sel [data-item]");
    $("#panel").remove();
    $("#split").classList.remove("open");
    $("#cards .on-sel")?.classList.remove("on-sel");
    const address = new URL(location.href);
    address.searchParams.delete("at");
    history.replaceState(null, "", address);
    at?.focus();
  };
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const step = event.target.closest("#split [data-step]"), shut = event.target.closest("#split [data-close]");
    const card = event.target.closest("#split .card"), link = step || (card && !event.target.closest("a:not([data-item])") && $("[data-item]", card));
    if (shut) { event.preventDefault(); close(); } else if (link) { event.preventDefault(); open(link.getAttribute("href")); }
  });
  $("#split #panel")?.focus({ preventScroll: true });
  // A picture that cannot be shown says why.
  document.addEventListener("error", async (event) => {
    const image = event.target;
    if (image.tagName !== "IMG" || !image.src.includes("/picture?")) return;
    const tile = document.createElement("p");
    tile.className = "none";
    tile.textContent = "this picture cannot be shown";
    image.replaceWith(tile);
    try { const answer = await fetch(image.src); tile.textContent = $(".note", new DOMParser().parseFromString(await answer.text(), "text/html")).textContent; } catch { /* no reason was given */ }
  }, true);

  const poll = async () => {
    const place = $("[data-poll]");
    if (!place || document.hidden) return;
    try {
      const fresh = (await fetched(place.dataset.poll)).body.firstElementChild;
      if (!fresh) return;
      if ("done" in fresh.dataset) location.reload();
      else place.replaceWith(fresh);
    } catch { /* the studio has ended: the page stays as it is */ }
  };
  if ($("[data-poll]")) setInterval(poll, 1500);

  // Two runs are compared on one benchmark: the second list offers those of the first one's, and moves only when the first does.
  const [first, second] = document.querySelectorAll("[data-pair]");
  const match = (event) => {
    const group = first.selectedOptions[0]?.dataset.group;
    for (const option of second.options) option.hidden = option.disabled = (option.dataset.group !== group || option.value === first.value) && !(option.selected && !event);
    if (second.selectedOptions[0]?.disabled !== false) second.value = [...second.options].find((option) => !option.disabled)?.value ?? "";
  };
  if (second) { first.addEventListener("change", match); match(); }

  // Foils: edited in place; what is accepted is judged at once.
  const made = $("#made");
  if (made) {
    const judge = later(300, async () => { try { $("#accepted").replaceChildren(...(await fetched(made.dataset.judge, new FormData(made))).body.childNodes); } catch { /* not judged */ } });
    made.addEventListener("change", judge);
    judge();
  }
  const edit = (candidate) => {
    const field = $("textarea", candidate), shown = $("[data-text]", candidate);
    field.dataset.before = field.value;
    field.hidden = false; shown.hidden = true; field.focus(); field.setSelectionRange(field.value.length, field.value.length);
    field.onblur = () => { field.value = field.value.replace(/\s*\n\s*/g, " ").trim(); if ($(".caption", shown).textContent !== field.value) $(".caption", shown).textContent = field.value; field.hidden = true; shown.hidden = false; };
  };
  document.addEventListener("click", (event) => { const button = event.target.closest("[data-edit]"); if (button) edit(button.closest(".candidate")); });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const all = [...document.querySelectorAll(".candidate")].filter((one) => one.checkVisibility()), at = all.indexOf(document.activeElement.closest(".candidate"));
    if (event.key === "Escape") { if (at >= 0) { if (document.activeElement.tagName === "TEXTAREA") document.activeElement.value = document.activeElement.dataset.before; all[at].focus(); } else if ($("#split #panel")) close(); return; }
    if (at >= 0 && event.key === "Enter" && document.activeElement.tagName === "TEXTAREA") { event.preventDefault(); all[at].focus(); return; }
    if (typing()) return;
    if (event.key === "/" && $("[data-search]")) { event.preventDefault(); $("[data-search]").focus(); }
    const down = event.key === "j" || event.key === "ArrowRight", up = event.key === "k" || event.key === "ArrowLeft";
    if ($("#split") && (down || up)) {
      const step = $(`#split [data-step=${down ? "next" : "previous"}]`), first = $("#cards [data-item]");
      if (step) open(step.getAttribute("href")); else if (!$("#panel") && first) open(first.getAttribute("href"));
    }
    if (!all.length) return;
    const go = (k) => all[Math.max(0, Math.min(all.length - 1, k))].focus();
    if (event.key === "j") go(at + 1);
    else if (event.key === "k") go(at - 1);
    else if (at >= 0 && (event.key === "a" || event.key === "r")) { const box = $("[type=checkbox]", all[at]); box.checked = event.key === "a"; box.dispatchEvent(new Event("change", { bubbles: true })); go(at + 1); }
    else if (at >= 0 && event.key === "e") { event.preventDefault(); edit(all[at]); }
  });
})();

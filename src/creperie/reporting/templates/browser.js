// The item browser: filters over compact columns, a list that draws only what is seen, and one item in full.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const { data, open, picture, why, terms, taskOf, outcomes, caption, trueOf, differences, against } = columns;
  const WORDS = { 1: "right", 0: "wrong", 2: "tie", "-1": "not covered" };
  const SIGNS = { 1: "✓", 0: "✗", 2: "=", "-1": "·" };
  const KINDS = { 1: "hit", 0: "miss", 2: "tie", "-1": "void" };
  const ANY = -1, EVERY = -2, DISAGREE = -3;

  const el = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [k, v] of Object.entries(attributes)) if (v !== null && v !== undefined) made.setAttribute(k, v);
    made.append(...children.filter((c) => c !== null && c !== undefined));
    return made;
  };

  const marked = (i, j) => {
    const other = against(b, i, j), text = caption(b, i, j);
    return other === null ? [text] : differences(text, other).map(([piece, differs]) => (differs ? el("mark", {}, piece) : piece));
  };

  // -- state, kept in the address so that a view can be sent --------------------------------------------------------
  const blank = () => ({ bench: 0, q: "", subset: "", sort: "", tag: "", value: "", from: "", to: "", mfrom: "", mto: "", item: "", conds: [] });
  let state = blank(), shown = new Uint32Array(0), active = 0, b = null;

  const write = () => {
    const parts = new URLSearchParams();
    for (const [k, v] of Object.entries(state)) if (k !== "conds" && v !== "" && v !== 0) parts.set(k, v);
    for (const c of state.conds) parts.append("c", `${c.who}.${c.task}.${c.out}`);
    const text = parts.toString();
    if (text) history.replaceState(null, "", "#items?" + text);
    else if (location.hash.startsWith("#items?")) history.replaceState(null, "", location.pathname + location.search);
  };
  const read = () => {
    const text = location.hash.split("?")[1];
    if (!text) return;
    const parts = new URLSearchParams(text);
    for (const k of Object.keys(state)) if (parts.has(k)) state[k] = k === "bench" ? Number(parts.get(k)) || 0 : parts.get(k);
    if (!data.benches[state.bench]) state.bench = 0;
    for (const c of parts.getAll("c")) {
      const found = /^(-?\d+)\.(.+)\.(-?\d)$/.exec(c);
      if (found) state.conds.push({ who: Number(found[1]), task: found[2], out: Number(found[3]) });
    }
  };

  // -- filtering ----------------------------------------------------------------------------------------------------
  const judged = (t, i) => (t.outcome[i] === 2 ? t.tie : t.outcome[i]);   // a tie is right or wrong by the tie rule
  const has = (t, i, out) => (out === 2 ? t.outcome[i] : judged(t, i)) === out;
  const test = (bench, c) => {
    if (c.who >= 0) {
      const task = bench.runs[c.who] && taskOf(bench.runs[c.who], c.task);
      return task ? (i) => has(task, i, c.out) : () => false;
    }
    const all = outcomes(bench, c.task);
    if (c.who === ANY) return (i) => all.some((t) => has(t, i, c.out));
    if (c.who === EVERY) return (i) => {
      const asked = c.out === -1 ? all : all.filter((t) => t.outcome[i] !== -1);   // as in the studio
      return asked.length > 0 && asked.every((t) => has(t, i, c.out));
    };
    return (i) => all.some((t) => has(t, i, 1)) && all.some((t) => has(t, i, 0));
  };
  const focus = () => {
    const first = state.conds[0];
    const task = first ? first.task : b.tasks[0];
    const runs = b.runs.filter((r) => taskOf(r, task) && taskOf(r, task).margin);
    return { task, runs: first && first.who >= 0 ? runs.filter((r) => r === b.runs[first.who]) : runs };
  };
  const margin = () => {
    const { task, runs } = focus();
    const columns = runs.map((r) => taskOf(r, task).margin);
    return (i) => {
      let low = NaN;
      for (const c of columns) if (!(c[i] >= low)) low = Number.isNaN(c[i]) ? low : c[i];
      return low;
    };
  };
  const searched = () => {
    const tests = terms(state.q).map((t) => {
      const holds = t.key === "subset" ? (i) => b.subsets[b.subset[i]].toLowerCase().includes(t.words)
        : t.key === "model" ? rightBy(t.words) : inWords(t);
      return t.without ? (i) => !holds(i) : holds;
    });
    return tests.length ? (i) => tests.every((t) => t(i)) : null;
  };
  const rightBy = (name) => {
    const runs = b.runs.filter((r) => r.tasks.length && (r.label + " " + r.model).toLowerCase().includes(name));
    const all = runs.map((r) => taskOf(r, b.tasks[0]) || r.tasks[0]);
    return (i) => all.length > 0 && all.every((t) => has(t, i, 1));
  };
  const inWords = (t) => {
    const hit = b.lower ? Uint8Array.from(b.lower, (text) => (text.includes(t.words) && t.pattern.test(text) ? 1 : 0)) : null;
    return (i) => {
      if (b.ids[i].toLowerCase() === t.words) return true;
      if (hit) for (let j = b.at.text[i]; j < b.at.text[i + 1]; j++) if (hit[b.cap[j]]) return true;
      return false;
    };
  };
  const tagged = () => {
    const tag = b.tags.find((t) => t.name === state.tag);
    if (!tag) return null;
    if (tag.kind === "number") return between((i) => tag.numbers[i], state.from, state.to);
    if (state.value === "") return null;
    const code = tag.values.indexOf(state.value);
    return (i) => tag.codes[i] === code;
  };
  const between = (of, from, to) => {
    const low = from === "" ? -Infinity : Number(from), high = to === "" ? Infinity : Number(to);
    return low === -Infinity && high === Infinity ? null : (i) => of(i) >= low && of(i) <= high;
  };
  const filter = () => {
    const code = b.subsets.indexOf(state.subset);
    const tests = [
      code >= 0 ? (i) => b.subset[i] === code : null,
      ...state.conds.map((c) => test(b, c)), tagged(), searched(), between(margin(), state.mfrom, state.mto),
    ].filter(Boolean);
    const found = [];
    for (let i = 0; i < b.n; i++) if (tests.every((t) => t(i))) found.push(i);
    if (state.sort) {
      const of = margin(), sign = state.sort === "best" ? -1 : 1;
      const key = new Map(found.map((i) => [i, state.sort === "close" ? Math.abs(of(i)) : sign * of(i)]));
      found.sort((x, y) => (Number.isNaN(key.get(x)) ? 1 : Number.isNaN(key.get(y)) ? -1 : key.get(x) - key.get(y)) || x - y);
    }
    shown = Uint32Array.from(found);
    active = 0;
    $("clear").hidden = JSON.stringify({ ...state, item: "" }) === JSON.stringify({ ...blank(), bench: state.bench });
    $("count").textContent = `${shown.length.toLocaleString("en")} of ${b.n.toLocaleString("en")} items`;
    $("list").scrollTop = 0;
    height = 0;
    write();
    draw();
  };

  // -- controls -----------------------------------------------------------------------------------------------------
  const options = (select, pairs, chosen) => {
    select.replaceChildren(...pairs.map(([v, t]) => el("option", { value: v }, t)));
    select.value = String(chosen);
  };
  const who = () => [
    ...b.runs.map((r, k) => [k, r.label]),
    ...(b.runs.length > 1 ? [[ANY, "any model"], [EVERY, "every model"], [DISAGREE, "models disagree"]] : []),
  ];
  const conditions = () => {
    const line = (c, k) => {
      const select = (name, pairs, chosen, set) => {
        const made = el("select", { "aria-label": name });
        options(made, pairs, chosen);
        made.onchange = () => { set(made.value); conditions(); filter(); };
        return made;
      };
      const tasks = (c.who >= 0 ? b.runs[c.who].tasks.map((t) => t.name) : b.tasks).map((t) => [t, t]);
      const drop = el("button", { type: "button", "aria-label": "Remove this condition" }, "✕");
      drop.onclick = () => { state.conds.splice(k, 1); conditions(); filter(); };
      return el("span", { class: "cond" },
        select("Model", who(), c.who, (v) => { c.who = Number(v); if (c.who >= 0 && !taskOf(b.runs[c.who], c.task)) c.task = b.runs[c.who].tasks[0].name; }),
        select("Task", tasks, c.task, (v) => { c.task = v; }),
        c.who === DISAGREE ? null : select("Outcome", Object.entries(WORDS), c.out, (v) => { c.out = Number(v); }),
        drop);
    };
    const add = el("button", { type: "button", class: "add", id: "add" }, state.conds.length ? "+ and …" : "+ condition on an outcome");
    add.onclick = () => {
      const k = b.runs.findIndex((r) => r.tasks.length);
      if (k < 0) return;
      state.conds.push({ who: k, task: b.runs[k].tasks[0].name, out: 0 });
      conditions(); filter();
    };
    $("conditions").replaceChildren(...state.conds.map(line), add);
    for (const chip of $("presets").children) chip.setAttribute("aria-pressed", String(chip.dataset.conds === JSON.stringify(state.conds)));
  };
  const presets = () => {
    const found = [];
    b.runs.forEach((r, k) => {
      for (const x of r.tasks.slice(0, 4)) for (const y of r.tasks.slice(0, 4)) {
        if (x !== y) found.push([`${x.name} ✓ ${y.name} ✗`, r.label, [{ who: k, task: x.name, out: 1 }, { who: k, task: y.name, out: 0 }]]);
      }
    });
    for (const task of b.tasks) {
      const having = b.runs.map((r, k) => k).filter((k) => taskOf(b.runs[k], task));
      if (having.length > 1) {
        found.push([`${task}: models disagree`, "", [{ who: DISAGREE, task, out: 0 }]]);
        found.push([`${task}: every model wrong`, "", [{ who: EVERY, task, out: 0 }]]);
      }
      if (having.length > 1 && having.length <= 4) for (const x of having) for (const y of having) {
        if (x !== y) found.push([`${task}: ${b.runs[x].label} ✓ ${b.runs[y].label} ✗`, "", [{ who: x, task, out: 1 }, { who: y, task, out: 0 }]]);
      }
      found.push([`${task}: ties`, "", [having.length > 1 ? { who: ANY, task, out: 2 } : { who: having[0], task, out: 2 }]]);
    }
    const chips = [];
    for (const [name, of, conds] of found) {
      const tests = conds.map((c) => test(b, c));
      let n = 0;
      for (let i = 0; i < b.n; i++) if (tests.every((t) => t(i))) n++;
      if (!n) continue;
      const chip = el("button", { type: "button", class: "chip", "data-conds": JSON.stringify(conds), "aria-pressed": "false" },
        name, of && b.runs.length > 1 ? el("i", {}, of) : null, el("small", {}, n.toLocaleString("en")));
      chip.onclick = () => { state.conds = chip.getAttribute("aria-pressed") === "true" ? [] : JSON.parse(chip.dataset.conds); conditions(); filter(); };
      chips.push(chip);
    }
    $("presets").replaceChildren(...chips);
  };
  const controls = () => {
    const counts = new Uint32Array(b.subsets.length);
    for (const s of b.subset) counts[s]++;
    options($("subset"), [["", "all"], ...b.subsets.map((s, k) => [s, `${s} (${counts[k].toLocaleString("en")})`])], state.subset);
    options($("tag"), [["", "any"], ...b.tags.filter((t) => t.kind === "number" || t.values.length <= 60).map((t) => [t.name, t.name])], state.tag);
    $("tag").parentElement.hidden = !b.tags.length;
    for (const k of ["q", "sort", "from", "to", "mfrom", "mto"]) $(k).value = state[k];
    tagValues();
  };
  const tagValues = () => {
    const tag = b.tags.find((t) => t.name === state.tag);
    $("value-label").hidden = !tag || tag.kind !== "text";
    $("range").hidden = !tag || tag.kind !== "number";
    if (tag && tag.kind === "text") options($("value"), [["", "any"], ...tag.values.map((v) => [v, v])], state.value);
  };
  const enter = (k) => {
    b = open(k);
    const known = (c) => (c.who >= 0 ? b.runs[c.who] && taskOf(b.runs[c.who], c.task) : b.tasks.includes(c.task));
    state.conds = state.conds.filter(known);
    presets(); controls(); conditions(); filter();
  };

  // -- the list -----------------------------------------------------------------------------------------------------
  const list = $("list"), spacer = $("spacer");
  let height = 0, drawn = "";
  const sign = (value, digits = 3) => (Number.isNaN(value) ? "" : (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(digits));
  const marks = (i) => {
    const { task } = focus(), has = (r) => taskOf(r, task) ? 0 : 1;
    const told = b.runs.filter((r) => r.tasks.length).sort((r, s) => has(r) - has(s)), most = 4;   // whole lines
    const more = told.length > most ? [el("span", { class: "mark void" }, el("b"), el("span", { class: "who" }, `and ${told.length - most + 1} more`))] : [];
    return told.slice(0, most - more.length).map((r) => {
      const t = taskOf(r, task) || r.tasks[0], o = t.outcome[i], m = t.margin ? t.margin[i] : NaN;
      const title = `${r.label}, ${t.name}: ${WORDS[o]}${Number.isNaN(m) ? "" : ", margin " + sign(m, 4)}`;
      return el("span", { class: "mark " + KINDS[o], title }, el("b", { "aria-hidden": "true" }, SIGNS[o]), el("span", { class: "who" }, r.label),
        el("span", { class: "how" }, t.name === task ? "" : t.name), el("span", { class: "lead" }, Number.isNaN(m) ? "" : sign(m)));
    }).concat(more);
  };
  const thumb = (i) => {
    const many = b.nimages[i];
    const box = el("span", { class: "pic" + (many > 1 ? " two" : "") });
    for (let k = 0; k < Math.min(2, many); k++) {
      const src = picture(b, b.image[b.at.images[i] + k]);
      box.append(src ? el("img", { src, alt: "", decoding: "async", loading: "lazy" }) : el("span", { class: "none", title: why(b, b.image[b.at.images[i] + k]) }, "no picture"));
    }
    return box;
  };
  const row = (k) => {
    const i = shown[k], words = el("span", { class: "words" });
    const order = [...Array(b.cols[i]).keys()];
    const first = order.filter((j) => trueOf(b, i, j).length), last = order.filter((j) => !trueOf(b, i, j).length);
    const some = b.cols[i] <= 3 ? order : [...first.slice(0, 2), ...last.slice(0, 3 - Math.min(2, first.length))];
    for (const j of some) words.append(el("span", { class: "cap " + (trueOf(b, i, j).length ? "yes" : "no") }, ...marked(i, j)));
    const more = b.cols[i] > some.length ? ` · ${b.cols[i] - some.length} more` : "";
    words.append(el("small", {}, `${b.subsets[b.subset[i]]} · ${b.ids[i]}${more}`));
    const row = el("div", { class: "row" + (k === active ? " active" : ""), role: "option", id: "row-" + k, "data-k": k, "aria-selected": String(k === active),
      "aria-posinset": k + 1, "aria-setsize": shown.length }, thumb(i), words, el("span", { class: "marks" }, ...marks(i)));
    row.style.top = `${k * height}px`;   // the policy of served pages allows this, but no style attribute
    return row;
  };
  const draw = () => {
    if (!height) {
      height = parseFloat(getComputedStyle(list).getPropertyValue("--row")) || 96;
      spacer.style.height = shown.length * height + "px";
      drawn = "";
    }
    const from = Math.max(0, Math.floor(list.scrollTop / height) - 4);
    const to = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + 4);
    const key = `${from}-${to}-${active}`;
    if (key === drawn) return;
    drawn = key;
    const made = [];
    for (let k = from; k < to; k++) made.push(row(k));
    spacer.replaceChildren(...made);
    if (!shown.length) spacer.replaceChildren(el("p", { class: "soft none" }, "No item is like this."));
    if (shown.length) list.setAttribute("aria-activedescendant", "row-" + active); else list.removeAttribute("aria-activedescendant");
  };
  const move = (k) => {
    active = Math.max(0, Math.min(shown.length - 1, k));
    if (active * height < list.scrollTop) list.scrollTop = active * height;
    if ((active + 1) * height > list.scrollTop + list.clientHeight) list.scrollTop = (active + 1) * height - list.clientHeight;
    draw();
  };

  // -- one item -----------------------------------------------------------------------------------------------------
  const letter = (j) => String.fromCharCode(65 + (j % 26)) + (j >= 26 ? Math.floor(j / 26) : "");
  const svg = (name, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [k, v] of Object.entries(attributes)) made.setAttribute(k, v);
    made.append(...children);
    return made;
  };
  const strip = (points) => {
    const known = points.filter((p) => Number.isFinite(p.value));
    const low = Math.min(...known.map((p) => p.value)), high = Math.max(...known.map((p) => p.value));
    const x = (v) => (high > low ? 14 + (292 * (v - low)) / (high - low) : 160);
    const drawing = svg("svg", { class: "strip", viewBox: "0 0 320 34", role: "img", "aria-label": known.map((p) => `${p.label} ${p.value.toFixed(4)}`).join(", ") });
    drawing.append(svg("line", { x1: 4, x2: 316, y1: 23, y2: 23 }));
    const names = new Map(); // points in one place share one name: A=B
    for (const p of known) {
      const at = x(p.value), near = [...names.keys()].find((other) => Math.abs(other - at) < 9);
      drawing.append(p.good ? svg("circle", { cx: at, cy: 23, r: 5, class: "yes" }) : svg("path", { d: `M${at - 5} 18l10 10m0-10l-10 10`, class: "no" }));
      if (near === undefined) names.set(at, p.label);
      else names.set(near, names.get(near) + (near === at ? "=" : " ") + p.label);
    }
    for (const [at, name] of names) {
      const anchor = at < 40 ? "start" : at > 280 ? "end" : "middle";
      drawing.append(svg("text", { x: anchor === "start" ? at - 5 : anchor === "end" ? at + 5 : at, y: 12, "text-anchor": anchor }, name));
    }
    return drawing;
  };
  const scoreLines = (run, i) => {
    const found = [], c = b.cols[i];
    const add = (name, points) => {
      if (!points.some((p) => Number.isFinite(p.value))) return;
      const numbers = points.map((p) => el("span", { class: p.good ? "yes" : "no" }, `${p.label} ${Number.isFinite(p.value) ? p.value.toFixed(4).replace("-", "−") : "–"}`));
      found.push(el("div", { class: "scores" }, el("small", {}, name), strip(points), el("div", { class: "numbers" }, ...numbers)));
    };
    const pictures = run.scores.image_text, texts = run.scores.text_text, blind = run.scores.text;
    if (pictures) for (let r = 0; r < b.rows[i]; r++) {
      const at = b.at.image_text[i] + r * c;
      add(b.rows[i] > 1 ? `image ${r + 1} with each caption` : "image with each caption", [...Array(c).keys()].map((j) => ({ label: letter(j), value: pictures[at + j], good: b.match[at + j] === 1 })));
    }
    if (texts && c > 2) {
      const points = [], good = (j) => trueOf(b, i, j).length > 0;
      let at = b.at.text_text[i];
      for (let x = 0; x < c; x++) for (let y = x + 1; y < c; y++) points.push({ label: letter(x) + letter(y), value: texts[at++], good: good(x) && good(y) });
      add("captions with each other", points);
    }
    if (blind) add("captions alone", [...Array(c).keys()].map((j) => ({ label: letter(j), value: blind[b.at.text[i] + j], good: trueOf(b, i, j).length > 0 })));
    return found;
  };
  const detail = () => {
    const i = shown[active];
    const pictures = [...Array(b.nimages[i]).keys()].map((k) => {
      const image = b.image[b.at.images[i] + k], src = picture(b, image);
      const about = (b.nimages[i] > 1 ? `image ${k + 1}: ` : "") + b.images[image];
      return el("figure", {}, src ? el("img", { src, alt: about }) : el("div", { class: "none" }, why(b, image)), el("figcaption", {}, about));
    });
    const captions = [...Array(b.cols[i]).keys()].map((j) => {
      const where = trueOf(b, i, j);
      const said = !where.length ? "false" : b.rows[i] > 1 ? "true of " + where.map((r) => r + 1).join(", ") : "true";
      return el("li", { class: where.length ? "yes" : "no" }, el("b", {}, letter(j)), el("i", {}, said), el("span", { class: "caption" }, ...marked(i, j)));
    });
    const runs = b.runs.map((r) => el("article", { class: "model" },
      el("header", {}, el("h3", { title: r.model }, r.label), ...r.tasks.map((t) => el("span", { class: "mark " + KINDS[t.outcome[i]], title: t.what },
        el("b", {}, SIGNS[t.outcome[i]]), `${t.name} ${WORDS[t.outcome[i]]}`, el("span", { class: "lead" }, t.margin ? sign(t.margin[i], 4) : "")))),
      ...scoreLines(r, i), ...(r.findings[i] || []).map((f) => el("p", { class: "note" }, f)),
      ...(r.answers[i] || []).map((a) => el("details", { class: "answer" },
        el("summary", {}, `${a.asked}: `, el("b", {}, a.answer || "(nothing)"), a.cut ? " (cut off)" : ""),
        el("p", { class: "soft" }, a.thought ? `thought: ${a.thought}` : "no thought was written")))));
    const tags = b.tags.map((t) => [t.name, t.kind === "number" ? (Number.isNaN(t.numbers[i]) ? null : String(+t.numbers[i].toPrecision(6))) : t.codes[i] < 0 ? null : t.values[t.codes[i]]]).filter(([, v]) => v !== null);
    $("detail").replaceChildren(
      el("h2", {}, `${b.subsets[b.subset[i]]} · ${b.ids[i]}`),
      el("div", { class: "pictures" }, ...pictures), el("ol", { class: "captions" }, ...captions), ...runs,
      ...(tags.length ? [el("dl", { class: "tags" }, ...tags.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]))] : []));
    $("place").textContent = `${(active + 1).toLocaleString("en")} of ${shown.length.toLocaleString("en")}`;
    $("prev").disabled = active === 0;
    $("next").disabled = active === shown.length - 1;
  };
  const show = (k) => { if (!shown.length) return; move(k); detail(); if (!$("item").open) $("item").showModal(); $("item").scrollTop = 0; const i = shown[active]; state.item = `${b.subsets[b.subset[i]]}/${b.ids[i]}`; write(); };

  // -- events -------------------------------------------------------------------------------------------------------
  let waiting = 0;
  const later = () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); };
  for (const k of ["q", "from", "to", "mfrom", "mto"]) $(k).addEventListener("input", () => { state[k] = $(k).value; later(); });
  for (const k of ["subset", "sort", "value"]) $(k).addEventListener("change", () => { state[k] = $(k).value; filter(); });
  $("tag").addEventListener("change", () => { state.tag = $("tag").value; state.value = state.from = state.to = ""; $("from").value = $("to").value = ""; tagValues(); filter(); });
  $("bench").addEventListener("change", () => { state = { ...blank(), bench: Number($("bench").value) }; enter(state.bench); });
  $("clear").addEventListener("click", () => { state = { ...blank(), bench: state.bench }; enter(state.bench); });
  document.querySelector("#browser form").addEventListener("submit", (e) => e.preventDefault());
  list.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  list.addEventListener("click", (e) => { const found = e.target.closest(".row"); if (found) show(Number(found.dataset.k)); });
  list.addEventListener("keydown", (e) => {
    const page = Math.max(1, Math.floor(list.clientHeight / height) - 1);
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: shown.length - 1 }[e.key];
    if (to !== undefined) { e.preventDefault(); move(to); }
    if (e.key === "Enter" || e.key === " ") { e.preventDefault(); show(active); }
  });
  $("item").addEventListener("keydown", (e) => {
    if (e.key === "ArrowRight" && active < shown.length - 1) show(active + 1);
    if (e.key === "ArrowLeft" && active > 0) show(active - 1);
  });
  $("item").addEventListener("click", (e) => { if (e.target === $("item")) $("item").close(); });
  $("prev").addEventListener("click", () => show(active - 1));
  $("next").addEventListener("click", () => show(active + 1));
  $("close").addEventListener("click", () => $("item").close());
  $("item").addEventListener("close", () => { state.item = ""; write(); });
  window.addEventListener("resize", () => { height = 0; draw(); });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) { e.preventDefault(); $("q").focus(); }
  });

  window.addEventListener("hashchange", () => {
    const tab = Number(/^#bench-(\d+)$/.exec(location.hash)?.[1] ?? NaN); // the items are those of the benchmark that is looked at
    if (data.benches[tab] && tab !== state.bench) { state = { ...blank(), bench: tab }; $("bench").value = String(tab); enter(tab); history.replaceState(null, "", `#bench-${tab}`); }
    else if (location.hash.startsWith("#items?")) location.reload();
  });

  $("browser").hidden = false;
  options($("bench"), data.benches.map((x, k) => [k, x.name]), 0);
  $("bench-label").hidden = data.benches.length < 2;
  const toItems = location.hash.split("?")[0] === "#items";
  read();
  $("bench").value = String(state.bench);
  const asked = state.item;
  enter(state.bench);
  const place = asked ? shown.findIndex((i) => `${b.subsets[b.subset[i]]}/${b.ids[i]}` === asked) : -1;
  if (toItems) $("items").scrollIntoView();
  if (place >= 0) show(place);
})();

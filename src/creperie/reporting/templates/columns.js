// The data of the page: columns packed in base64 become typed arrays when their benchmark is opened.
const columns = (() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const bytes = (text) => {
    const raw = atob(text || ""), out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out.buffer;
  };
  const starts = (widths) => {
    const out = new Uint32Array(widths.length + 1);
    for (let i = 0; i < widths.length; i++) out[i + 1] = out[i] + widths[i];
    return out;
  };
  const opened = new Map();
  const open = (k) => {
    if (opened.has(k)) return opened.get(k);
    const b = data.benches[k];
    const cols = new Uint16Array(bytes(b.cols)), rows = new Uint16Array(bytes(b.rows)), nimages = new Uint16Array(bytes(b.nimages));
    const cells = Uint32Array.from(cols, (c, i) => c * rows[i]);
    const made = {
      ...b, cols, rows, nimages,
      subset: new Uint16Array(bytes(b.subset)), match: new Uint8Array(bytes(b.match)),
      cap: new Uint32Array(bytes(b.cap)), image: new Uint32Array(bytes(b.image)), line: new Int32Array(bytes(b.line)),
      at: {
        text: starts(cols), image_text: starts(cells), images: starts(nimages),
        text_text: starts(Uint32Array.from(cols, (c) => (c * (c - 1)) / 2)),
      },
      lower: b.texts ? b.texts.map((t) => t.toLowerCase()) : null,
      tags: b.tags.map((t) => ({ ...t, codes: t.codes ? new Int32Array(bytes(t.codes)) : null, numbers: t.numbers ? new Float32Array(bytes(t.numbers)) : null })),
      runs: b.runs.map((r) => ({
        ...r,
        tasks: r.tasks.map((t) => ({ ...t, outcome: new Int8Array(bytes(t.outcome)), margin: t.margin ? new Float32Array(bytes(t.margin)) : null })),
        scores: Object.fromEntries(Object.entries(r.scores).map(([n, s]) => [n, new Float32Array(bytes(s))])),
      })),
    };
    const covered = (name) => outcomes(made, name).reduce((sum, t) => sum + t.outcome.reduce((n, o) => n + (o !== -1), 0), 0);
    const names = [...new Set(made.runs.flatMap((r) => r.tasks.map((t) => t.name)))];
    made.tasks = names.map((t) => [t, covered(t)]).sort((x, y) => y[1] - x[1]).map(([t]) => t);
    opened.set(k, made);
    return made;
  };
  let lines = null;
  const picture = (b, image) => {
    if (b.line[image] < 0) return null;
    lines = lines || document.getElementById("pictures").textContent.split("\n");
    return "data:image/webp;base64," + lines[b.line[image]];
  };
  const why = (b, image) => b.why[image] || b.hidden || "the picture is not in this report";
  // The language of the search field, as in studio/search.py: words, "phrases", -without, subset:NAME, model:NAME.
  const terms = (text) => [...text.matchAll(/(-?)(?:(subset|model):)?(?:"([^"]*)"?|([^\s"]+))/gi)].map(([, minus, key, phrase, word]) => {
    const signs = /^(-+|-?(subset|model):)$/i.test(word || ""); // without a word
    const words = signs ? "" : ((phrase || "").trim() || word || "").toLowerCase();
    const cased = (c) => c.toLowerCase() !== c.toUpperCase() || /\p{N}/u.test(c);
    const start = words && cased([...words][0]) ? "(?:^|[^\\p{L}\\p{N}])" : "", end = words && phrase && cased([...words].at(-1)) ? "(?:$|[^\\p{L}\\p{N}])" : "";
    return { words, key: (key || "").toLowerCase(), without: Boolean(minus), pattern: new RegExp(start + words.replace(/[\\^$.*+?()[\]{}|\/]/gu, "\\$&") + end, "u") };
  }).filter((t) => t.words);
  const taskOf = (run, name) => run.tasks.find((t) => t.name === name);
  const outcomes = (bench, task) => bench.runs.map((r) => taskOf(r, task)).filter(Boolean);
  const caption = (b, i, j) => (b.texts ? b.texts[b.cap[b.at.text[i] + j]] : `caption ${j + 1}`);
  const trueOf = (b, i, j) => {
    const found = [];
    for (let r = 0; r < b.rows[i]; r++) if (b.match[b.at.image_text[i] + r * b.cols[i] + j]) found.push(r);
    return found;
  };
  // Pieces of a text, each with whether its words differ from those of another: the longest common subsequence.
  const differences = (text, other) => {
    const cut = (t) => t.match(/[\p{L}\p{N}_'’-]+|\s+|[^\p{L}\p{N}_\s]/gu) || [];
    const a = cut(text), b = cut(other).map((w) => w.toLowerCase()), low = a.map((w) => w.toLowerCase());
    const long = [...Array(a.length + 1)].map(() => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--)
      long[i][j] = low[i] === b[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
    const pieces = [];
    for (let i = 0, j = 0; i < a.length;) {
      const same = j < b.length && low[i] === b[j];
      if (!same && j < b.length && long[i + 1][j] < long[i][j + 1]) { j++; continue; }
      const differs = !same;
      if (differs && pieces.length > 1 && !pieces.at(-1)[0].trim()) pieces.at(-2)[0] += pieces.pop()[0]; // one mark for "cat 7"
      const last = pieces.at(-1);
      if (last && last[1] === differs) last[0] += a[i]; else pieces.push([a[i], differs]);
      if (same) j++;
      i++;
    }
    return pieces;
  };
  // What a caption is compared with: a false one with the first true one, a true one with the first false one.
  const against = (b, i, j) => {
    const mine = trueOf(b, i, j).length > 0, all = [...Array(b.cols[i]).keys()];
    const other = b.texts ? all.find((k) => trueOf(b, i, k).length > 0 !== mine) : undefined;
    return other === undefined ? null : caption(b, i, other);
  };
  return { data, open, picture, why, terms, taskOf, outcomes, caption, trueOf, differences, against };
})();


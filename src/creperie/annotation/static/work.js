// The annotator's page: shows one question after the other and sends the answers.
// An answer carries a key made here; if the network fails it is sent again with the same key and stored once.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  if (!$("stage")) return;
  const csrf = document.querySelector("meta[name=csrf]").content;
  const words = JSON.parse($("stage").dataset.words);
  const panels = ["stage", "done", "trouble"];
  let question = null;   // what is shown
  let given = {};        // field name → value
  let active = 0;        // the field that number keys fill in
  let last = null;       // the previous answer, to fill in after an undo
  let pending = null;    // the request {path, body} that has no response yet
  let onItsWay = false;  // whether it has been sent and may still get a response
  let waiting = null;    // the state to show after the feedback
  let timer = 0;
  let inView = 0;        // milliseconds that the question has been in view, by a clock that does not jump
  let since = null;      // when it came into view last

  const watch = () => {
    if (since !== null) inView += performance.now() - since;
    since = document.visibilityState === "visible" ? performance.now() : null;
  };
  document.addEventListener("visibilitychange", watch);

  // What is chosen and written but not sent survives a reload.
  const drafts = {
    name: () => `draft ${question.slot}`,
    read() { try { return JSON.parse(sessionStorage.getItem(this.name())); } catch { return null; } },
    write() { try { sessionStorage.setItem(this.name(), JSON.stringify({ given, comment: $("comment").value })); } catch { /* not stored */ } },
    drop() { try { sessionStorage.removeItem(this.name()); } catch { /* nothing to drop */ } },
  };

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") node.className = value;
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value != null) node.setAttribute(name, value);
    }
    node.append(...children);   // strings become text, never markup
    return node;
  };
  const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
  const only = (id) => { for (const panel of panels) $(panel).hidden = panel !== id; };

  // -- requests to the server -----------------------------------------------------------------------------------

  async function send(path, body) {
    if (pending) return;
    pending = { path, body };
    await attempt();
  }

  async function attempt() {
    // One request at a time: a click on "Try again now" while one is on its way must not send a second one.
    if (!pending || onItsWay) return;
    clearTimeout(timer);
    const { path, body } = pending;
    let response, reply;
    onItsWay = true;
    try {
      response = await fetch(path, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
        body: JSON.stringify(body),
      });
      reply = response.status >= 500 ? null : await response.json();
    } catch {
      return retryLater(words.offline, words.offlineWhy);
    } finally {
      onItsWay = false;
    }
    if (response.status === 503) return retryLater(words.busy, words.busyWhy);
    if (response.status >= 500) return retryLater(words.mistake, words.mistakeWhy);
    pending = null;
    if (response.ok) return receive(reply);
    if (response.status === 409) return refuse(reply);
    if (response.status === 401) return stop(words.session, words.again);
    if (response.status === 403) return location.reload();
    const detail = Array.isArray(reply.detail) ? reply.detail.map((d) => d.msg).join("; ") : reply.detail;
    $("problem").textContent = detail || words.failed;
  }

  function retryLater(title, reason) {
    $("trouble").querySelector("h2").textContent = title;
    $("reason").textContent = reason;
    only("trouble");
    timer = setTimeout(attempt, 3000);
  }

  function refuse(reply) {
    if (reply.code === "slot") {
      send("/api/next", {}).then(() => { $("problem").textContent = words.waited; });
    } else if (reply.code === "stopped") stop(words.stopped, words.kept);
    else if (reply.code === "revoked") stop(words.revoked, words.kept);
    else if (reply.code === "consent") location.reload();
    else $("problem").textContent = words[reply.code] || reply.message;
  }

  function stop(title, text) {
    $("done").querySelector("h2").textContent = title;
    $("done").querySelector("p").textContent = text;
    $("done").querySelector(".actions").hidden = true;
    if ($("pay")) { $("pay").hidden = true; $("pay-later").hidden = title !== words.wait; }
    only("done");
    $("done").focus();
  }

  function receive(state) {
    showProgress(state.progress);
    if (!state.question && state.progress.stopped) return stop(words.stopped, words.kept);
    if (!state.question && state.progress.waiting) return stop(words.wait, words.waitWhy);
    if (state.receipt && state.receipt.feedback !== null) {
      waiting = state;
      $("verdict").textContent = state.receipt.right ? words.right : words.wrong;
      $("feedback").className = state.receipt.right ? "right" : "wrong";
      // The question and the answer that was chosen stay in view beside the right one.
      const chosen = document.querySelector("#fields .option:has(input:checked) .words");
      $("because").textContent = chosen && !state.receipt.right ? words.because.replace("{}", chosen.textContent) : words.answerIs;
      $("truth").textContent = state.receipt.feedback;
      told(true);
      only("stage");
      $("feedback").focus({ preventScroll: true });
      $("feedback").scrollIntoView({ block: "nearest" });
      return;
    }
    show(state.question, state.ending);
  }

  function told(yes) {
    $("feedback").hidden = !yes;
    document.body.classList.toggle("told", yes);
    for (const field of document.querySelectorAll("#fields input, #fields textarea")) field.disabled = yes;
  }

  function showProgress(progress) {
    const { done, total, most } = progress;
    $("bar").max = total || Math.max(done, 1);
    $("bar").value = done;
    $("bar").hidden = !total;
    $("count").textContent = total ? `${done} ${words.of} ${total} ${words.done}` : done < most ? words.most.replace("{}", done).replace("{}", most - done) : `${done} ${words.done}`;
  }

  // -- showing a question ---------------------------------------------------------------------------------------

  function end(ending) {
    only("done");
    $("ending").hidden = !ending;
    if (ending) $("return").href = ending;
    $("done").focus();
  }

  function show(next, ending) {
    question = next;
    if (!question) return end(ending);
    told(false);
    inView = 0; since = null; watch();
    const back = last && last.slot === question.slot ? last : drafts.read();
    given = back ? { ...back.given } : {};
    active = 0;
    $("practice").hidden = !question.practice;
    $("ask").textContent = question.ask;
    $("comment").value = back ? back.comment : "";
    $("comment-box").hidden = !$("comment").value;
    $("pictures").replaceChildren(...question.pictures.map(picture));
    $("pictures").className = question.pictures.length > 1 ? "many" : "";
    $("texts").replaceChildren(...question.texts.map(([label, text]) =>
      make("div", { class: "caption" }, make("span", { class: "kicker" }, label), make("p", { dir: "auto" }, text))));
    $("fields").replaceChildren(...question.fields.map(field));
    document.body.classList.toggle("blind", !question.pictures.length);
    only("stage");
    refresh();
    scrollTo(0, 0);
    $("ask").focus({ preventScroll: true });
  }

  function picture(label, place) {
    const image = make("img", { src: `/picture/${question.slot}/${place}`, alt: label });
    const button = make("button", { type: "button", class: "shot", "aria-label": `${label}: ${words.enlarge}` }, image);
    button.addEventListener("click", () => zoom(image));
    image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth <= 128));
    image.addEventListener("error", () => button.replaceWith(make("p", { class: "problem" }, words.noPicture)));
    const caption = question.pictures.length > 1 ? [make("figcaption", {}, label)] : [];
    return make("figure", {}, button, ...caption);
  }

  function field(one, n) {
    if (one.kind === "text") return textField(one, n);
    const options = one.kind === "scale" ? scaleOptions(one) : one.options.map((o, i) => ({ ...o, badge: String(i + 1) }));
    const box = make("fieldset", { "data-field": n, class: one.kind });
    box.append(make("legend", {}, one.label));
    const sideways = one.kind === "scale" ? { dir: "ltr" } : {};  // numbers go from left to right, as the arrow keys do
    const row = make("div", { class: "options", ...sideways });
    for (const option of options) {
      const input = make("input", { type: "radio", name: one.name, value: option.value });
      input.checked = String(given[one.name]) === String(option.value);
      input.addEventListener("change", () => choose(n, option.value, false));
      const words = make("span", option.quote ? { class: "words quote", dir: "auto" } : { class: "words" }, option.label);
      if (option.hint) words.append(make("small", {}, option.hint));
      row.append(make("label", { class: "option" }, input, option.badge ? make("kbd", {}, option.badge) : "", words));
    }
    box.append(row);
    if (one.kind === "scale") {
      box.append(make("div", { class: "ends", ...sideways }, make("span", {}, `← ${one.ends[0]}`), make("span", {}, words.equal), make("span", {}, `${one.ends[1]} →`)));
    }
    return box;
  }

  function scaleOptions(one) {
    const options = [];
    for (let v = one.low; v <= one.high; v++) options.push({ value: v, label: String(Math.abs(v)), badge: "" });
    return options;
  }

  function textField(one, n) {
    const id = `field-${one.name}`;
    const area = make("textarea", { id, rows: 3, maxlength: 2000, spellcheck: "true", dir: "auto" });
    if (given[one.name] === undefined) given[one.name] = one.value;
    area.value = given[one.name];
    area.addEventListener("input", () => { given[one.name] = area.value; refresh(); });
    return make("div", { "data-field": n, class: "text" }, make("label", { for: id }, one.label), area);
  }

  const isShown = (one) => !one.when || given[one.when[0]] === one.when[1];
  const isFilled = (one) => one.kind === "text" ? (given[one.name] || "").trim() !== "" : given[one.name] !== undefined;
  const missing = () => question.fields.find((one) => isShown(one) && !isFilled(one));

  function choose(n, value, byKey) {
    const one = question.fields[n];
    given[one.name] = one.kind === "scale" ? Number(value) : value;
    const box = document.querySelector(`[data-field="${n}"]`);
    for (const input of box.querySelectorAll("input")) input.checked = input.value === String(value);
    const next = question.fields.findIndex((f, i) => i > n && isShown(f) && f.kind !== "text" && !isFilled(f));
    active = next >= 0 ? next : n;
    refresh();
    const text = question.fields.findIndex((f) => f.kind === "text" && isShown(f));
    if (byKey && text > n) document.querySelector(`[data-field="${text}"] textarea`).focus();
  }

  function refresh() {
    question.fields.forEach((one, n) => {
      const box = document.querySelector(`[data-field="${n}"]`);
      box.hidden = !isShown(one);
      box.classList.toggle("active", n === active && question.fields.filter(isShown).length > 1);
    });
    $("problem").textContent = ""; // whatever was refused is being changed
    $("send").setAttribute("aria-disabled", missing() ? "true" : "false");
    drafts.write();
  }

  // -- actions --------------------------------------------------------------------------------------------------

  function submit() {
    if (!question || pending || waiting) return;
    const open = missing();
    if (open) {
      if (open.kind !== "text") { active = question.fields.indexOf(open); document.activeElement.blur(); refresh(); }
      $("problem").textContent = `${words.missing}: ${open.label}`;
      return;
    }
    const fields = {};
    for (const one of question.fields) if (isShown(one)) fields[one.name] = given[one.name];
    last = { slot: question.slot, given: { ...given }, comment: $("comment").value };
    watch();
    drafts.drop();
    send("/api/answer", { slot: question.slot, key: newKey(), fields, comment: $("comment").value, seconds: inView / 1000 });
  }

  const skip = () => question && send("/api/skip", { slot: question.slot, key: newKey(), comment: $("comment").value });
  const undo = () => send("/api/undo", { key: newKey() });
  const goOn = () => { const state = waiting; waiting = null; if (state) show(state.question, state.ending); };
  const comment = () => { $("comment-box").hidden = false; $("comment").focus(); };

  function zoom(image) {
    if (!image) return;
    $("zoom-image").src = image.src;
    $("zoom-image").classList.toggle("tiny", image.classList.contains("tiny"));
    $("zoom").showModal();
  }

  function pressDigit(digit) {
    const one = question.fields[active];
    if (!one || one.kind === "text") return;
    if (one.kind === "scale") {
      const size = Math.min(digit, one.high);
      choose(active, given[one.name] < 0 ? -size : size, true);
    } else if (digit >= 1 && digit <= one.options.length) choose(active, one.options[digit - 1].value, true);
  }

  function slide(step) {
    const one = question.fields[active];
    if (!one || one.kind !== "scale") return false;
    choose(active, Math.max(one.low, Math.min(one.high, (given[one.name] ?? 0) + step)), true);
    return true;
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ($("zoom").open || $("help").open) { if (event.key.toLowerCase() === "z" && $("zoom").open) $("zoom").close(); return; }
    const typing = event.target.tagName === "TEXTAREA";
    if (typing && event.key === "Escape") return event.target.blur();
    if (typing && !(event.key === "Enter" && !event.shiftKey)) return;
    if (waiting) { if (event.key === "Enter") { event.preventDefault(); goOn(); } return; }
    if (event.key === "Enter") {
      if (event.target.tagName === "BUTTON" && event.target.id !== "send") return;
      event.preventDefault();
      return $("stage").hidden ? undefined : submit();
    }
    const key = event.key.toLowerCase();
    if (key === "u") return undo();
    if (key === "?") return $("help").showModal();
    if ($("stage").hidden || !question) return;
    if (/^[0-9]$/.test(key)) { event.preventDefault(); pressDigit(Number(key)); }
    else if (key === "-") flip();
    else if (key === "arrowleft" || key === "arrowright") { if (slide(key === "arrowleft" ? -1 : 1)) event.preventDefault(); }
    else if (key === "s") skip();
    else if (key === "c") { event.preventDefault(); comment(); }
    else if (key === "z") zoom(document.querySelector("#pictures img"));
  }

  function flip() {
    const one = question.fields[active];
    if (one && one.kind === "scale" && given[one.name]) choose(active, -given[one.name], true);
  }

  $("form").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  $("undo").addEventListener("click", undo);
  $("undo-last").addEventListener("click", undo);
  $("skip").addEventListener("click", skip);
  $("say").addEventListener("click", comment);
  $("comment").addEventListener("input", () => drafts.write());
  $("go-on").addEventListener("click", goOn);
  $("again").addEventListener("click", attempt);
  $("show-help").addEventListener("click", () => $("help").showModal());
  $("help-close").addEventListener("click", () => $("help").close());
  // Back on the button "?", Enter would open the help again instead of sending the answer.
  $("help").addEventListener("close", () => $("ask").focus());
  $("zoom").addEventListener("click", () => $("zoom").close());
  document.addEventListener("keydown", press);
  send("/api/next", {});
})();

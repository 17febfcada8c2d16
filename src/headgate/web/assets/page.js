// Asks for /state.json every two seconds and draws it. What comes from outside becomes text nodes and
// attributes of elements made here, never HTML.
"use strict";

const EVERY_MS = 2000, ANSWER_WITHIN_MS = 30000, HOUR_MS = 3600000;
const STATES = {  // each with a mark, so that no state is told by its colour alone
  "ready": "", "closing": "…", "waiting": "·", "late": "!", "held": "‖", "withdrawn": "↩",
  "expired": "∅", "erased": "×",
  "not over": "", "not expected": "",
};
const LABEL = 178, STEP = 18, CELL = 16, ROW = 24, HEIGHT = 20, HEAD = 36;
const byId = (id) => document.getElementById(id);
let until = "", shown = "", chosen = "", hours = [], round = 0;

// --- making elements ---------------------------------------------------------------------------

// Characters that cannot be seen, or that turn the text around them, as their numbers.
const printable = (text) => String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
  (one) => `\\u{${one.codePointAt(0).toString(16)}}`);

function made(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}
function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((one) => one !== null && one !== ""));
  return element;
}
const classOf = (state) => state.replaceAll(" ", "-");
const tag = (state) => made("span", { class: `tag ${classOf(state)}` }, state);
const name = (text) => made("span", { class: "name" }, printable(text));
const code = (text) => made("code", {}, text);

// --- words -------------------------------------------------------------------------------------

const utc = (ms) => ms === null ? "–" : new Date(ms).toISOString().slice(0, 16).replace("T", " ");
const count = (number) => number.toLocaleString("en");
function lasting(ms) {
  const s = Math.floor(Math.abs(ms) / 1000), min = Math.floor(s / 60), h = Math.floor(min / 60);
  if (s < 60) return `${s} s`;
  if (min < 60) return `${min} min ${s % 60} s`;
  return h < 24 ? `${h} h ${min % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}
function bytes(size) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let n = 0;
  while (size >= 1000 && n < units.length - 1) { size /= 1000; n += 1; }
  return `${n && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[n]}`;
}

// --- the map -----------------------------------------------------------------------------------

function mapOf(state) {
  const width = LABEL + state.hours.length * STEP, height = HEAD + state.streams.length * ROW;
  const map = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "table",
    "aria-label": "Streams and hours: the state of each hour, event time in UTC" });
  map.append(...scaleOf(state.hours, height));
  state.streams.forEach((stream, number) => map.append(rowOf(stream, HEAD + number * ROW)));
  return map;
}
function scaleOf(all, height) {
  const found = [];
  all.forEach((hour, number) => {
    const x = LABEL + number * STEP, clock = hour.slice(11);
    const isDay = clock === "00" || (number === 0 && Number(clock) < 19);
    if (isDay) found.push(drawn("text", { class: "day", x, y: 11 }, hour.slice(0, 10)));
    if (clock === "00" && number) {
      found.push(drawn("line", { x1: x - 1, x2: x - 1, y1: 2, y2: height }));
    }
    if (Number(clock) % 3 === 0) {
      found.push(drawn("text", { class: "scale", x: x + 1, y: 27 }, clock));
    }
  });
  return found;
}
function rowOf(stream, y) {
  const text = printable(stream.name);
  const label = drawn("svg", { x: 0, y, width: LABEL - 10, height: ROW, overflow: "hidden" },
    drawn("text", { x: 0, y: 15, role: "rowheader" }, drawn("title", {}, text), text));
  const row = drawn("g", { role: "row", "aria-label": text }, label);
  stream.hours.forEach((one, number) => row.append(cellOf(stream, one, LABEL + number * STEP, y)));
  if (!stream.hours.length) {
    const why = stream.is_in_settings ? "its documents are damaged" : "not in the settings";
    row.append(drawn("text", { class: "scale", x: LABEL, y: y + 15 }, why));
  }
  return row;
}
function cellOf(stream, one, x, y) {
  const said = `${printable(stream.name)} ${one.hour}: ${one.state} – ${one.words}`;
  const key = `${one.hour} ${stream.name}`;
  const cell = drawn("g", { class: `cell ${classOf(one.state)}`, role: "cell", "aria-label": said,
    "data-state": one.state, "data-hour": one.hour }, drawn("title", {}, said),
    ...tileOf(one.state, x, y));
  if (key === chosen) cell.classList.add("chosen");
  cell.addEventListener("mouseenter", () => tell(stream, one));
  cell.addEventListener("click", () => {
    chosen = chosen === key ? "" : key;
    for (const other of document.querySelectorAll(".chosen")) other.classList.remove("chosen");
    if (chosen) cell.classList.add("chosen");
    tell(stream, one);
  });
  return cell;
}
function tileOf(state, x, y) {
  const tile = drawn("rect", { x, y, width: CELL, height: HEIGHT, rx: 3 });
  const mark = STATES[state];
  if (!mark) return [tile];
  return [tile, drawn("text", { class: "mark", x: x + CELL / 2, y: y + 14, "aria-hidden": "true" }, mark)];
}
function tell(stream, one) {
  const asked = one.state === "not expected" ? [] : [" ", code(`${stream.ask} ${one.hour}`)];
  byId("detail").replaceChildren(name(stream.name), ` ${one.hour}: `, tag(one.state), ` ${one.words} `, ...asked);
}
function drawLegend() {
  for (const state of Object.keys(STATES)) {
    const tile = drawn("svg", { width: CELL, height: HEIGHT, class: classOf(state), "aria-hidden": "true" },
      ...tileOf(state, 0, 0));
    byId("legend").append(made("li", {}, tile, state));
  }
}

// --- tables ------------------------------------------------------------------------------------

function tableOf(head, rows, empty) {
  if (!rows.length) return made("p", { class: "empty" }, empty);
  const titles = head.map(([title, kind]) => made("th", { scope: "col", class: kind }, title));
  const lines = rows.map((row) => made("tr", {}, ...row.map((cell, number) =>
    made(number ? "td" : "th", number ? { class: head[number][1] } : { scope: "row" }, cell))));
  return made("table", {}, made("thead", {}, made("tr", {}, ...titles)), made("tbody", {}, ...lines));
}
function streamRow(stream) {
  const why = stream.why, lag = stream.lag;
  const counts = lag === null ? [] : [lag.files && `${count(lag.files)} files`, lag.records && `${count(lag.records)} records`].filter(Boolean);
  const waits = lag === null ? "–" : counts.length ? `${counts.join(", ")}, ${bytes(lag.size_bytes)}` : "nothing";
  const title = made("span", {}, name(stream.name));
  if (stream.paused) title.append(made("span", { class: "tag halting", title: printable(stream.paused) }, "paused"));
  const next = why === null || why.hour === null ? "–" : why.hour.replace("T", " ");
  return [title, why === null ? "–" : utc(why.ready_ms), next,
    why === null ? "–" : tag(stateOfNext(stream)), whyOf(why), waits, utc(stream.watermark_ms), utc(stream.due_ms),
    count(stream.landed), count(stream.late), count(stream.dead)];
}
// The map knows when waiting takes longer than lateness explains.
function stateOfNext(stream) {
  const cell = stream.hours.find((one) => one.hour === stream.why.hour);
  return cell === undefined ? stream.why.state : cell.state;
}
function whyOf(why) {
  if (why === null) return "–";
  const told = made("span", {}, printable(why.words));
  for (const one of why.reasons.slice(0, 3)) {
    const who = printable([one.shard, one.partition].filter(Boolean).join(" ")) || "the stream";
    const short = one.short_ms === null ? "" : `, ${lasting(one.short_ms)} short`;
    const held = one.node === null ? "held by nobody" : `held by ${printable(one.node)}`;
    told.append(made("span", { class: "reason" }, `${who}${short}: ${one.words}; ${held}`));
  }
  if (why.reasons.length > 3) {
    told.append(made("span", { class: "reason" }, `and ${count(why.reasons.length - 3)} more`));
  }
  return told;
}
function stillOf(one) {
  const told = made("div", { class: "still" },
    made("p", {}, made("strong", {}, name(one.subject)), ` ${printable(one.words)}`),
    made("p", { class: "reason" }, printable(one.meaning)));
  if (one.next !== null) told.append(made("p", {}, "next ", code(one.next)));
  return told;
}
function nodeRow(one) {
  const ends = one.left_ms > 0 ? `in ${lasting(one.left_ms)}` : `overdue ${lasting(one.left_ms)}`;
  return [name(one.node), String(one.number), tag(one.state), String(one.workers), count(one.held_count),
    name(one.labels.join(" ") || "–"), ends];
}

// --- the page ----------------------------------------------------------------------------------

function draw(state) {
  hours = state.hours;
  const pill = byId("verdict"), looks = { 0: "pill good", 1: "pill look", 4: "pill bad" };
  pill.textContent = state.verdict.words;
  pill.className = looks[state.verdict.code];
  byId("moment").textContent = `${new Date(state.at_ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  const warnings = [...state.warnings, ...state.damaged.map((one) => `damaged: ${one.place}: ${one.reason}`)];
  byId("warnings").hidden = !warnings.length;
  byId("warnings").replaceChildren(...warnings.map((one) => made("li", {}, printable(one))));
  const map = JSON.stringify([state.hours, state.streams.map((one) => [one.name, one.hours])]);
  if (map !== shown) {  // what has not changed keeps its tooltip
    shown = map;
    byId("map").replaceChildren(state.streams.length ? mapOf(state)
      : made("p", { class: "empty" }, "There is no stream in the settings."));
  }
  byId("streams").replaceChildren(tableOf([["stream", ""], ["ready up to", "moment"],
    ["next hour", "moment"], ["state", ""], ["why", "wide"], ["waiting", "moment"], ["watermark", "moment"], ["next commit by", "moment"],
    ["landed", "number"], ["late", "number"], ["dead", "number"]],
    state.streams.map(streamRow), "There is no stream in the settings."));
  byId("standing").replaceChildren(...state.standing.map(stillOf));
  byId("tables").replaceChildren(tableOf([["table", ""], ["state", ""], ["applied up to", "moment"],
    ["batches", "number"], ["rows", "number"], ["waiting", "number"]],
    state.tables.map((one) => [name(one.name), tag(one.state), name(one.applied_up_to || "–"),
      count(one.batches), count(one.rows), count(one.waiting)]), "There is no table in the settings."));
  byId("notices").replaceChildren(...state.tables.filter((one) => one.notice).map((one) =>
    made("pre", {}, one.notice.split("\n").map(printable).join("\n"))));
  drawNodes(state);
}
function drawNodes(state) {
  const last = state.last_seen.map((one) => printable(one.node)).join(", ");
  const empty = `No node is running.${last ? ` Last seen: ${last}.` : ""}`;
  byId("nodes").replaceChildren(tableOf([["node", ""], ["number", "number"], ["state", ""],
    ["workers", "number"], ["holds", "number"], ["labels", ""], ["session ends", "moment"]],
    state.nodes.map(nodeRow), empty));
  const leader = state.leader === null ? "nobody leads"
    : `${printable(state.leader.node ?? "an unknown node")} leads, epoch ${state.leader.epoch}`;
  const tasks = Object.entries(state.tasks).map(([kind, n]) => `${count(n)} ${kind.replace("_", " ")}`);
  byId("tasks").textContent = `${leader}; tasks: ${tasks.join(", ")}`;
}
function drawAway(words) {
  byId("away").hidden = words === "";
  byId("away").textContent = words.split("\n").map(printable).join("\n");
  byId("main").classList.toggle("stale", words !== "");
  if (words !== "") {
    byId("verdict").textContent = "no answer";
    byId("verdict").className = "pill bad";
  }
}

// --- asking ------------------------------------------------------------------------------------

async function ask(mine) {
  let answer, body;
  const query = until ? `?until=${encodeURIComponent(until)}` : "";
  try {
    answer = await fetch(`/state.json${query}`, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    body = await answer.text();
  } catch {
    if (mine === round) drawAway("The server of this page does not answer. What is below is old. Next: headgate web");
    return;
  }
  if (mine !== round) return;  // somebody chose other hours meanwhile
  const state = (answer.headers.get("content-type") ?? "").startsWith("application/json") ? JSON.parse(body) : null;
  if (state !== null) {
    const space = state.namespace === "default" ? "" : `, ${state.namespace}`;
    byId("place").textContent = printable(state.url + space);
  }
  if (state === null || !state.is_reachable) {
    drawAway(`${state === null ? body.trim() : state.words}\nWhat is below is old; it is asked again every ${EVERY_MS / 1000} s.`);
    return;
  }
  drawAway("");
  draw(state);
}
async function askOn() {
  const mine = round += 1;
  while (mine === round) {
    await ask(mine);
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}
function move(days) {
  if (!hours.length) return;
  const last = Date.parse(`${hours[hours.length - 1]}:00:00Z`) + days * 24 * HOUR_MS;
  const next = new Date(last).toISOString();
  if (!/^\d{4}-/.test(next) || next < "0001-01-04") return;
  until = next.slice(0, 13);
  askOn();
}

drawLegend();
byId("earlier").addEventListener("click", () => move(-1));
byId("later").addEventListener("click", () => move(1));
byId("now").addEventListener("click", () => { until = ""; askOn(); });
askOn();

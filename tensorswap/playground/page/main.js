// Brings the parts of the page together: what is typed goes to the server, and what comes back is shown.

import { ask, Latest } from "./ask.js";
import { Derivative } from "./derivative.js";
import { find, make, prose, renew, toast } from "./dom.js";
import { Editor } from "./editor.js";
import { Gallery } from "./gallery.js";
import { Graph } from "./graph.js";
import { Plan } from "./plan.js";
import { Pointing } from "./pointing.js";
import { pack, unpack } from "./program_link.js";
import { Sizes } from "./sizes.js";
import { Source } from "./source.js";
import { tabs } from "./tabs.js";
import { Values } from "./values.js";

const PLAN_DELAY = 250; // milliseconds without a key until kernels are planned
const LINK_DELAY = 400;
const FIRST = "attention";

const pointing = new Pointing();
const derivative = new Derivative(pointing);
const graph = new Graph(pointing);
const plan = new Plan(pointing);
const source = new Source(pointing);
const values = new Values();
const state = { derivative: "adjoint", answer: null, seed: 0, typed: 0 };

// -- while one types

const reading = new Latest("analyse", (told, asked) => {
  const answer = told.answer ?? { faults: [{ message: told.problem, hint: "", start: null, end: null, shown: told.problem }] };
  const stale = asked.text !== editor.text; // the next answer is on its way; this one is still nearer than the last
  if (!stale) editor.faults(answer.faults);
  showStatus(answer);
  document.body.dataset.read = asked.text;
  state.wrong = answer.faults.length > 0;
  document.body.classList.toggle("wrong", state.wrong);
  if (state.wrong) return pointing.explain(null);
  state.answer = answer;
  derivative.show(answer, asked.derivative || "adjoint");
  graph.show(answer);
  sizes.show(answer);
  pointing.explain(answer.explanation, statementAt(state.cursor));
  document.body.dataset.shown = asked.text;
  planSoon();
});

const planning = new Latest("plan", (told, asked) => {
  document.body.classList.remove("planning");
  document.body.dataset.planned = JSON.stringify([asked.text, asked.sizes]);
  const problem = told.problem ?? told.faults?.map((fault) => fault.shown).join("\n");
  if (problem) {
    plan.refuse(problem);
    source.refuse(problem);
    return;
  }
  plan.show(told.answer);
  source.show(told.answer);
  pointing.tell(true);
});

function read() {
  reading.send({ text: editor.text, derivative: state.derivative === "adjoint" ? "" : state.derivative });
}

let planTimer = 0;
function planSoon() {
  clearTimeout(planTimer);
  planTimer = setTimeout(() => {
    document.body.classList.add("planning");
    planning.send({ text: editor.text, sizes: sizes.current, seed: 0 });
  }, PLAN_DELAY);
}

let linkTimer = 0;
function linkSoon() {
  clearTimeout(linkTimer);
  linkTimer = setTimeout(async () => history.replaceState(null, "", `#${await pack(editor.text, sizes.current)}`), LINK_DELAY);
}

function showStatus({ faults, explanation }) {
  const box = find("status");
  if (faults.length) {
    const first = faults[0];
    const told = faults.length === 1 ? "1 mistake" : `${faults.length} mistakes`;
    const go = first.start === null ? null : make("button", { type: "button", class: "link", onclick: () => editor.goTo(first.start) }, "Go to it");
    renew(box, faults, () => [make("span", { class: "state bad" }, told), make("span", { class: "told" }, prose(first.message)), go ?? ""]);
    return;
  }
  const shown = (tensors) => tensors.map(({ name, axes }) => make("code", {}, axes.length ? `${name}[${axes.map((axis) => (axis.includes(":") ? "·" : axis)).join(",")}]` : name));
  const count = explanation.statements.length;
  renew(box, [count, explanation.inputs, explanation.outputs], () => [
    make("span", { class: "state good" }, count === 1 ? "1 statement" : `${count} statements`),
    make("span", { class: "told" }, spaced(shown(explanation.inputs)), make("span", { class: "arrow" }, " → "), spaced(shown(explanation.outputs))),
  ]);
}

const spaced = (parts) => parts.flatMap((part, k) => (k ? [" ", part] : [part]));

// -- what is pointed at

function statementAt(offset) {
  if (offset === null || offset === undefined || !state.answer || state.wrong) return null;
  const doc = editor.view.state.doc;
  const line = doc.lineAt(Math.min(offset, doc.length));
  const numbers = state.answer.explanation.statements
    .filter(({ where }) => where && where.start <= line.to && where.end > line.from)
    .map(({ number }) => number);
  return numbers.length ? { statements: numbers } : null;
}

function placed(offset) {
  state.cursor = offset;
  pointing.from("cursor", statementAt(offset));
}

pointing.listeners.push(({ forward }) => {
  const places = (state.answer?.explanation.statements ?? []).filter(({ number, where }) => where && forward.has(number));
  editor.marks(places.map(({ where }) => where));
});

// -- running

async function run() {
  chooseResult("values");
  values.begin();
  const told = { text: editor.text, sizes: sizes.current, seed: state.seed };
  state.seed += 1;
  document.body.classList.add("running");
  const answer = await ask("run", told);
  const problem = answer.problem ?? answer.faults?.map((fault) => fault.shown).join("\n");
  if (problem) values.problem(problem);
  else values.show(answer.answer);
  values.verdict(await ask("check", told));
  document.body.classList.remove("running");
}

async function check() {
  chooseResult("values");
  values.begin();
  values.maps.replaceChildren();
  values.verdict(await ask("check", { text: editor.text, sizes: sizes.current, seed: state.seed }));
}

// -- the start

const sizes = new Sizes(() => {
  planSoon();
  linkSoon();
});
const editor = new Editor(find("editor"), "", {
  typed: () => {
    clearTimeout(planTimer); // what is read next asks for it again
    read();
    linkSoon();
  },
  pointed: (offset) => pointing.from("pointer", statementAt(offset)),
  placed,
  run,
});
const gallery = new Gallery((example) => {
  sizes.set(example.sizes);
  editor.text = example.text;
  editor.view.focus();
});

tabs(document.querySelector(".derivative .tabs"), (name) => {
  state.derivative = name;
  read();
});
const chooseResult = tabs(document.querySelector(".result .tabs"), () => {
  source.draw();
  pointing.tell(true);
});

function theme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("tensorswap-theme", root.dataset.theme);
}

async function copyLink() {
  const link = `${location.origin}/#${await pack(editor.text, sizes.current)}`;
  try {
    await navigator.clipboard.writeText(link);
    toast("Link copied. It opens with: tensorswap playground 'LINK'");
  } catch {
    prompt("Copy the link:", link);
  }
}

const ACTIONS = {
  "examples-button": () => gallery.open(),
  "link-button": copyLink,
  "theme-button": theme,
  "help-button": () => find("help").showModal(),
  "run-button": run,
  "check-button": check,
};
for (const [id, action] of Object.entries(ACTIONS)) find(id).addEventListener("click", action);
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
const KEYS = { KeyE: () => gallery.open(), KeyL: copyLink, KeyT: theme };
const RESULTS = ["plan", "source", "values"];
document.addEventListener("keydown", (event) => {
  if (event.altKey && !event.ctrlKey && !event.metaKey) {
    const digit = /^Digit([1-3])$/.exec(event.code);
    const action = digit ? () => chooseResult(RESULTS[digit[1] - 1], true) : KEYS[event.code];
    if (action) {
      event.preventDefault();
      action();
    }
  } else if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && !event.defaultPrevented && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    run();
  }
});

async function openLink() {
  try {
    return await unpack(location.hash);
  } catch {
    toast("The link holds no program.");
    return null;
  }
}

addEventListener("hashchange", async () => {
  const linked = await openLink();
  if (!linked || linked.text === editor.text) return;
  sizes.set(linked.sizes);
  editor.text = linked.text;
});

const examples = await gallery.load();
const start = (await openLink()) ?? examples.find(({ name }) => name === FIRST) ?? examples[0];
sizes.set(start.sizes);
editor.text = start.text;
pointing.tell(true);
document.body.dataset.ready = "true";

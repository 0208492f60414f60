// The generated source, with the lines that run what is pointed at.

import { find, make } from "./dom.js";
import { meets, points } from "./pointing.js";
import { coloured } from "./words.js";

export class Source {
  constructor(pointing) {
    this.pointing = pointing;
    this.parts = [];
    this.told = null; // what is not drawn yet
    pointing.listeners.push((found) => this.mark(found));
  }

  refuse(text) {
    this.told = null;
    this.parts = [];
    find("pane-source").replaceChildren(make("p", { class: "refused" }, text));
  }

  show(told) {
    this.told = told;
    this.draw();
  }

  // What nobody sees is drawn when its tab is chosen.
  draw() {
    const told = this.told;
    if (!told || find("pane-source").hidden) return;
    this.told = null;
    const parts = new Map(told.parts.flatMap((part) => range(part.first, part.last).map((line) => [line, part])));
    const groups = new Map();
    const lines = told.source.split("\n");
    const list = make("div", { class: "source", role: "list" });
    for (const [k, line] of lines.entries()) {
      const part = parts.get(k + 1);
      if (part && !groups.has(part)) {
        const group = make("div", { class: "part", role: "listitem" });
        const { statements, adjoints } = part;
        points(group, this.pointing, statements.length ? { statements } : adjoints.length ? { adjoint: adjoints[0] } : null);
        groups.set(part, group);
        list.append(group);
      }
      const row = make("div", { class: "row" }, make("span", { class: "number", "aria-hidden": "true" }, String(k + 1)), make("code", {}, coloured(line, "python")));
      (groups.get(part) ?? list).append(row);
    }
    this.parts = [...groups].map(([part, group]) => ({ part, group }));
    find("pane-source").replaceChildren(list);
  }

  mark({ forward, backward }) {
    let first = null;
    for (const { part, group } of this.parts) {
      const ahead = meets(part.statements, forward);
      const back = meets(part.adjoints, backward);
      group.classList.toggle("linked-forward", ahead);
      group.classList.toggle("linked-backward", !ahead && back);
      if (ahead || back) first ??= group;
    }
    const pane = find("pane-source");
    clearTimeout(this.scrolling);
    if (!first || pane.hidden || pane.matches(":hover")) return;
    this.scrolling = setTimeout(() => pane.scrollTo({ top: first.offsetTop - pane.clientHeight / 3, behavior: "smooth" }), 60);
  }
}

const range = (first, last) => Array.from({ length: last - first + 1 }, (_, k) => first + k);

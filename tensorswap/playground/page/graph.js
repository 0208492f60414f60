// The dataflow graph: values flow down, gradients come back up.

import { find, make, picture } from "./dom.js";
import { points } from "./pointing.js";

const WAYS = [["both", "Both"], ["forward", "Forward"], ["backward", "Backward"]];

export class Graph {
  constructor(pointing) {
    this.pointing = pointing;
    this.pane = find("pane-graph");
    this.way = "both";
    this.groups = [];
    this.shown = null; // the text of the picture
    const buttons = WAYS.map(([way, label]) =>
      make("button", { type: "button", "aria-pressed": String(way === this.way), onclick: (event) => this.choose(way, event.currentTarget) }, label),
    );
    this.bar = find("graph-ways");
    this.bar.replaceChildren(...buttons);
    this.box = make("div", { class: "drawing both" });
    this.pane.replaceChildren(this.box);
    this.size = { width: 0, height: 0 };
    const watch = new ResizeObserver(([entry]) => {
      this.size = entry.contentRect;
      this.fit();
    });
    watch.observe(this.pane);
    pointing.listeners.push((found) => this.mark(found));
  }

  choose(way, button) {
    this.way = way;
    for (const other of this.bar.children) other.setAttribute("aria-pressed", String(other === button));
    for (const [other] of WAYS) this.box.classList.toggle(other, other === way);
  }

  // A picture that is a little too large is made smaller; one that is much too large is scrolled.
  fit() {
    const drawn = this.box.querySelector("svg");
    if (!drawn || matchMedia("(max-width: 900px)").matches) return this.box.classList.remove("whole");
    const [wide, high] = ["width", "height"].map((name) => Number(drawn.getAttribute(name)));
    const scale = Math.min(1, this.size.width / wide);
    this.box.classList.toggle("whole", (high * scale) / this.size.height < 1.5);
  }

  show({ graph }) {
    if (!graph.faults.length && graph.value === this.shown) return;
    this.shown = graph.value;
    this.groups = [];
    if (graph.faults.length) {
      this.box.replaceChildren(make("p", { class: "refused" }, graph.faults.map((fault) => fault.shown).join("\n")));
      return;
    }
    const drawn = picture(graph.value);
    this.box.replaceChildren(drawn);
    this.fit();
    for (const group of drawn.querySelectorAll("[data-statement]")) {
      const numbers = group.dataset.statement.split(" ").filter(Boolean).map(Number);
      this.groups.push({ group, numbers });
      if (numbers.length) points(group, this.pointing, { statements: numbers });
    }
  }

  mark({ forward, adjoint }) {
    const chosen = forward.size > 0;
    this.box.classList.toggle("pointing", chosen);
    for (const { group, numbers } of this.groups) {
      let linked = numbers.some((number) => forward.has(number));
      if (adjoint && group.dataset.source) linked &&= adjoint.target.startsWith(`${group.dataset.source}.`);
      group.classList.toggle("linked", linked);
    }
    if (!chosen) return;
    const linked = this.groups.map(({ group }) => group).filter((group) => group.dataset.source && group.classList.contains("linked"));
    const ends = new Set(linked.flatMap((group) => [group.dataset.source, group.dataset.target]));
    for (const { group, numbers } of this.groups) {
      if (!group.dataset.tensor) continue;
      const written = !adjoint && numbers.some((number) => forward.has(number)); // a statement may read nothing
      group.classList.toggle("linked", written || ends.has(group.dataset.tensor));
    }
    clearTimeout(this.revealing);
    this.revealing = setTimeout(() => this.reveal(linked[0]), 60); // when the page has been laid out anyway
  }

  reveal(group) {
    if (!group || this.pane.matches(":hover")) return;
    const box = group.getBoundingClientRect();
    const view = this.pane.getBoundingClientRect();
    if (box.top >= view.top && box.bottom <= view.bottom) return;
    this.pane.scrollBy({ top: box.top - view.top - (view.height - box.height) / 2, behavior: "smooth" });
  }
}

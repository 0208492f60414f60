// The plan: what each kernel runs and costs, beside what this machine could do at best.

import { find, make, picture, short, time } from "./dom.js";
import { meets, points } from "./pointing.js";
import { coloured } from "./words.js";

export class Plan {
  constructor(pointing) {
    this.pointing = pointing;
    this.rows = [];
    pointing.listeners.push((found) => this.mark(found));
  }

  refuse(text) {
    this.rows = [];
    find("pane-plan").replaceChildren(make("p", { class: "refused" }, text));
  }

  show(told) {
    this.rows = [];
    const pane = find("pane-plan");
    if (told.reason) return this.refuse(`Interpreted, not compiled: ${told.reason}`);
    const intensity = told.bytes ? told.operations / told.bytes : 0;
    const limit = intensity < told.machine.operations / told.machine.bytes ? "memory" : "arithmetic";
    const facts = [
      ["Operations", short(told.operations)],
      ["Bytes moved", short(told.bytes, "B")],
      ["Operations per byte", String(Number(intensity.toPrecision(3)))],
      ["At best here", time(told.seconds)],
      ["Held back by", limit],
      ["Workspace", short(told.workspace, "B")],
    ];
    const kernels = told.rows.map((row, k) => this.kernel(row, k + 1, told.operations));
    pane.replaceChildren(
      make("dl", { class: "facts" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
      make("ol", { class: "kernels" }, kernels),
      told.note ? make("p", { class: "quiet" }, told.note) : "",
      make("figure", {}, picture(told.roofline), make("figcaption", {}, "What the roof lets each kernel, by its number, reach on this machine: measured by a matrix product and a copy.")),
    );
  }

  kernel(row, number, total) {
    const share = total ? Math.round((100 * row.operations) / total) : 0;
    const lines = row.statements.map((text, k) => this.line(text, row.links[k]));
    const bar = make("span", { class: "share", "aria-hidden": "true" }, make("span", { class: "fill" }));
    bar.firstChild.style.width = `${share}%`;
    return make(
      "li",
      { class: "kernel-row" },
      make("div", { class: "kernel-head" }, make("span", { class: "badge" }, String(number)), make("span", { class: "how" }, row.how), make("span", { class: "numbers" }, `${short(row.operations, "operations")} · ${short(row.bytes, "B")}`), bar),
      make("div", { class: "statements" }, lines),
      make("p", { class: "quiet" }, `Safe: ${row.why}.`, row.local.length ? ` Never stored beyond a strip: ${row.local.join(", ")}.` : "", ` Operations: ${row.operations_formula}.`),
    );
  }

  line(text, links) {
    const { statements, adjoints } = links;
    const item = make("code", { class: "plan-line" }, coloured(text));
    points(item, this.pointing, statements.length ? { statements } : adjoints.length ? { adjoint: adjoints[0] } : null);
    this.rows.push({ item, links });
    return item;
  }

  mark({ forward, backward }) {
    for (const { item, links } of this.rows) {
      item.classList.toggle("linked-forward", meets(links.statements, forward));
      item.classList.toggle("linked-backward", !meets(links.statements, forward) && meets(links.adjoints, backward));
    }
  }
}

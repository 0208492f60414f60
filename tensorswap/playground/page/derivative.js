// The derived program, line by line, each line with the rule that made it.

import { find, make, place, renew } from "./dom.js";
import { meets, points } from "./pointing.js";
import { coloured, indexNames } from "./words.js";

const FOLDED = 5; // lines of the forward pass before the first adjoint statement, from which on they are folded
const EMPTY = "Point at a statement to see where it comes from.";

export class Derivative {
  constructor(pointing) {
    this.pointing = pointing;
    this.pane = find("pane-derivative");
    this.lines = []; // what was drawn, by its place
    this.names = ""; // the indices at that time
    this.list = make("div", { class: "lines" });
    this.told = make("summary");
    this.folded = make("details", {}, this.told); // values that the backward pass needs again: as in the program
    pointing.listeners.push((found) => this.mark(found));
    this.pane.addEventListener("keydown", (event) => this.move(event));
  }

  show(answer, kind) {
    const { explanation, derivative } = answer;
    if (explanation.refused && kind === "adjoint") return this.refuse(explanation.refused);
    if (kind === "adjoint") return this.draw(explanation.backward, explanation);
    if (derivative.faults.length) return this.refuse(derivative.faults.map((fault) => fault.shown).join("\n"));
    if (!derivative.value.length) return this.refuse(explanation.refused || "no input has a derivative here");
    return this.draw(derivative.value, explanation);
  }

  refuse(text) {
    this.lines = [];
    this.pane.replaceChildren(make("p", { class: "refused" }, text));
    find("derivative-meta").textContent = "";
  }

  draw(lines, explanation) {
    let number = 0;
    if (this.names !== indexNames()) this.lines = [];
    this.names = indexNames();
    this.lines = lines.map((line, k) => {
      const adjoint = explanation.adjoints[(line.adjoint ?? 0) - 1];
      const declared = /^\s*(size\(|for |return )/.test(line.text);
      const rule = adjoint ? adjoint.patterns.join(", ") : "";
      const count = declared ? "" : String(++number);
      const key = JSON.stringify([line, rule, count]);
      const kept = this.lines[k];
      return kept?.key === key ? kept : { key, line, row: this.row(line, adjoint, declared, rule, count) };
    });
    const rows = this.lines.map(({ row }) => row);
    const first = rows.findIndex((row) => row.classList.contains("backward"));
    const folded = first >= FOLDED ? first : 0;
    const reached = this.folded.open ? 0 : folded;
    for (const [k, row] of rows.entries()) if (row.tabIndex !== (k === reached ? 0 : -1)) row.tabIndex = k === reached ? 0 : -1;
    const told = `Forward values, computed again (${folded} lines)`;
    if (folded && this.told.textContent !== told) this.told.textContent = told;
    place(this.folded, [this.told, ...rows.slice(0, folded)]);
    place(this.list, folded ? [this.folded, ...rows.slice(folded)] : rows);
    place(this.pane, [this.list]);
    const { backward_cost: back, forward_cost: forward } = explanation;
    find("derivative-meta").textContent = number === 1 ? "1 statement" : `${number} statements`;
    find("derivative-meta").title = `Operations as the loops stand: forward ${forward.operations}, backward ${back.operations}`;
  }

  row(line, adjoint, declared, rule, count) {
    const kind = adjoint || line.adjoints?.length ? "backward" : declared ? "declared" : line.adjoints ? "forward" : "derived";
    const row = make(
      "button",
      { type: "button", class: `line ${kind}`, tabindex: "-1", "aria-label": line.text.trim() },
      make("span", { class: "number", "aria-hidden": "true" }, count),
      make("code", {}, coloured(line.text)),
      rule ? make("span", { class: "rule" }, rule) : null,
    );
    points(row, this.pointing, adjoint ? { adjoint: adjoint.number } : { statements: line.statements });
    return row;
  }

  mark({ forward, backward, adjoint, statement }) {
    for (const { row, line } of this.lines) {
      const back = meets(line.adjoints, backward) || (!line.adjoints && meets(line.statements, forward));
      row.classList.toggle("linked-backward", back);
      row.classList.toggle("linked-forward", !back && !line.adjoints?.length && meets(line.statements, forward));
    }
    const why = find("why");
    if (!adjoint && !statement) return renew(why, EMPTY, () => [make("p", { class: "quiet" }, EMPTY)]);
    const text = adjoint ? adjoint.text : statement.text;
    const told = adjoint ? adjoint.words : [statement.words];
    const from = adjoint ? this.pointing.explanation.statements[adjoint.forward - 1].text : null;
    const cost = (adjoint ?? statement).cost;
    renew(why, [text, told, from, cost, indexNames()], () => [
      make("p", { class: "from" }, make("code", {}, coloured(text)), from ? [make("span", { class: "quiet" }, " from "), make("code", {}, coloured(from))] : null),
      make("p", {}, told.join(" "), make("span", { class: "quiet" }, ` ${cost.operations} operations.`)),
    ]);
  }

  move(event) {
    const rows = this.lines.map(({ row }) => row).filter((row) => row.offsetParent); // not those that are folded
    const at = rows.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined || !rows[to]) return;
    event.preventDefault();
    rows.forEach((row, k) => (row.tabIndex = k === to ? 0 : -1));
    rows[to].focus();
  }
}

// The derived program, line by line, each line with the rule that made it.

import { find, make } from "./dom.js";
import { meets, points } from "./pointing.js";
import { coloured } from "./words.js";

const FOLDED = 5; // lines of the forward pass before the first adjoint statement, from which on they are folded
const EMPTY = "Point at a statement to see where it comes from.";

export class Derivative {
  constructor(pointing) {
    this.pointing = pointing;
    this.pane = find("pane-derivative");
    this.lines = [];
    this.open = false; // what is folded, if it is
    this.scrolled = 0; // kept by hand: to ask the pane would lay out the page
    this.pane.addEventListener("scroll", () => (this.scrolled = this.pane.scrollTop), { passive: true });
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
    const kept = this.scrolled;
    this.lines = lines.map((line) => {
      const adjoint = explanation.adjoints[(line.adjoint ?? 0) - 1];
      const declared = /^\s*(size\(|for |return )/.test(line.text);
      const what = adjoint ? { adjoint: adjoint.number } : { statements: line.statements };
      const note = adjoint ? make("span", { class: "rule" }, adjoint.patterns.join(", ")) : null;
      const kind = adjoint || line.adjoints?.length ? "backward" : declared ? "declared" : line.adjoints ? "forward" : "derived";
      const row = make(
        "button",
        { type: "button", class: `line ${kind}`, tabindex: "-1", "aria-label": line.text.trim() },
        make("span", { class: "number", "aria-hidden": "true" }, declared ? "" : String(++number)),
        make("code", {}, coloured(line.text)),
        note,
      );
      points(row, this.pointing, what);
      return { row, line };
    });
    const rows = this.lines.map(({ row }) => row);
    const first = rows.findIndex((row) => row.classList.contains("backward"));
    const reached = first >= FOLDED && !this.open ? first : 0;
    if (rows.length) rows[reached].tabIndex = 0;
    const kids = first >= FOLDED ? [this.folded(rows.slice(0, first)), ...rows.slice(first)] : rows;
    this.pane.replaceChildren(make("div", { class: "lines" }, kids));
    if (kept) this.pane.scrollTop = kept;
    const { backward_cost: back, forward_cost: forward } = explanation;
    find("derivative-meta").textContent = number === 1 ? "1 statement" : `${number} statements`;
    find("derivative-meta").title = `Operations as the loops stand: forward ${forward.operations}, backward ${back.operations}`;
  }

  // Values that the backward pass needs again: as they stand in the program, so they need not be seen at once.
  folded(rows) {
    const told = make("summary", {}, `Forward values, computed again (${rows.length} lines)`);
    const details = make("details", { open: this.open }, told, rows);
    details.addEventListener("toggle", () => (this.open = details.open));
    return details;
  }

  mark({ forward, backward, adjoint, statement }) {
    for (const { row, line } of this.lines) {
      const back = meets(line.adjoints, backward) || (!line.adjoints && meets(line.statements, forward));
      row.classList.toggle("linked-backward", back);
      row.classList.toggle("linked-forward", !back && !line.adjoints?.length && meets(line.statements, forward));
    }
    const why = find("why");
    if (!adjoint && !statement) {
      why.replaceChildren(make("p", { class: "quiet" }, EMPTY));
      return;
    }
    const text = adjoint ? adjoint.text : statement.text;
    const told = adjoint ? adjoint.words : [statement.words];
    const from = adjoint ? this.pointing.explanation.statements[adjoint.forward - 1].text : null;
    const cost = (adjoint ?? statement).cost;
    why.replaceChildren(
      make("p", { class: "from" }, make("code", {}, coloured(text)), from ? [make("span", { class: "quiet" }, " from "), make("code", {}, coloured(from))] : null),
      make("p", {}, told.join(" "), make("span", { class: "quiet" }, ` ${cost.operations} operations.`)),
    );
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

// Values and gradients of a run as heat maps, and what the gradient check says.

import { find, make, time } from "./dom.js";

const SIDE = [150, 78]; // pixels of a map's longer side, of one alone and of one among several
const GROUPS = [["output", "Outputs"], ["gradient", "Gradients"], ["input", "Inputs"]];
// Values from dark to light; gradients from blue over nothing to red.
const RISING = [[38, 30, 78], [42, 88, 140], [32, 144, 141], [90, 200, 110], [249, 231, 80]];
const BOTH = [[43, 102, 196], [146, 184, 235], [243, 243, 246], [240, 160, 140], [196, 45, 60]];

export class Values {
  constructor() {
    this.pane = find("pane-values");
    this.check = make("div", { class: "verdict" });
    this.maps = make("div", { class: "maps" });
    this.pane.replaceChildren(make("p", { class: "quiet hint" }, "Run the program to see its values and gradients here."));
  }

  begin() {
    this.pane.replaceChildren(this.check, this.maps);
    this.check.replaceChildren(make("p", { class: "waiting" }, "Checking the gradient …"));
    this.maps.classList.add("stale");
  }

  problem(text) {
    this.maps.classList.remove("stale");
    this.maps.replaceChildren(make("p", { class: "refused" }, text));
  }

  verdict(answer) {
    if (answer.problem) return this.check.replaceChildren(make("p", { class: "refused" }, answer.problem));
    if (answer.faults) return this.check.replaceChildren(make("p", { class: "refused" }, answer.faults.map((fault) => fault.shown).join("\n")));
    const { passed, text, hint, sizes, entries, difference, product } = answer.answer;
    const at = Object.entries(sizes).map(([name, size]) => `${name} = ${size}`).join(", ");
    const told = passed
      ? `${entries} entries, at most ${number(difference)} from central differences; ⟨Jv, w⟩ = ⟨v, Jᵀw⟩ to ${number(product)}`
      : `${text}. ${hint}`;
    this.check.replaceChildren(
      make("p", { class: passed ? "passed" : "failed" }, make("strong", {}, passed ? "Gradient right" : "Gradient wrong"), make("span", {}, told), make("span", { class: "quiet" }, at ? `Checked at ${at}.` : "")),
    );
  }

  show({ tensors, first, median, weighted, warnings }) {
    this.maps.classList.remove("stale");
    const told = [`First call ${time(first)}, then ${time(median)} each.`];
    if (weighted.length) told.push(`Gradients are of the outputs weighted with random numbers (${weighted.join(", ")}).`);
    const parts = GROUPS.map(([kind, title]) => {
      const found = tensors.filter((tensor) => tensor.kind === kind);
      return found.length ? make("section", {}, make("h3", {}, title), make("div", { class: "grid" }, found.map(tile))) : "";
    });
    this.maps.replaceChildren(make("p", { class: "quiet" }, told.join(" ")), ...warnings.map((text) => make("p", { class: "refused" }, text)), ...parts);
  }
}

function tile(tensor) {
  const { name, shape, least, most, norm, strange, cells, slices, kind } = tensor;
  const by = shape.length ? shape.join(" × ") : "scalar";
  const caption = make("figcaption", {}, make("span", { class: "name" }, name), make("span", { class: "quiet" }, by));
  if (!shape.length) {
    return make("figure", { class: "tile scalar" }, caption, make("output", {}, cells[0]?.[0]?.[0] === null ? "not finite" : String(cells[0][0][0])));
  }
  const range = least === null ? "no values" : `${number(least)} … ${number(most)}`;
  const label = `${name}, ${by}, from ${least} to ${most}`;
  const maps = cells.map((cut) => map(cut, tensor, label));
  const more = slices > cells.length ? make("span", { class: "quiet more" }, `+ ${slices - cells.length} more`) : "";
  const told = make("p", { class: "quiet range" }, range, norm === null ? "" : ` · norm ${number(norm)}`, strange ? make("strong", { class: "bad" }, ` · ${strange} not finite`) : "");
  return make("figure", { class: `tile ${kind}` }, caption, make("div", { class: "cuts" }, maps, more), told);
}

function map(cut, { kind, least, most, name, steps, slices }, label) {
  const rows = cut.length;
  const columns = cut[0]?.length ?? 0;
  const canvas = make("canvas", { width: columns, height: rows, role: "img", "aria-label": label });
  const side = Math.min(SIDE[slices > 1 ? 1 : 0] / Math.max(rows, columns, 1), 22);
  canvas.style.width = `${Math.max(columns * side, 14)}px`;
  canvas.style.height = `${Math.max(rows * side, 14)}px`;
  const image = canvas.getContext("2d").createImageData(Math.max(columns, 1), Math.max(rows, 1));
  const reach = Math.max(Math.abs(least ?? 0), Math.abs(most ?? 0)) || 1;
  cut.forEach((row, y) =>
    row.forEach((value, x) => {
      const part = kind === "gradient" ? (value / reach + 1) / 2 : most > least ? (value - least) / (most - least) : 0.5;
      const colour = value === null ? [255, 0, 255] : blend(kind === "gradient" ? BOTH : RISING, part);
      image.data.set([...colour, 255], 4 * (y * columns + x));
    }),
  );
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const x = Math.min(Math.floor(((event.clientX - box.left) / box.width) * columns), columns - 1);
    const y = Math.min(Math.floor(((event.clientY - box.top) / box.height) * rows), rows - 1);
    const value = cut[y]?.[x];
    canvas.title = `${name}[${rows > 1 ? `${y * steps[0]}, ` : ""}${x * steps[1]}] = ${value === null ? "not finite" : value}`;
  });
  return canvas;
}

function blend(colours, part) {
  const place = Math.min(Math.max(part, 0), 1) * (colours.length - 1);
  const k = Math.min(Math.floor(place), colours.length - 2);
  return colours[k].map((from, c) => Math.round(from + (place - k) * (colours[k + 1][c] - from)));
}

const number = (value) => (value === null ? "?" : value === 0 ? "0" : Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(1));

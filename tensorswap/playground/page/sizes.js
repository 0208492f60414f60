// Sizes as sliders: steps that double, and a field for any number between.

import { find, make } from "./dom.js";

const STEPS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
const MOST = 4096;

export class Sizes {
  constructor(changed) {
    this.changed = changed;
    this.chosen = {}; // by name, also of sliders that are not there now
    this.names = "";
    this.current = {};
  }

  set(sizes) {
    this.chosen = { ...sizes };
    this.names = "";
  }

  show({ sliders }) {
    const box = find("sliders");
    if (sliders.faults.length) {
      this.names = "";
      box.replaceChildren(make("p", { class: "refused" }, sliders.faults.map((fault) => fault.shown).join("\n")));
      return;
    }
    this.current = Object.fromEntries(Object.entries(sliders.value).map(([name, size]) => [name, this.chosen[name] ?? size]));
    const names = Object.keys(this.current).join(" ");
    if (names === this.names) return; // a slider that is being moved stays
    this.names = names;
    const rows = Object.entries(this.current).map(([name, size]) => this.slider(name, size));
    box.replaceChildren(...(rows.length ? rows : [make("p", { class: "quiet" }, "This program has no size to choose.")]));
  }

  slider(name, size) {
    const at = STEPS.findLastIndex((step) => step <= size);
    const range = make("input", { type: "range", min: "0", max: String(STEPS.length - 1), step: "1", value: String(Math.max(at, 0)), id: `size-${name}`, "aria-label": `Size of ${name}`, "aria-valuetext": String(size) });
    const field = make("input", { type: "number", min: String(-MOST), max: String(MOST), value: String(size), "aria-label": `Size of ${name}, as a number`, id: `number-${name}` });
    const set = (value) => {
      this.current[name] = this.chosen[name] = value;
      range.setAttribute("aria-valuetext", String(value));
      range.style.setProperty("--part", `${(100 * range.value) / (STEPS.length - 1)}%`);
      this.changed();
    };
    range.style.setProperty("--part", `${(100 * Math.max(at, 0)) / (STEPS.length - 1)}%`);
    range.addEventListener("input", () => {
      field.value = STEPS[range.value];
      set(STEPS[range.value]);
    });
    field.addEventListener("input", () => {
      const value = Number(field.value);
      if (!Number.isInteger(value) || Math.abs(value) > MOST || field.value === "") return;
      range.value = Math.max(STEPS.findLastIndex((step) => step <= value), 0);
      set(value);
    });
    return make("div", { class: "slider" }, make("label", { for: `size-${name}` }, name === "..." ? "…" : name), range, field);
  }
}

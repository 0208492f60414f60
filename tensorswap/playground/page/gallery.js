// Examples to start from, by group, with a search.

import { gallery } from "./ask.js";
import { find, make } from "./dom.js";
import { coloured } from "./words.js";

export class Gallery {
  constructor(chosen) {
    this.chosen = chosen;
    this.examples = [];
    this.dialog = find("examples");
    find("examples-search").addEventListener("input", () => this.draw());
    find("examples-search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") find("examples-list").querySelector("button")?.click();
    });
  }

  async load() {
    this.examples = await gallery();
    this.draw();
    return this.examples;
  }

  open() {
    find("examples-search").value = "";
    this.draw();
    this.dialog.showModal();
    find("examples-search").focus();
  }

  draw() {
    const asked = find("examples-search").value.trim().toLowerCase();
    const found = this.examples.filter(({ title, group, text }) => `${title} ${group} ${text}`.toLowerCase().includes(asked));
    const groups = Map.groupBy ? Map.groupBy(found, ({ group }) => group) : grouped(found);
    const parts = [...groups].map(([group, examples]) => make("section", {}, make("h3", {}, group), make("div", { class: "cards" }, examples.map((example) => this.card(example)))));
    find("examples-list").replaceChildren(...(parts.length ? parts : [make("p", { class: "quiet" }, "No example has that in it.")]));
  }

  card(example) {
    const code = example.text.split("\n").filter((line) => line.trim() && !line.startsWith("#"));
    const first = code.find((line) => !/^(size\(|for )/.test(line)) ?? code[0];
    const choose = () => {
      this.dialog.close();
      this.chosen(example);
    };
    return make(
      "button",
      { type: "button", class: "example", onclick: choose, dataset: { name: example.name } },
      make("strong", {}, example.title),
      make("code", {}, coloured(first.trim())),
      make("span", { class: "quiet" }, code.length === 1 ? "1 line" : `${code.length} lines`),
    );
  }
}

function grouped(examples) {
  const found = new Map();
  for (const example of examples) found.set(example.group, [...(found.get(example.group) ?? []), example]);
  return found;
}

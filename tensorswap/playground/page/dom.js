// Small helpers: elements are made by name, never out of text that somebody typed.

export const find = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

// Puts children into an element. Those that are there already stay as they are: to lay them out again takes long.
export function place(parent, children) {
  const wanted = new Set(children);
  for (const [k, child] of children.entries()) {
    const there = parent.childNodes[k];
    if (there === child) continue;
    if (there && !wanted.has(there)) there.replaceWith(child);
    else parent.insertBefore(child, there ?? null);
  }
  while (parent.childNodes.length > children.length) parent.lastChild.remove();
}

// New children for an element, if they would show anything else than what `key` says it shows.
export function renew(element, key, children) {
  const text = JSON.stringify(key);
  if (shown.get(element) === text) return;
  shown.set(element, text);
  element.replaceChildren(...children());
}

const shown = new WeakMap();

export function picture(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return document.importNode(parsed, true);
}

// `40.2 k`, `16.4 kB`, `8 B`, `40.2 k operations`
export function short(number, unit = "") {
  const word = unit.length > 1 ? ` ${unit}` : unit;
  for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (number >= size) return `${Number((number / size).toPrecision(3))} ${letter}${word}`;
  }
  return `${number}${word.length === 1 ? ` ${word}` : word}`;
}

// Text in which what stands between backquotes is code.
export function prose(text) {
  return text.split("`").map((part, k) => (k % 2 ? make("code", {}, part) : part));
}

export function time(seconds) {
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
  for (const [size, unit] of units) if (seconds >= size) return `${Number((seconds / size).toPrecision(3))} ${unit}`;
  return `${Number((seconds / 1e-9).toPrecision(3))} ns`;
}

let hiding = 0;
export function toast(text) {
  const box = find("toast");
  box.textContent = text;
  box.classList.add("shown");
  clearTimeout(hiding);
  hiding = setTimeout(() => box.classList.remove("shown"), 4000);
}

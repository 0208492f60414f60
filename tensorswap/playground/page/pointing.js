// What is pointed at, and what belongs to it: a statement, its adjoint statements, its lines in the kernel.

export class Pointing {
  constructor() {
    this.explanation = null;
    this.listeners = [];
    this.sources = { pointer: null, focus: null, cursor: null }; // the first that is there counts
    this.elements = { pointer: null, focus: null }; // what they are on
    this.shown = "";
  }

  // A new explanation, when all of it is drawn. What is pointed at may be gone: it will not say so any more.
  explain(explanation, cursor = null) {
    this.explanation = explanation;
    for (const [source, element] of Object.entries(this.elements)) if (!element?.isConnected) this.sources[source] = null;
    this.sources.cursor = cursor;
    this.tell(true);
  }

  // `what` is null, {statements: [...]} or {adjoint: number}
  from(source, what, element = null) {
    this.sources[source] = what;
    this.elements[source] = element;
    this.tell();
  }

  tell(always = false) {
    const what = this.sources.pointer ?? this.sources.focus ?? this.sources.cursor;
    const key = JSON.stringify(what);
    if (!always && key === this.shown) return;
    this.shown = key;
    const found = this.found(what);
    for (const listener of this.listeners) listener(found);
  }

  found(what) {
    const { statements, adjoints } = this.explanation ?? { statements: [], adjoints: [] };
    if (what?.adjoint && adjoints[what.adjoint - 1]) {
      const adjoint = adjoints[what.adjoint - 1];
      return { forward: new Set([adjoint.forward]), backward: new Set([what.adjoint]), adjoint };
    }
    const numbers = (what?.statements ?? []).filter((number) => statements[number - 1]);
    const given = numbers.flatMap((number) => statements[number - 1].adjoints);
    const statement = numbers.length ? statements[numbers[0] - 1] : null;
    return { forward: new Set(numbers), backward: new Set(given), statement };
  }
}

export const meets = (numbers, set) => (numbers ?? []).some((number) => set.has(number));

// Events that tell of an element while the pointer or the focus is on it.
export function points(element, pointing, what) {
  element.addEventListener("pointerenter", () => pointing.from("pointer", what, element));
  element.addEventListener("pointerleave", () => pointing.from("pointer", null));
  element.addEventListener("focus", () => pointing.from("focus", what, element));
  element.addEventListener("blur", () => pointing.from("focus", null));
}

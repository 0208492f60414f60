// The editor: colours, faults under the character at fault, and marks for the statement that is pointed at.

import {
  bracketMatching, closeBrackets, closeBracketsKeymap, Decoration, defaultKeymap, drawSelection, EditorState, EditorView,
  highlightActiveLine, HighlightStyle, history, historyKeymap, indentUnit, indentWithTab, keymap, lineNumbers, StateEffect,
  StateField, StreamLanguage, syntaxHighlighting, tags, WidgetType,
} from "./codemirror.js";
import { make, prose } from "./dom.js";
import { kindOf, learn } from "./words.js";

const TAGS = {
  comment: tags.comment, assign: tags.definitionOperator, number: tags.number, grad: tags.special(tags.variableName),
  dot: tags.special(tags.propertyName), keyword: tags.keyword, function: tags.function(tags.variableName),
  call: tags.macroName, index: tags.attributeName, tensor: tags.variableName, operator: tags.operator,
};
const STYLE = HighlightStyle.define(Object.entries(TAGS).map(([kind, tag]) => ({ tag, class: `t-${kind}` })));
const WORD = /^(?:#.*|(?:max|min|argmax|argmin|[-+*])?=(?!=)|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|[A-Za-z_]\w*(?:\.\w+)*|[[\](),]|->|[-+*/<>=!%:]+|.)/u;
const LANGUAGE = StreamLanguage.define({
  startState: () => ({ depth: 0 }),
  token(stream, state) {
    if (stream.sol()) state.depth = 0;
    if (stream.eatSpace()) return null;
    const word = stream.match(WORD)[0];
    if (word === "[") state.depth += 1;
    if (word === "]") state.depth -= 1;
    return kindOf(word, state.depth, stream.peek() ?? "");
  },
  tokenTable: TAGS,
  languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "["] } },
});

class Told extends WidgetType {
  constructor(fault, column, width) {
    super();
    Object.assign(this, { fault, column, width });
  }

  eq(other) {
    return other.column === this.column && other.width === this.width && other.fault.shown === this.fault.shown;
  }

  toDOM() {
    const caret = make("span", { class: "caret", "aria-hidden": "true" }, " ".repeat(this.column) + "^".repeat(this.width));
    const cure = this.fault.hint ? make("span", { class: "cure" }, prose(this.fault.hint)) : null;
    return make("div", { class: "fault-told" }, caret, make("div", { class: "box" }, make("span", { class: "message" }, prose(this.fault.message)), cure));
  }

  ignoreEvent() {
    return true;
  }
}

const setFaults = StateEffect.define();
const setMarks = StateEffect.define();

const faultField = StateField.define({
  create: () => Decoration.none,
  update(value, change) {
    for (const effect of change.effects) if (effect.is(setFaults)) return faultMarks(change.state.doc, effect.value);
    return value.map(change.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

const markField = StateField.define({
  create: () => Decoration.none,
  update(value, change) {
    for (const effect of change.effects) if (effect.is(setMarks)) return lineMarks(change.state.doc, effect.value);
    return value.map(change.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

function faultMarks(doc, faults) {
  const marks = [];
  for (const fault of faults) {
    const start = Math.min(fault.start ?? doc.length, doc.length);
    const line = doc.lineAt(start);
    const end = Math.min(Math.max(fault.end ?? start, start), line.to);
    const width = Math.max(1, end - start);
    if (end > start) marks.push(Decoration.mark({ class: "fault-mark" }).range(start, end));
    const widget = new Told(fault, start - line.from, Math.min(width, 60));
    marks.push(Decoration.widget({ widget, block: true, side: 1 }).range(line.to));
  }
  return Decoration.set(marks, true);
}

function lineMarks(doc, places) {
  const lines = new Set();
  for (const { start, end } of places) {
    if (start > doc.length) continue;
    for (let at = start; ; ) {
      const line = doc.lineAt(at);
      lines.add(line.from);
      if (line.to >= Math.min(end, doc.length)) break;
      at = line.to + 1;
    }
  }
  return Decoration.set([...lines].sort((a, b) => a - b).map((at) => Decoration.line({ class: "linked-forward" }).range(at)));
}

export class Editor {
  // `typed`, `pointed` and `placed` hear of a new text, of the offset under the pointer (or null), and of the cursor's.
  constructor(parent, text, { typed, pointed, placed, run }) {
    const events = EditorView.domEventHandlers({
      pointermove: (event, view) => {
        const at = view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
        const line = view.lineBlockAt(at);
        const top = view.documentTop;
        pointed(event.clientY >= top + line.top && event.clientY <= top + line.bottom ? at : null);
      },
      pointerleave: () => pointed(null),
    });
    const hears = EditorView.updateListener.of((update) => {
      if (update.docChanged) {
        learn(this.text);
        typed();
      }
      if (update.docChanged || update.selectionSet || update.focusChanged) {
        placed(this.view.hasFocus ? update.state.selection.main.head : null);
      }
    });
    const runKey = { key: "Mod-Enter", run: () => (run(), true) };
    const nonce = document.querySelector("meta[name=csp-nonce]").content;
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        doc: text,
        extensions: [
          EditorView.cspNonce.of(nonce), EditorState.tabSize.of(4), indentUnit.of("    "), lineNumbers(), history(),
          drawSelection(), bracketMatching(), closeBrackets(), highlightActiveLine(), LANGUAGE, syntaxHighlighting(STYLE),
          faultField, markField, events, hears, EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "Program", spellcheck: "false", autocapitalize: "off" }),
          keymap.of([runKey, ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
        ],
      }),
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  set text(text) {
    learn(text);
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
  }

  faults(faults) {
    if (!faults.length && !this.wrong) return; // as nearly always
    this.wrong = faults.length > 0;
    this.view.dispatch({ effects: setFaults.of(faults) });
  }

  marks(places) {
    this.view.dispatch({ effects: setMarks.of(places) });
  }

  goTo(place) {
    this.view.dispatch({ selection: { anchor: Math.min(place, this.view.state.doc.length) }, scrollIntoView: true });
    this.view.focus();
  }
}

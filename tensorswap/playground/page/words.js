// Colours for the language and for Python: a text becomes spans of known classes.

const KEYWORDS = new Set(["for", "down", "def", "if", "else", "and", "or", "not", "inside", "size", "return", "int", "array", "index"]);
const FUNCTIONS = new Set(
  ("abs sign sqrt exp log log1p expm1 sin cos tan asin acos atan sinh cosh tanh sigmoid relu gelu silu softplus erf floor " +
    "ceil round min max pow atan2 hypot where stop uniform normal").split(" "),
);
const PYTHON = new Set("def for in if else return import from and or not range while break None True False raise".split(" "));
const LOOP = /#.*|(?:max|min|argmax|argmin|[-+*])?=(?!=)|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|[A-Za-z_]\w*(?:\.\w+)*|[[\](),]|->|[-+*/<>=!%:]+|\s+|./gu;
const CODE = /#.*|"[^"]*"|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|@?[A-Za-z_]\w*|\s+|[^\w\s#"@]+|./gu;

// Names that stand in brackets are indices wherever they stand.
const indices = new Set();

export function learn(text) {
  indices.clear();
  for (const [, inner] of text.matchAll(/\[([^[\]]*)\]/g)) {
    for (const [name] of inner.matchAll(/[A-Za-z_]\w*(?![\w[(])/g)) indices.add(name);
  }
}

// Lines are coloured alike while this is the same.
export const indexNames = () => [...indices].join(" ");

export function kindOf(word, depth, next) {
  if (word.startsWith("#")) return "comment";
  if (/^(max|min|argmax|argmin|[-+*])?=$/.test(word)) return "assign";
  if (/^\d/.test(word)) return "number";
  if (/^[A-Za-z_]/.test(word)) {
    if (/\.grad/.test(word)) return "grad";
    if (/\.dot/.test(word)) return "dot";
    if (KEYWORDS.has(word)) return "keyword";
    if (next === "(") return FUNCTIONS.has(word) ? "function" : "call";
    if (next !== "[" && (depth > 0 || indices.has(word))) return "index";
    return "tensor";
  }
  return "operator";
}

export function* words(line) {
  let depth = 0;
  const found = line.match(LOOP) ?? [];
  for (const [k, word] of found.entries()) {
    if (word === "[") depth += 1;
    if (word === "]") depth -= 1;
    if (/^\s+$/.test(word)) yield [word, ""];
    else yield [word, kindOf(word, depth, found[k + 1] ?? "")];
  }
}

function* python(line) {
  for (const word of line.match(CODE) ?? []) {
    if (word.startsWith("#")) yield [word, "comment"];
    else if (word.startsWith('"')) yield [word, "string"];
    else if (/^\d/.test(word)) yield [word, "number"];
    else if (word.startsWith("@")) yield [word, "call"];
    else if (PYTHON.has(word)) yield [word, "keyword"];
    else yield [word, ""];
  }
}

export function coloured(line, language = "loop") {
  const made = document.createDocumentFragment();
  for (const [word, kind] of language === "loop" ? words(line) : python(line)) {
    if (!kind) {
      made.append(word);
      continue;
    }
    const span = document.createElement("span");
    span.className = `t-${kind}`;
    span.textContent = word;
    made.append(span);
  }
  return made;
}

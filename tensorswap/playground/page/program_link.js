// A link that carries the program: JSON, deflated, in letters that an address may hold. As fragment.py reads it.

const MARK = "p=";
const MOST = 8e6; // bytes that a link may unpack to

async function through(bytes, stream, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let length = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    length += piece.value.length;
    if (length > most) throw new Error("the link is too long");
    parts.push(piece.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export async function pack(text, sizes) {
  const told = new TextEncoder().encode(JSON.stringify({ text, sizes }));
  const packed = await through(told, new CompressionStream("deflate-raw"));
  let letters = "";
  for (const byte of packed) letters += String.fromCharCode(byte);
  return MARK + btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function unpack(fragment) {
  const code = fragment.replace(/^#/, "");
  if (!code.startsWith(MARK)) return null;
  const letters = atob(code.slice(MARK.length).replaceAll("-", "+").replaceAll("_", "/"));
  const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const told = JSON.parse(new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw"), MOST)));
  if (typeof told.text !== "string") throw new Error("the link holds no program");
  const sizes = Object.entries(told.sizes ?? {}).filter(([, size]) => Number.isInteger(size));
  return { text: told.text, sizes: Object.fromEntries(sizes) };
}

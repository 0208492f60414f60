// Writes ../page/codemirror.js, one file that needs no network, and the licences of what is in it beside it.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";

const made = await build({
  entryPoints: ["entry.js"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  outfile: "../page/codemirror.js",
});

const folders = Object.keys(made.metafile.inputs).map((path) => path.match(/^(node_modules\/(?:@[^/]+\/)?[^/]+)\//)?.[1]);
const packages = [...new Set(folders.filter(Boolean))].sort();
const parts = packages.map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/LICENSE`, "utf8").trim()}\n`;
});
const head = "codemirror.js holds parts of these packages:\n\n";
writeFileSync("../page/codemirror.LICENSE.txt", head + parts.join(`\n${"-".repeat(78)}\n\n`));
